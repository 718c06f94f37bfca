"""Who takes part, and how many groups act at once?

A group is a shape with strides, innermost first: `members=((8, 1), (4, 64))` are 8 neighbours of each of 4 places that
lie 64 ranks apart. `copies` are, in the same form, the groups that do the same at the same time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from commsim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from commsim.hardware.topology import Topology

Ints = NDArray[np.int64]
Dim = tuple[int, int]
"""Extent and stride."""


@dataclass(frozen=True)
class Layout:
    """The ranks of a group and of its copies; `irregular` lists the ranks of one group that has no shape."""

    members: tuple[Dim, ...]
    copies: tuple[Dim, ...] = ()
    irregular: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Refuse empty dimensions and ranks given twice; InputError."""
        for extent, stride in (*self.members, *self.copies):
            if extent < 1 or stride < 1:
                raise InputError("layout", (extent, stride), "an extent and a stride of at least 1 belong here")
        if len(set(self.irregular)) != len(self.irregular):
            raise InputError("layout", self.irregular, "each rank once belongs here")

    @classmethod
    def first(cls, ranks: int) -> Layout:
        """Return the group of the first so many ranks."""
        return cls(((ranks, 1),))

    @classmethod
    def of(cls, ranks: Iterable[int]) -> Layout:
        """Return the group of these ranks in this order."""
        listed = tuple(int(rank) for rank in ranks)
        if not listed:
            raise InputError("layout", listed, "at least one rank belongs in a group")
        return cls(((len(listed), 1),), irregular=listed)

    @property
    def size(self) -> int:
        """Ranks of one group."""
        return len(self.irregular) or math.prod(extent for extent, _ in self.members)

    @property
    def groups(self) -> int:
        """Groups that act at once."""
        return math.prod(extent for extent, _ in self.copies)

    @property
    def last(self) -> int:
        """The largest rank of all groups."""
        dims = self.copies if self.irregular else (*self.members, *self.copies)
        return max(self.irregular, default=0) + sum((extent - 1) * stride for extent, stride in dims)

    def ranks(self) -> Ints:
        """Return the ranks int[group, member]."""
        return _ranks(self)

    def within(self, unit: int) -> int:
        """Return the most consecutive members such that in every group each so many share one unit of so many ranks.

        It is the inner size at which a two-level algorithm splits the group. Where some groups lie across two units and
        others in one, it is what suits all: 8 for groups of 16 in units of 72.
        """
        return _within(self, unit)

    def on(self, topology: Topology, *, alone: bool = True) -> Layout:
        """Return the layout as it counts on a machine: folded, when it acts alone. InputError when it is too large."""
        if self.last >= topology.size:
            raise InputError("rank", self.last, f"the machine has the ranks 0 to {topology.size - 1}")
        return self.folded(tuple(span * topology.gpus_per_node for span in topology.spans)) if alone else self

    def folded(self, units: tuple[int, ...]) -> Layout:
        """Return the layout with the copies left out that only repeat what happens elsewhere.

        `units` are the ranks of one unit of each level of the machine. When all that acts inside one unit stays inside
        it, the copies in other units load other links in the same way and change no maximum: exact, not an estimate.
        """
        if self.irregular:
            return self
        kept: list[Dim] = []
        for place, (extent, stride) in enumerate(self.copies):
            others = (*self.members, *self.copies[:place], *self.copies[place + 1 :])
            kept += [(_period(extent, stride, others, units), stride)]
        return replace(self, copies=tuple(dim for dim in kept if dim[0] > 1))


def _period(extent: int, stride: int, others: tuple[Dim, ...], units: tuple[int, ...]) -> int:
    """The copies of a dimension that fill one unit, when everything else that strides less stays inside that unit."""
    if any(other > stride for _, other in others):
        return extent
    span = sum((e - 1) * s for e, s in others if s <= stride) + 1
    for unit in units:
        if unit % stride == 0 and span <= stride <= unit:
            return min(extent, unit // stride)
        if stride % unit == 0 and span <= unit:
            return 1
    return extent


@lru_cache(maxsize=512)
def _ranks(layout: Layout) -> Ints:
    members = np.array(layout.irregular, dtype=np.int64) if layout.irregular else _spread(layout.members)
    return _spread(layout.copies)[:, None] + members[None, :]


def _spread(dims: tuple[Dim, ...]) -> Ints:
    """All sums of one multiple of each stride, the first dimension fastest."""
    places = np.zeros(1, dtype=np.int64)
    for extent, stride in dims:
        places = (np.arange(extent)[:, None] * stride + places[None, :]).reshape(-1)
    return places


@lru_cache(maxsize=4096)
def _within(layout: Layout, unit: int) -> int:
    crossed = (np.diff(_ranks(layout) // unit, axis=1) != 0).any(axis=0)
    return int(np.gcd.reduce(np.append(np.flatnonzero(crossed) + 1, layout.size)))
