"""What does a schedule ask of the machine's links?

A price is counts, not seconds: how many links of each kind one byte crosses one after another, and which share of the
bytes the busiest link of each kind carries. Time comes afterwards (see `libraries`), so that sizes, calibrations and
the low and high of uncertain figures are numpy axes on one price.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from commsim.collectives.algorithms import ALGORITHMS, Group
from commsim.collectives.remembered import remembered
from commsim.collectives.stages import Stage, stages
from commsim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commsim.collectives.kinds import Collective
    from commsim.collectives.layout import Layout
    from commsim.collectives.schedule import Schedule
    from commsim.hardware.topology import Link, Topology

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Cost:
    """What a collective asks of the links, one row for each stage that follows another.

    `hops`[stage, kind]: links of that kind that one byte crosses in sequence. `steps`[stage, 2]: messages in sequence,
    inside the machine and through its NICs. `load`[stage, kind]: bytes on the busiest link of that kind, per byte
    of the size. `depth`[stage]: rounds under way at once (what fills the pipeline). `busiest`[stage, kind]: the
    edge of the cell that carries the load. `streaming`: the stages overlap chunk by chunk, so there is one only.
    `even`: False when maxima of several groups were added, so that the load is an upper bound.
    """

    kinds: tuple[Link, ...]
    hops: Floats
    steps: Floats
    load: Floats
    depth: Floats
    streaming: bool
    busiest: tuple[tuple[str, ...], ...]
    even: bool = True


def priced(algorithm: str, op: Collective, layout: Layout, topology: Topology) -> Cost:
    """Return the price of a collective by an algorithm of the table, remembered for the machine.

    InputError when the algorithm does not exist, does not serve the group, or its switches cannot reduce.
    """
    return remembered(topology, (algorithm, op.name, layout), lambda: _priced(algorithm, op, layout, topology))


def _priced(algorithm: str, op: Collective, layout: Layout, topology: Topology) -> Cost:
    """The price of the folded layout, which many layouts share."""
    if algorithm not in ALGORITHMS:
        raise InputError("algorithm", algorithm, "no such algorithm", among=ALGORITHMS)
    folded = layout.on(topology)
    schedule = ALGORITHMS[algorithm].schedule(op, Group.of(folded, topology))
    return remembered(topology, (algorithm, op.name, folded, "folded"), lambda: price([(schedule, folded)], topology))


def price(acting: Sequence[tuple[Schedule, Layout]], topology: Topology) -> Cost:
    """Return what the schedules, which act together on their layouts, ask of the links.

    Loads of different schedules add up stage by stage. InputError when a rank is outside the machine, when no path
    joins two ranks, and when a switch cannot reduce.
    """
    if not acting:
        raise InputError("price", "no schedule", "at least one schedule with its layout belongs here")
    alone = len(acting) == 1
    rows = [stages(schedule, layout.on(topology, alone=alone).ranks(), topology) for schedule, layout in acting]
    together = [_together(rows, number, topology) for number in range(max(map(len, rows)))]
    found = [topology.numbering.busiest(stage.load, len(topology.kinds)) for stage in together]
    return Cost(
        kinds=topology.kinds,
        hops=np.array([stage.way.hops for stage in together]),
        load=np.array([most for most, _ in found]),
        depth=np.array([stage.depth for stage in together], dtype=np.float64),
        streaming=all(schedule.streaming for schedule, _ in acting),
        busiest=tuple(tuple(map(topology.numbering.name, edges.tolist())) for _, edges in found),
        steps=np.array([stage.way.steps for stage in together]),
    )


def _together(rows: list[list[Stage]], number: int, topology: Topology) -> Stage:
    return Stage.together([row[number] for row in rows if number < len(row)], topology)
