"""What do messages that move at the same time ask of the links?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from commsim.errors import InputError
from commsim.hardware import routing
from commsim.hardware.atlas import Table
from commsim.hardware.loads import Moved, carry, carry_once

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commsim.hardware.topology import Topology

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Way:
    """What one byte passes in sequence: hops[kind] of links, and steps[inside, network] of messages.

    A message through the network is one that passes a NIC; a message that ends in a switch is half a step.
    """

    hops: Floats
    steps: Floats

    @classmethod
    def longest(cls, ways: Sequence[Way], topology: Topology) -> Way:
        """Return the way that takes longest by the latency of its links; the empty one when there are none."""
        nowhere = cls(np.zeros(len(topology.kinds)), np.zeros(2))
        return max(ways, key=lambda way: float(way.hops @ topology.latency), default=nowhere)

    def times(self, factor: float) -> Way:
        """Return the way passed so many times."""
        return Way(self.hops * factor, self.steps * factor)

    def then(self, other: Way) -> Way:
        """Return this way followed by another."""
        return Way(self.hops + other.hops, self.steps + other.steps)


def sent(topology: Topology, load: Floats, ends: tuple[Ints, Ints], share: Floats, *, relayed: bool = False) -> Way:
    """Add to load[link] the messages ends[0][group, t] -> ends[1][group, t] (ranks) of share[group, t]; return a way.

    It is the longest one, or, when each message is what came in with another one (`relayed`), the mean one within a
    group, of the group for which that is longest. InputError when no path joins two ranks.
    """
    source, target = (end.reshape(-1) for end in ends)
    (node_a, a), (node_b, b) = topology.locate(source), topology.locate(target)
    table, way = topology.atlas.ways(a, b, topology.level(node_a, node_b))
    moved = Moved(way, (node_a, node_b), share.reshape(-1))
    carry(load, topology.numbering, table, moved)
    return longest(topology, _mean(table, moved, len(ends[0])) if relayed else table)


def switched(
    topology: Topology, load: Floats, groups: Ints, share: float, *, direction: int, combined: bool = False
) -> Way:
    """Add to load[link] what each of groups[group, member] sends to the switch that joins its group; return the way.

    Each sends `share`, or receives it from there (`direction` DOWN). `combined`: what the members of a group send up is
    added wherever a switch can, and what they receive is copied there, so that a link carries it once however many of
    them are below it. InputError when no switch that reduces joins a group.
    """
    table, taken = _to_switches(topology, groups, direction)
    node, _ = topology.locate(groups)
    numbering = topology.numbering
    moved = Moved(taken, (node.reshape(-1), node.reshape(-1)), np.full(taken.size, share))
    once = (numbering.joins if direction == routing.UP else numbering.splits)[table.edge] & combined
    carry(load, numbering, table.only(~once), moved)
    if (once & (table.share > 0)).any():
        group = np.repeat(np.arange(len(groups)), groups.shape[1])
        carry_once(load, numbering, table.only(once), moved, group)
    way = longest(topology, table)
    return Way(way.hops, way.steps / 2)


def reducible(topology: Topology, groups: Ints) -> bool:
    """Tell whether a switch that reduces and multicasts joins the ranks of each of groups[group, member]."""
    try:
        _to_switches(topology, groups, routing.UP)
    except InputError:
        return False
    return True


def longest(topology: Topology, table: Table) -> Way:
    """Return the longest of some ways, by latency."""
    if not len(table.hops):
        return Way.longest((), topology)
    row = int(np.argmax(table.hops @ topology.latency))
    through = float(table.network[row])
    return Way(table.hops[row], np.array([1.0 - through, through]))


def _mean(table: Table, moved: Moved, groups: int) -> Table:
    """The mean way of each group, as a table that says only its hops."""
    group = np.repeat(np.arange(groups), len(moved.way) // groups)
    weight = np.bincount(group * len(table) + moved.way, weights=moved.weight, minlength=groups * len(table))
    weight = weight.reshape(groups, len(table))
    weight = weight / np.maximum(weight.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    return Table(table.edge[:0], table.side[:0], table.share[:0], weight @ table.hops, weight @ table.network)


def _to_switches(topology: Topology, groups: Ints, direction: int) -> tuple[Table, Ints]:
    """The ways between the ranks of groups[group, member] and the switches that join them; which of them each takes.

    A group of one scale-up domain is joined by a switch of that domain, never through its NICs.
    """
    node, local = topology.locate(groups)
    present = np.zeros((len(local), topology.gpus_per_node + 2), dtype=np.int64)
    present[np.arange(len(local))[:, None], local] = 1
    present[:, -2] = topology.level(node.min(axis=1), node.max(axis=1))
    present[:, -1] = np.ptp(groups // topology.domain_size, axis=1) > 0
    patterns, pattern = _distinct(present)
    paths: list[routing.Path] = []
    row = np.zeros((len(patterns), topology.gpus_per_node), dtype=np.int64)
    for number, (*members, level, through) in enumerate(patterns.tolist()):
        places = np.flatnonzero(members)
        row[number, places] = len(paths) + np.arange(len(places))
        paths += routing.to_switch(topology.cell, tuple(places.tolist()), (level, bool(through)), direction)
    table = Table.of(paths, topology.numbering, len(topology.kinds))
    return table, row[pattern[:, None], local].reshape(-1)


def _distinct(rows: Ints) -> tuple[Ints, Ints]:
    """The distinct rows, and which of them each row is; quick when all are alike, as groups mostly are."""
    if bool((rows == rows[0]).all()):
        return rows[:1], np.zeros(len(rows), dtype=np.int64)
    distinct, which = np.unique(rows, axis=0, return_inverse=True)
    return distinct, which.reshape(-1)
