"""How much does every link carry?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commsim.hardware.atlas import Table
    from commsim.hardware.numbering import Numbering

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
_MOST_COUNTS = 1 << 22


@dataclass(frozen=True, eq=False)
class Moved:
    """Transfers by the ways of a table: way[t] of each, between nodes[side][t], and its weight[t]."""

    way: Ints
    nodes: tuple[Ints, Ints]
    weight: Floats

    def between(self, first: int, last: int) -> Moved:
        """Return the transfers by the ways first .. last - 1, these counted from 0."""
        mine = np.flatnonzero((self.way >= first) & (self.way < last))
        return Moved(self.way[mine] - first, (self.nodes[0][mine], self.nodes[1][mine]), self.weight[mine])


def carry(load: Floats, numbering: Numbering, table: Table, moved: Moved) -> None:
    """Add the transfers to load[link].

    Transfers by one way between the same units are counted together, so that the length of the ways hardly matters; so
    many ways at a time that the counts fit into memory.
    """
    most = max(1, _MOST_COUNTS // int(numbering.copies.max(initial=1)))
    if len(table) <= most:
        _carry(load, numbering, table, moved)
        return
    for first in range(0, len(table), most):
        last = min(first + most, len(table))
        _carry(load, numbering, table.rows(np.arange(first, last)), moved.between(first, last))


def carry_once(load: Floats, numbering: Numbering, table: Table, moved: Moved, group: Ints) -> None:
    """Add the transfers to load[link], but of those of one group[t] that cross a link only the largest."""
    share = (table.share[moved.way] * moved.weight[:, None]).ravel()
    links = numbering.links(table.edge[moved.way], table.side[moved.way], moved.nodes)
    links = (group[:, None] * numbering.total + links).ravel()
    used = share > 0
    key, number = np.unique(links[used], return_inverse=True)
    largest = np.zeros(len(key))
    np.maximum.at(largest, number, share[used])
    np.add.at(load, key % numbering.total, largest)


def _carry(load: Floats, numbering: Numbering, table: Table, moved: Moved) -> None:
    for hops, copy, copies in _alike(numbering, table, moved.nodes):
        count = np.bincount(moved.way * copies + copy, weights=moved.weight, minlength=len(table) * copies)
        _add(load, numbering, table, hops, count.reshape(len(table), copies).astype(np.float64, copy=False))


def _alike(numbering: Numbering, table: Table, nodes: tuple[Ints, Ints]) -> Iterator[tuple[Ints, Ints, int]]:
    """The hops (flat places in the table) whose copies are told alike; the copy for each transfer; how many."""
    loaded = np.flatnonzero(table.share.ravel())
    edge, side = table.edge.ravel()[loaded], table.side.ravel()[loaded]
    code = (numbering.span[edge] * (numbering.siblings.max(initial=1) + 1) + numbering.siblings[edge]) * 2 + side
    for one in np.unique(code):
        hops = loaded[code == one]
        first = table.edge.ravel()[hops[0]]
        near, far = (nodes[end] // numbering.span[first] for end in (one % 2, 1 - one % 2))
        yield hops, numbering.place(near, far, numbering.siblings[first]), int(numbering.copies[first])


def _add(load: Floats, numbering: Numbering, table: Table, hops: Ints, count: Floats) -> None:
    """Add the transfers count[way, copy] to the copies of the edges at these hops of the ways."""
    edge, share, way = table.edge.ravel()[hops], table.share.ravel()[hops], hops // table.edge.shape[1]
    order = np.argsort(edge, kind="stable")
    starts = np.flatnonzero(np.diff(edge[order], prepend=-1))
    offsets, copies = numbering.offset[edge[order[starts]]], count.shape[1]
    if copies == 1:
        load[offsets] += np.add.reduceat((share * count[way, 0])[order], starts)
        return
    for offset, same in zip(offsets, np.split(order, starts[1:])):
        load[offset : offset + copies] += share[same] @ count[way[same]]
