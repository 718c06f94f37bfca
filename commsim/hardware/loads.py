"""How much does every link carry when transfers happen together?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from commsim.errors import InputError
from commsim.hardware import routing
from commsim.hardware.atlas import Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commsim.hardware.numbering import Numbering
    from commsim.hardware.topology import Topology

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
_MOST_COUNTS = 1 << 22


@dataclass(frozen=True, eq=False)
class Carried:
    """What transfers that happen together ask: load[link], and the longest way's hops[kind] and steps[inside, network].

    A step is a message that stays inside the scale-up domain or passes a NIC; ending in a switch it is half of one.
    """

    load: Floats
    hops: Floats
    steps: Floats


def sent(topology: Topology, ends: tuple[Ints, Ints], share: Floats, *, relayed: bool = False) -> Carried:
    """Return what the messages ends[0][group, t] -> ends[1][group, t] (ranks) of share[group, t] ask.

    `relayed`: each message is what came in with another one, so that a byte crosses the mean way, not the longest; of
    several groups the one with the longest counts.
    """
    groups = ends[0].shape
    source, target = (end.reshape(-1) for end in ends)
    (node_a, a), (node_b, b) = topology.locate(source), topology.locate(target)
    rows = topology.atlas.rows(a, b, topology.level(node_a, node_b))
    used = np.flatnonzero(np.bincount(rows, minlength=len(topology.atlas.table)))
    which = np.searchsorted(used, rows)
    table, weight = topology.atlas.table.rows(used), share.reshape(-1)
    load = carry(topology.numbering, table, which, (node_a, node_b), weight)
    if not relayed:
        return Carried(load, *longest(topology, table.hops, table.network))
    group = np.repeat(np.arange(groups[0]), groups[1])
    mean = np.bincount(group * len(used) + which, weights=weight, minlength=groups[0] * len(used))
    mean = mean.reshape(groups[0], len(used)) / np.maximum(np.bincount(group, weights=weight), 1e-300)[:, None]
    return Carried(load, *longest(topology, mean @ table.hops, mean @ table.network))


def switched(topology: Topology, groups: Ints, share: float, direction: int, *, combined: bool) -> Carried:
    """Return what it asks when each rank of groups[group, member] sends `share` to the switch that joins its group.

    Or receives it from there (`direction` DOWN). `combined`: what the members of a group send up is added wherever a
    switch can, and what they receive is copied there, so that a link carries it once however many of them are below it.
    InputError when no switch that reduces joins a group.
    """
    node, local = topology.locate(groups)
    table, which = _ways(topology, local, topology.level(node.min(axis=1), node.max(axis=1)), direction)
    numbering, nodes = topology.numbering, (node.reshape(-1), node.reshape(-1))
    once = (numbering.joins if direction == routing.UP else numbering.splits)[table.edge] & combined
    load = carry(numbering, table.only(~once), which, nodes, np.full(which.size, share))
    hop = once & (table.share > 0)
    if hop.any():
        load += share * _once(numbering, table.only(hop), which, nodes, groups.shape)
    return Carried(load, *longest(topology, table.hops, table.network, step=0.5))


def reducible(topology: Topology, groups: Ints) -> bool:
    """Tell whether a switch that reduces and multicasts joins the ranks of each of groups[group, member]."""
    node, local = topology.locate(groups)
    try:
        _ways(topology, local, topology.level(node.min(axis=1), node.max(axis=1)), routing.UP)
    except InputError:
        return False
    return True


def carry(numbering: Numbering, table: Table, which: Ints, nodes: tuple[Ints, Ints], weight: Floats) -> Floats:
    """Return load[link] of transfers by the ways table[which[t]] between nodes[side][t], each `weight`[t].

    Transfers of one way between the same units are counted together, so that the cost hardly grows with the length of
    the ways.
    """
    load = np.zeros(numbering.total)
    for entry, place, copies in _classes(numbering, table, nodes):
        if len(table) * copies > _MOST_COUNTS and len(table) > 1:
            return _in_halves(numbering, table, which, nodes, weight)
        count = np.bincount(which * copies + place, weights=weight, minlength=len(table) * copies)
        _add(load, numbering, table, entry, count.reshape(len(table), copies))
    return load


def _classes(numbering: Numbering, table: Table, nodes: tuple[Ints, Ints]) -> Iterator[tuple[Ints, Ints, int]]:
    """The hops (flat places in the table) whose copies are told by the same arithmetic, and the copy for each transfer."""
    loaded = np.flatnonzero(table.share.ravel())
    edge, side = table.edge.ravel()[loaded], table.side.ravel()[loaded]
    code = (numbering.span[edge] * (numbering.siblings.max(initial=1) + 1) + numbering.siblings[edge]) * 2 + side
    for one in np.unique(code):
        entry = loaded[code == one]
        first, near = table.edge.ravel()[entry[0]], nodes[int(one) % 2]
        span, siblings = numbering.span[first], numbering.siblings[first]
        place = near // span
        if siblings > 1:
            place = place * siblings + nodes[1 - int(one) % 2] // span % siblings
        yield entry, place, int(numbering.copies[first])


def _add(load: Floats, numbering: Numbering, table: Table, entry: Ints, count: Floats) -> None:
    """Add the counts[way, copy] of the transfers to the copies of the edges at these hops."""
    edge, share, way = table.edge.ravel()[entry], table.share.ravel()[entry], entry // table.edge.shape[1]
    if count.shape[1] == 1:
        load += np.bincount(numbering.offset[edge], weights=share * count[way, 0], minlength=len(load))
        return
    order = np.argsort(edge, kind="stable")
    for hops in np.split(order, np.flatnonzero(np.diff(edge[order])) + 1):
        start = numbering.offset[edge[hops[0]]]
        load[start : start + count.shape[1]] += share[hops] @ count[way[hops]]


def _in_halves(numbering: Numbering, table: Table, which: Ints, nodes: tuple[Ints, Ints], weight: Floats) -> Floats:
    """The load, counted for one half of the ways after the other: the counts of all at once would not fit."""
    half = len(table) // 2
    load = np.zeros(numbering.total)
    for first, last in ((0, half), (half, len(table))):
        mine = np.flatnonzero((which >= first) & (which < last))
        rows = table.rows(np.arange(first, last))
        load += carry(numbering, rows, which[mine] - first, (nodes[0][mine], nodes[1][mine]), weight[mine])
    return load


def _ways(topology: Topology, local: Ints, level: Ints, direction: int) -> tuple[Table, Ints]:
    """The ways between each member and the switch that joins its group, and which of them each member takes."""
    present = np.zeros((len(local), topology.gpus_per_node + 1), dtype=np.int64)
    present[np.arange(len(local))[:, None], local] = 1
    present[:, -1] = level
    alike = bool((present == present[0]).all())
    patterns, pattern = (present[:1], np.zeros(len(local), dtype=np.int64)) if alike else _distinct(present)
    paths, start = [], []
    for row in patterns:
        members = np.flatnonzero(row[:-1])
        switch = routing.joining_switch(topology.cell, frozenset(members.tolist()), int(row[-1]))
        start.append(len(paths) + np.cumsum(row[:-1]) - 1)
        paths += [routing.to_switch(topology.cell, int(place), switch, direction) for place in members]
    table = Table.of(paths, topology.numbering, len(topology.kinds))
    return table, np.array(start)[pattern[:, None], local].reshape(-1)


def _distinct(rows: Ints) -> tuple[Ints, Ints]:
    patterns, pattern = np.unique(rows, axis=0, return_inverse=True)
    return patterns, pattern.reshape(-1)


def _once(numbering: Numbering, table: Table, which: Ints, nodes: tuple[Ints, Ints], shape: tuple[int, ...]) -> Floats:
    """The load when each link carries the largest share of a group's members below it, once."""
    group = np.repeat(np.arange(shape[0]), shape[1])[:, None]
    share = table.share[which]
    links = numbering.links(table.edge[which], table.side[which], nodes)
    used = share > 0
    key, number = np.unique((group * numbering.total + links)[used], return_inverse=True)
    largest = np.zeros(len(key))
    np.maximum.at(largest, number, share[used])
    return np.bincount(key % numbering.total, weights=largest, minlength=numbering.total)


def longest(topology: Topology, hops: Floats, network: Floats, *, step: float = 1.0) -> tuple[Floats, Floats]:
    """Return the hops of the longest of some ways, by latency, and its steps inside and through the network."""
    if not len(hops):
        return np.zeros(len(topology.kinds)), np.zeros(2)
    longest = int(np.argmax(hops @ topology.latency))
    through = float(network[longest])
    return hops[longest], step * np.array([1.0 - through, through])
