"""What is always the same, one of a few values, or as likely anywhere in a range?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from commsim.errors import InputError
from commsim.stragglers.laws.law import Floats, Law, between

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@dataclass(frozen=True)
class Constant(Law):
    """One value, always."""

    value: float

    def __post_init__(self) -> None:
        """Refuse what is no finite number; InputError."""
        between(self, value=(-np.inf, np.inf))

    @property
    def mean(self) -> float:
        """The value."""
        return self.value

    @property
    def support(self) -> tuple[float, float]:
        """The value alone."""
        return self.value, self.value

    def at(self, below: Floats, above: Floats) -> Floats:  # noqa: ARG002 - every chance has the same value
        """Return the value."""
        return np.full(np.shape(below), float(self.value))

    def below(self, value: ArrayLike) -> Floats:
        """Return 1 from the value on."""
        return (np.asarray(value) >= self.value).astype(float)

    def above(self, value: ArrayLike) -> Floats:
        """Return 1 before the value."""
        return (np.asarray(value) < self.value).astype(float)


@dataclass(frozen=True)
class Uniform(Law):
    """Anything from `low` to `high`, all as likely."""

    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        """Refuse an empty range; InputError."""
        between(self, low=(-np.inf, np.inf), high=(-np.inf, np.inf))
        if not self.low < self.high:
            raise InputError("uniform: (low, high)", (self.low, self.high), "the lower bound belongs first")

    @property
    def mean(self) -> float:
        """The middle."""
        return (self.low + self.high) / 2

    @property
    def support(self) -> tuple[float, float]:
        """The bounds."""
        return self.low, self.high

    def at(self, below: Floats, above: Floats) -> Floats:
        """Return the place between the bounds."""
        found: Floats = self.low * above + self.high * below
        return found

    def below(self, value: ArrayLike) -> Floats:
        """Return the part of the range up to the value."""
        found: Floats = np.clip((np.asarray(value) - self.low) / (self.high - self.low), 0.0, 1.0)
        return found

    def above(self, value: ArrayLike) -> Floats:
        """Return the part of the range beyond the value."""
        found: Floats = np.clip((self.high - np.asarray(value)) / (self.high - self.low), 0.0, 1.0)
        return found


@dataclass(frozen=True)
class Discrete(Law):
    """One of a few values, values[i] with chances[i]."""

    values: tuple[float, ...]
    chances: tuple[float, ...]

    def __post_init__(self) -> None:
        """Refuse values that do not climb, and chances that are negative or do not add up to 1; InputError."""
        values, chances = np.array(self.values, dtype=float), np.array(self.chances, dtype=float)
        if (
            values.shape != chances.shape
            or not values.size
            or not np.isfinite(values).all()
            or np.any(np.diff(values) <= 0)
        ):
            raise InputError(
                "discrete: values", self.values, "finite values that climb, one for each chance, belong here"
            )
        if not np.all(chances >= 0) or not np.isclose(chances.sum(), 1.0, rtol=0, atol=1e-9):
            raise InputError("discrete: chances", self.chances, "chances from 0 on that add up to 1 belong here")

    @cached_property
    def _table(self) -> tuple[Floats, Floats, Floats]:
        """The values, and the chances of one no larger and of a larger one, each summed from its own end."""
        chances = np.array(self.chances)
        over = np.append(np.cumsum(chances[:0:-1])[::-1], 0.0)
        return np.array(self.values), np.minimum(np.cumsum(chances), 1.0), over

    @property
    def mean(self) -> float:
        """The mean by chance."""
        return float(np.dot(self.values, self.chances))

    @property
    def support(self) -> tuple[float, float]:
        """The first value and the last."""
        return self.values[0], self.values[-1]

    @property
    def corners(self) -> tuple[float, ...]:
        """The chance of a larger one than each value."""
        return tuple(one for one in self._table[2].tolist() if 0 < one < 1)

    def at(self, below: Floats, above: Floats) -> Floats:
        """Return the first value that leaves no more than this above, by the nearer tail's own chance."""
        values, under, over = self._table
        low = np.searchsorted(under[:-1], below, side="left")
        high = values.size - 1 - np.searchsorted(over[-2::-1], above, side="right")
        found: Floats = values[np.where(np.asarray(below) < above, low, high)]
        return found

    def below(self, value: ArrayLike) -> Floats:
        """Return the chance of the values up to this one."""
        found: Floats = np.append(0.0, self._table[1])[np.searchsorted(self._table[0], value, side="right")]
        return found

    def above(self, value: ArrayLike) -> Floats:
        """Return the chance of the values beyond this one."""
        found: Floats = np.append(1.0, self._table[2])[np.searchsorted(self._table[0], value, side="right")]
        return found
