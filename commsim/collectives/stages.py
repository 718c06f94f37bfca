"""What does each stage of a schedule ask of every link?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from commsim.collectives.schedule import SWITCH, Phase, Round, Schedule, Transfer
from commsim.hardware.exchange import exchanged
from commsim.hardware.loads import Carried, sent, switched
from commsim.hardware.routing import DOWN, UP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commsim.hardware.topology import Topology

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Stage:
    """What happens at once: load[link], hops[kind] and steps[inside, network] in sequence, rounds under way (depth)."""

    load: Floats
    hops: Floats
    steps: Floats
    depth: int = 1

    @classmethod
    def none(cls, topology: Topology) -> Stage:
        """Return the stage in which nothing happens."""
        return cls(np.zeros(topology.numbering.total), np.zeros(len(topology.kinds)), np.zeros(2))

    @classmethod
    def overlapping(cls, stages: Sequence[Stage]) -> Stage:
        """Return the stages under way at once, each a step further for another chunk: everything adds up."""
        load, hops, steps = (sum(getattr(stage, name) for stage in stages) for name in ("load", "hops", "steps"))
        return cls(load, hops, steps, sum(stage.depth for stage in stages))

    @classmethod
    def together(cls, stages: Sequence[Stage], topology: Topology) -> Stage:
        """Return what happens together and independently: loads add up, the longest way counts."""
        longest = max(stages, key=lambda stage: float(stage.hops @ topology.latency))
        load = sum(stage.load for stage in stages)
        return cls(np.asarray(load), longest.hops, longest.steps, max(stage.depth for stage in stages))


def stages(schedule: Schedule, ranks: Ints, topology: Topology) -> list[Stage]:
    """Return the stages of a schedule on ranks[group, place], one after another; one when everything streams."""
    found = [stage for phase in schedule.phases for stage in _phase(phase, ranks, topology)]
    return [Stage.overlapping(found)] if schedule.streaming else found


def _phase(phase: Phase, ranks: Ints, topology: Topology) -> list[Stage]:
    """One stage for each round, or one for all of them when they stream into each other."""
    found = [_round(one, ranks, topology, streaming=phase.streaming) for one in phase.rounds]
    return [Stage.overlapping(found)] if phase.streaming else found


def _round(one: Round, ranks: Ints, topology: Topology, *, streaming: bool) -> Stage:
    if not one.transfers or not one.repeat:
        return Stage.none(topology)
    parts = [_carried(each, ranks, topology, relayed=one.relayed) for each in one.transfers]
    once = Stage.together([Stage(part.load, part.hops, part.steps) for part in parts], topology)
    more = float(one.repeat)
    return Stage(once.load * more, once.hops * more, once.steps * more, one.repeat if streaming else 1)


def _carried(one: Transfer, ranks: Ints, topology: Topology, *, relayed: bool) -> Carried:
    if one.how == "exchange":
        return exchanged(topology, _places(ranks, one.source), float(one.share[0]))
    if one.target is SWITCH or one.source is SWITCH:
        direction, members = (UP, one.source) if one.target is SWITCH else (DOWN, one.target)
        combined = one.how != "unicast"
        return switched(topology, _places(ranks, members), float(one.share[0]), direction, combined=combined)
    source, target = _places(ranks, one.source), _places(ranks, one.target)
    return sent(topology, (source, target), np.broadcast_to(one.share, source.shape), relayed=relayed)


def _places(ranks: Ints, places: Ints) -> Ints:
    """The ranks at places[row, t] of every group: int[group and row, t]."""
    return ranks[:, places].reshape(-1, places.shape[1])
