"""Which operation does a table show, and on how many ranks?

Old logs never say it. The columns leave few choices: a reduction is printed or not, a root or not, bytes are those of
the elements or those times the ranks, and bus over algorithm bandwidth is 2(n-1)/n, (n-1)/n or 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from commsim.collectives.kinds import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    BROADCAST,
    COLLECTIVES,
    REDUCE,
    REDUCE_SCATTER,
    SEND_RECV,
    Collective,
)
from commsim.measurement.dtypes import ITEM_BYTES
from commsim.measurement.rounding import bandwidth_doubt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commsim.measurement.records import Candidate, Row, Timing


@dataclass(frozen=True)
class Marks:
    """What nccl-tests prints beside an operation: a reduction, a root, elements of one rank, wrong ones in place."""

    redop: frozenset[bool]
    root: bool
    per_rank: bool
    in_place_checked: bool = True


_EITHER, _YES, _NO = frozenset({True, False}), frozenset({True}), frozenset({False})
MARKS: dict[str, Marks] = {
    ALL_REDUCE.name: Marks(_YES, root=False, per_rank=False),
    ALL_GATHER.name: Marks(_NO, root=False, per_rank=True),
    REDUCE_SCATTER.name: Marks(_YES, root=False, per_rank=True),
    ALL_TO_ALL.name: Marks(_NO, root=False, per_rank=True, in_place_checked=False),
    BROADCAST.name: Marks(_NO, root=True, per_rank=False),
    REDUCE.name: Marks(_YES, root=True, per_rank=False),
    SEND_RECV.name: Marks(_EITHER, root=False, per_rank=False, in_place_checked=False),
}
_NEW_HEADS = frozenset({"redop", "root"})
_OLD_HEADS: dict[str, frozenset[str]] = {
    ALL_REDUCE.name: frozenset({"redop"}),
    ALL_GATHER.name: frozenset(),
    REDUCE_SCATTER.name: frozenset({"redop"}),
    ALL_TO_ALL.name: frozenset({"redop"}),  # and nothing under it
    BROADCAST.name: frozenset({"root"}),
    REDUCE.name: _NEW_HEADS,
    SEND_RECV.name: frozenset(),
}
"""The columns between type and time before 2.13; since then every test has both."""


@dataclass(frozen=True)
class Columns:
    """What a table shows of its operation; `heads` are the headings between type and time, None without a heading."""

    rows: Sequence[Row]
    dtype: str
    redop: str = "none"
    root: int = -1
    ranks: int | None = None
    heads: frozenset[str] | None = None

    def candidates(self, *, trusting: bool = True) -> tuple[Candidate, ...]:
        """Return the operations that print such a table, each with the ranks that it then had.

        Without `trusting` the printed bandwidths are left aside: what fits then is contradicted by them.
        """
        marked = [kind for kind in COLLECTIVES.values() if self._has_heads(kind) and self._has_marks(MARKS[kind.name])]
        counts = [(kind, self.ranks_of(kind, trusting=trusting)) for kind in marked]
        return tuple((kind, found[0] if len(found) == 1 else None) for kind, found in counts if found)

    def _has_heads(self, kind: Collective) -> bool:
        """Whether the test of an operation prints such a heading."""
        return self.heads in {None, _NEW_HEADS, _OLD_HEADS[kind.name]}

    def _has_marks(self, marks: Marks) -> bool:
        """Whether the columns beside the figures are those of an operation."""
        if not self.rows:
            return True
        checked = any(row.in_place and row.in_place.wrong is not None for row in self.rows)
        return (
            (self.redop != "none") in marks.redop
            and (self.root >= 0) == marks.root
            and (marks.in_place_checked or not checked)
        )

    def ranks_of(self, kind: Collective, *, trusting: bool = True) -> list[int | None]:
        """Return the ranks with which every row fits an operation; [None] when they all do, [] when none does."""
        known: set[int] | None = {self.ranks} if self.ranks else None
        by_size = self._by_size(per_rank=MARKS[kind.name].per_rank)
        by_ratio = self._by_ratio(kind, known or by_size) if trusting else None
        for found in (by_size, by_ratio):
            if found is not None:
                known = found if known is None else known & found
        return [None] if known is None else [*sorted(known)]

    def _by_size(self, *, per_rank: bool) -> set[int] | None:
        """The ranks by size over elements: None when they cannot be told, empty when sizes do not fit."""
        item = ITEM_BYTES.get(self.dtype)
        pairs = {(row.size, row.count * item) for row in self.rows if row.size} if item else set()
        if not pairs:
            return None
        if not per_rank:
            return None if all(size == own for size, own in pairs) else set()
        shares = {size / own if own else math.nan for size, own in pairs}
        return {int(share) for share in shares if share.is_integer()} if len(shares) == 1 else set()

    def _by_ratio(self, kind: Collective, known: set[int] | None) -> set[int] | None:
        """The ranks by bus over algorithm bandwidth, of the `known` ones or of all; None when they cannot be told."""
        low, high = self._ratio()
        if known is not None:
            return {n for n in known if low * (1 - _SLACK) <= kind.factor(n) <= high * (1 + _SLACK)}
        if kind is not ALL_REDUCE:
            return None if low <= 1 and high >= kind.factor(2) else set()
        first = max(2, math.ceil(2 / (2 - min(low, 1.999))))
        last = 2 / (2 - high) if high < 2 else math.inf  # noqa: PLR2004 - 2(n-1)/n tends to 2
        if last - first > _MANY:
            return None
        return set(range(first, math.floor(last) + 1))

    def _ratio(self) -> tuple[float, float]:
        """The lowest and highest bus over algorithm bandwidth that all printed figures allow."""
        sides = [side for row in self.rows if row.size for side in (row.out_of_place, row.in_place) if side]
        ranges = [_ratio_of(side) for side in sides]
        lows, highs = [low for low, _ in ranges], [high for _, high in ranges]
        return (max(lows, default=0.0), min(highs, default=math.inf))


_MANY = 8
_SLACK = 1e-3  # averages over runs agree a little less than the figures of one


def _ratio_of(side: Timing) -> tuple[float, float]:
    """The lowest and highest ratio that two rounded figures allow."""
    if not side.algbw or side.busbw is None:
        return 0.0, math.inf
    over, under = side.algbw + bandwidth_doubt(side.algbw), side.algbw - bandwidth_doubt(side.algbw)
    doubt = bandwidth_doubt(side.busbw)
    return max(0.0, side.busbw - doubt) / over, (side.busbw + doubt) / under if under > 0 else math.inf


def named(text: str) -> Collective | None:
    """Return the operation that a program or file of that name runs, if one is known by it: `all_gather_perf_mpi`."""
    plain = "".join(letter for letter in text.lower() if letter.isalnum())
    names = {"".join(c for c in alias if c.isalnum()): kind for kind in COLLECTIVES.values() for alias in _names(kind)}
    found = {kind.name for name, kind in names.items() if name in plain}
    found -= {REDUCE.name} if found & {ALL_REDUCE.name, REDUCE_SCATTER.name} else set()
    return COLLECTIVES[found.pop()] if len(found) == 1 else None


def _names(kind: Collective) -> tuple[str, ...]:
    return (kind.name, *(alias for alias in kind.aliases if alias not in {"send", "recv"}))
