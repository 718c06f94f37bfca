"""Is a measured curve good, low or impossible beside another one, row by row and as a whole?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from commsim.units import show_size

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from commsim.libraries.library import Floats
    from commsim.units import Bytes, BytesPerSecond, Share

Verdict = Literal["good", "low", "impossible", "unknown"]
SMALL, LARGE = 2.0**20, 2.0**26
"""Bytes below which latency, and from which on bandwidth, is what counts."""
RANGES = ((LARGE, "at 64 MiB and above"), (SMALL, "at 1 MiB and above"), (0.0, "below 1 MiB"))
"""The sizes that decide, the first of which a table has any."""
IN_DOUBT = 1.02
"""How far beyond what is possible a figure may be: rounding, and clocks."""
NEIGHBOURS = 3
"""Rows in a row that make a dip where the rest is as expected; a single one may be a misprint."""


@dataclass(frozen=True)
class Tolerance:
    """The least share of the expected bandwidth that is right below SMALL, below LARGE, and above; and in a dip."""

    small: Share
    middle: Share
    large: Share
    dip: Share

    def at(self, sizes: Floats) -> Floats:
        """Return it for each size, B."""
        return np.where(sizes < SMALL, self.small, np.where(sizes < LARGE, self.middle, self.large))


@dataclass(frozen=True)
class Judged:
    """A row beside what is expected of it: bus bandwidths, B/s; None where nothing is known of the machine."""

    size: Bytes
    busbw: BytesPerSecond
    verdict: Verdict
    expected: BytesPerSecond | None = None
    low: BytesPerSecond | None = None
    high: BytesPerSecond | None = None


@dataclass(frozen=True, eq=False)
class Held:
    """Measured times beside expected ones, and beside the least that are possible, s, [row].

    `whose` says in words what the expected times are.
    """

    sizes: Floats
    measured: Floats
    expected: Floats
    least: Floats
    tolerance: Tolerance
    factor: float
    whose: str = "the expected bandwidth"

    @cached_property
    def reached(self) -> Floats:
        """The share of the expected bandwidth that was measured, [row]."""
        return self.expected / self.measured

    @cached_property
    def _beyond(self) -> NDArray[np.bool_]:
        return self.least > self.measured * IN_DOUBT

    @cached_property
    def rows(self) -> tuple[Judged, ...]:
        """Each row with its verdict."""
        share, volume = self.tolerance.at(self.sizes), self.sizes * self.factor
        busbw, expected = volume / self.measured, volume / self.expected
        most = np.divide(volume, self.least, out=np.full(len(volume), np.inf), where=self.least > 0)
        verdicts = np.where(self._beyond, "impossible", np.where(self.reached < share, "low", "good"))
        columns = (self.sizes, busbw, verdicts, expected, expected * share, np.minimum(expected / share, most))
        return tuple(Judged(*row) for row in zip(*(column.tolist() for column in columns)))

    @property
    def impossible(self) -> list[str]:
        """Why the table cannot be true; nothing where it can. A single row of many may be a misprint."""
        rows = int(self._beyond.sum())
        if not rows or (rows == 1 and len(self.sizes) > NEIGHBOURS):
            return []
        worst = float((self.least / self.measured).max())
        return [f"{rows} of {len(self.sizes)} rows are up to {worst:.3g} times what the links can carry"]

    @property
    def usual(self) -> str:
        """How much of what is expected was reached where transfers count, in words."""
        share, where = self._counting
        return f"{share:.0%} of {self.whose} {where}"

    @property
    def low(self) -> list[str]:
        """Why the table is low: where transfers count if it has such rows, else as a whole; or in a dip."""
        rows = self._rows_that_count
        if np.median(self.reached[rows] / self.tolerance.at(self.sizes[rows])) < 1:
            return [self.usual]
        return self._dip

    @property
    def _rows_that_count(self) -> NDArray[np.bool_]:
        """The rows at 64 MiB and above, else those at 1 MiB and above, else all."""
        return next(rows for rows in (self.sizes >= least for least, _ in RANGES) if rows.any())

    @property
    def _counting(self) -> tuple[Share, str]:
        rows = self._rows_that_count
        where = next(where for least, where in RANGES if (self.sizes >= least).any())
        return float(np.median(self.reached[rows])), where

    @property
    def _dip(self) -> list[str]:
        """The rows in a row that are low, of those where transfers count."""
        low = (self.reached < self.tolerance.dip) & (self.sizes >= SMALL)
        starts = [n for n in range(len(low) - NEIGHBOURS + 1) if low[n : n + NEIGHBOURS].all()]
        if not starts:
            return []
        first, last = starts[0], starts[-1] + NEIGHBOURS - 1
        reached = float(np.median(self.reached[first : last + 1]))
        ends = f"{show_size(self.sizes[first])} to {show_size(self.sizes[last])}"
        return [f"{reached:.0%} of {self.whose} from {ends}"]
