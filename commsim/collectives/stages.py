"""What does each stage of a schedule ask of every link?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from commsim.collectives.schedule import SWITCH, Round, Schedule, Transfer
from commsim.hardware.exchange import exchanged
from commsim.hardware.routing import DOWN, UP
from commsim.hardware.transfers import Way, sent, switched

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commsim.hardware.topology import Topology

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Stage:
    """Rounds under way at once: load[link], the way of one byte through them all, and how many they are (`depth`)."""

    load: Floats
    way: Way
    depth: int

    @classmethod
    def together(cls, stages: Sequence[Stage], topology: Topology) -> Stage:
        """Return what happens together and independently: loads add up, the longest way counts."""
        load = np.sum([stage.load for stage in stages], axis=0) if len(stages) > 1 else stages[0].load
        way = Way.longest([stage.way for stage in stages], topology)
        return cls(load, way, max(stage.depth for stage in stages))


def stages(schedule: Schedule, ranks: Ints, topology: Topology) -> list[Stage]:
    """Return the stages of a schedule on ranks[group, place], one after another; one when everything streams."""
    return [_stage(rounds, ranks, topology) for rounds in _at_once(schedule)]


def _at_once(schedule: Schedule) -> list[list[tuple[Round, int]]]:
    """The rounds that are under way at once, stage by stage, each with how many there are of it at a time."""
    found: list[list[tuple[Round, int]]] = []
    for phase in schedule.phases:
        rounds = [(one, one.repeat if phase.streaming else 1) for one in phase.rounds]
        found += [rounds] if phase.streaming else [[one] for one in rounds]
    return [[one for stage in found for one in stage]] if schedule.streaming else found


def _stage(rounds: list[tuple[Round, int]], ranks: Ints, topology: Topology) -> Stage:
    load = np.zeros(topology.numbering.total)
    ways = [_round(one, load, ranks, topology) for one, _ in rounds]
    return Stage(load, reduce(Way.then, ways), sum(depth for _, depth in rounds))


def _round(one: Round, load: Floats, ranks: Ints, topology: Topology) -> Way:
    """Add the round to the load, and return the way of one byte through all its repetitions."""
    ways = [_moved(each, one, load, ranks, topology) for each in one.transfers if one.repeat]
    return Way.longest(ways, topology).times(one.repeat)


def _moved(one: Transfer, within: Round, load: Floats, ranks: Ints, topology: Topology) -> Way:
    share = one.share * within.repeat
    if one.how == "exchange":
        return exchanged(topology, load, _places(ranks, one.source), float(share[0]))
    if one.target is SWITCH or one.source is SWITCH:
        direction, members = (UP, one.source) if one.target is SWITCH else (DOWN, one.target)
        groups, combined = _places(ranks, members), one.how != "unicast"
        return switched(topology, load, groups, float(share[0]), direction=direction, combined=combined)
    ends = _places(ranks, one.source), _places(ranks, one.target)
    return sent(topology, load, ends, np.broadcast_to(share, ends[0].shape), relayed=within.relayed)


def _places(ranks: Ints, places: Ints) -> Ints:
    """The ranks at places[row, t] of every group: int[group and row, t]."""
    return ranks[:, places].reshape(-1, places.shape[1])
