"""Which ways do the transfers take? Each distinct way is found once and remembered for the machine."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from commsim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from commsim.hardware.numbering import Numbering
    from commsim.hardware.routing import Path

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Key = tuple[int, int, int]
"""Two GPUs as places in their nodes, and the level at which the nodes meet."""
_MOST_PLACES = 4096


@dataclass(frozen=True, eq=False)
class Table:
    """Ways as arrays, one row each, padded to the longest: edge, side and share [way, hop].

    `hops`[way, kind] counts the links that one byte crosses one after another; `network`[way] is 1 where it passes a
    NIC.
    """

    edge: Ints
    side: Ints
    share: Floats
    hops: Floats
    network: Floats

    @classmethod
    def of(cls, paths: Sequence[Path], numbering: Numbering, kinds: int) -> Table:
        """Return the paths as a table."""
        shape = (len(paths), max((len(path.edges) for path in paths), default=0))
        edge, side, share = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64), np.zeros(shape)
        hops = np.zeros((len(paths), kinds))
        for row, path in enumerate(paths):
            used = len(path.edges)
            edge[row, :used] = [numbering.order[pair] for pair in path.edges]
            side[row, :used], share[row, :used] = path.sides, path.shares
            crossed = [numbering.order[pair] for pair in path.chain]
            hops[row] = np.bincount(numbering.kind_index[crossed], minlength=kinds)[:kinds]
        return cls(edge, side, share, hops, np.array([float(path.network) for path in paths]))

    def __len__(self) -> int:
        return len(self.edge)

    def rows(self, which: Ints | NDArray[np.bool_]) -> Table:
        """Return some of the ways."""
        return Table(*(getattr(self, each.name)[which] for each in fields(self)))

    def only(self, kept: NDArray[np.bool_]) -> Table:
        """Return the ways with only the hops that are kept[way, hop] loaded."""
        return replace(self, share=np.where(kept, self.share, 0.0))

    def joined(self, other: Table) -> Table:
        """Return both tables, one below the other."""
        width = max(self.edge.shape[1], other.edge.shape[1])
        tables = self.padded(width), other.padded(width)
        return Table(
            *(np.concatenate([getattr(table, each.name) for table in tables]) for each in fields(self)),
        )

    def padded(self, width: int) -> Table:
        """Return the ways with so many hops each, those added carrying nothing."""
        room = ((0, 0), (0, width - self.edge.shape[1]))
        return replace(self, edge=np.pad(self.edge, room), side=np.pad(self.side, room), share=np.pad(self.share, room))


class Atlas:
    """The ways of a machine that were asked for so far."""

    def __init__(self, find: Callable[[int, int, int], Path], numbering: Numbering, shape: Key, kinds: int) -> None:
        """Take the function that finds a way, and how many places (source, target) and levels there are."""
        if shape[0] > _MOST_PLACES:
            raise InputError("topology", f"{shape[0]} GPUs in one node", f"at most {_MOST_PLACES}: let units repeat")
        self._find, self._numbering, self._shape, self._kinds = find, numbering, shape, kinds
        self._row = np.full(int(np.prod(shape)), -1, dtype=np.int64)
        self._table = Table.of((), numbering, kinds)

    def ways(self, sources: Ints, targets: Ints, levels: Ints) -> tuple[Table, Ints]:
        """Return the distinct ways between these places, and which of them each transfer takes. InputError if none."""
        _, places, height = self._shape
        rows = self._rows((sources * places + targets) * height + levels)
        used = np.bincount(rows, minlength=len(self._table)) > 0
        number = np.cumsum(used) - 1
        return self._table.rows(used), number[rows]

    def _rows(self, keys: Ints) -> Ints:
        """The row in the table of each key; ways that nobody asked for before are found."""
        rows = self._row[keys]
        if rows.size and rows.min() < 0:
            self._learn(np.unique(keys[rows < 0]))
            rows = self._row[keys]
        return rows

    def _learn(self, keys: Ints) -> None:
        sources, targets, levels = np.unravel_index(keys, self._shape)
        # One target after another: what lies before a target is searched once for all its sources.
        order = np.lexsort((sources, targets, levels))
        ways = [self._find(int(sources[i]), int(targets[i]), int(levels[i])) for i in order]
        self._row[keys[order]] = np.arange(len(keys)) + len(self._table)
        self._table = self._table.joined(Table.of(ways, self._numbering, self._kinds))
