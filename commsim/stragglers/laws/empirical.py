"""What did the machine do?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from commsim.errors import InputError
from commsim.stragglers.laws.law import Floats, Law

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike


@dataclass(frozen=True)
class Empirical(Law):
    """A law known by its quantiles: values[i] has the chance levels[i] of a smaller one; between them, a straight line.

    The first level is 0 and the last 1: nothing is invented beyond the largest value that was seen.
    """

    values: tuple[float, ...]
    levels: tuple[float, ...]

    def __post_init__(self) -> None:
        """Refuse levels that do not climb from 0 to 1, and values that fall or are not finite; InputError."""
        values, levels = np.array(self.values, dtype=float), np.array(self.levels, dtype=float)
        if values.shape != levels.shape or values.size < 2:  # noqa: PLR2004 - a line has two ends
            raise InputError("empirical: values", len(self.values), "one for each level, and two at least, belong here")
        if levels[0] != 0 or levels[-1] != 1 or not np.all(np.diff(levels) > 0):
            raise InputError("empirical: levels", self.levels, "levels that climb from 0 to 1 belong here")
        if not np.isfinite(values).all() or np.any(np.diff(values) < 0):
            raise InputError("empirical: values", self.values, "finite values that do not fall belong here")

    @classmethod
    def of(cls, samples: ArrayLike) -> Empirical:
        """Return the law of a measured run: as likely between any two neighbours of the sorted samples."""
        values = np.sort(np.asarray(samples, dtype=float), axis=None)
        if values.size == 1:
            values = np.repeat(values, 2)
        return cls(tuple(values.tolist()), tuple(np.linspace(0.0, 1.0, values.size).tolist()))

    @classmethod
    def quantiles(cls, values: Sequence[float], levels: Sequence[float], largest: float | None = None) -> Empirical:
        """Return the law from a table; with `largest`, the table may stop early and that value has level 1."""
        known = tuple(levels[: len(values)])
        if largest is not None and known[-1] < 1:
            return cls((*values, largest), (*known, 1.0))
        return cls(tuple(values), known)

    @cached_property
    def _table(self) -> tuple[Floats, Floats, Floats]:
        levels = np.array(self.levels)
        return np.array(self.values), levels, 1.0 - levels

    @property
    def mean(self) -> float:
        """The mean of the straight lines."""
        values, levels, _ = self._table
        return float(np.sum(np.diff(levels) * (values[1:] + values[:-1]) / 2))

    @property
    def support(self) -> tuple[float, float]:
        """What was seen."""
        return self.values[0], self.values[-1]

    @property
    def corners(self) -> tuple[float, ...]:
        """All levels inside."""
        return tuple(self._table[2][1:-1].tolist())

    def at(self, below: Floats, above: Floats) -> Floats:
        """Return the value between its neighbours, from the nearer tail's own chance."""
        values, levels, over = self._table
        low, high = np.interp(below, levels, values), np.interp(above, over[::-1], values[::-1])
        return np.where(below < above, low, high)

    def below(self, value: ArrayLike) -> Floats:
        """Return the level of the value; where the law jumps, the upper one."""
        values, levels, _ = self._table
        ends = np.searchsorted(values, value, side="right")
        left = np.clip(ends - 1, 0, values.size - 2)
        width = values[left + 1] - values[left]
        part = np.clip((np.asarray(value) - values[left]) / np.where(width > 0, width, 1.0), 0.0, 1.0)
        inside = levels[left] + part * (levels[left + 1] - levels[left])
        return np.where(ends == 0, 0.0, np.where(ends == values.size, 1.0, inside))

    def above(self, value: ArrayLike) -> Floats:
        """Return what the level of the value leaves."""
        return 1.0 - self.below(value)
