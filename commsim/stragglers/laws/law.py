"""What must a law say of itself?"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.errors import InputError
from commsim.stragglers.laws.integral import Place, expected

if TYPE_CHECKING:
    from numpy.random import Generator

Floats = NDArray[np.float64]
Size = int | tuple[int, ...]


class Law(ABC):
    """The distribution of a delay in seconds, or of a factor.

    `tail` is the order below which its moments are finite (Pareto's exponent). `corners` are the chances of a larger
    value at which `at` jumps or bends: whoever integrates over it stops there.
    """

    @property
    def mean(self) -> float:
        """The mean of the law."""
        return expected(self, lambda value: value, power=1, place=Place(1, 1))

    @cached_property
    def sd(self) -> float:
        """The standard deviation; infinite where the tail is too long."""
        mean = self.mean
        return math.sqrt(expected(self, lambda value: (value - mean) ** 2, power=2, place=Place(1, 1)))

    @abstractmethod
    def at(self, below: Floats, above: Floats) -> Floats:
        """Return the value with these chances of a smaller and a larger one; they add up to 1, neither is 0."""

    @abstractmethod
    def below(self, value: ArrayLike) -> Floats:
        """Return the chance of a value no larger than this, right to the lower tail."""

    @abstractmethod
    def above(self, value: ArrayLike) -> Floats:
        """Return the chance of a value larger than this, right to the upper tail."""

    @property
    def support(self) -> tuple[float, float]:
        """The least and the largest value."""
        return 0.0, np.inf

    @property
    def tail(self) -> float:
        """The order below which moments are finite."""
        return np.inf

    @property
    def corners(self) -> tuple[float, ...]:
        """The chances of a larger value at which `at` jumps or bends."""
        return ()

    def quantile(self, chance: ArrayLike) -> Floats:
        """Return the value with this chance of a smaller one; InputError unless it lies between 0 and 1."""
        below = _chances(chance)
        return self.at(below, 1.0 - below)

    def exceeded(self, chance: ArrayLike) -> Floats:
        """Return the value with this chance of a larger one, however small; errors as in `quantile`."""
        above = _chances(chance)
        return self.at(1.0 - above, above)

    def sample(self, rng: Generator, size: Size) -> Floats:
        """Return so many independent draws."""
        below = np.maximum(rng.random(size), np.finfo(float).tiny)
        return self.at(below, 1.0 - below)


def between(law: object, **bounds: tuple[float, float]) -> None:
    """Refuse fields that are no finite numbers within their bounds (exclusive); InputError."""
    for name, (low, high) in bounds.items():
        given = getattr(law, name)
        if isinstance(given, bool) or not isinstance(given, int | float | np.number) or not low < given < high:
            where, finite = f"{type(law).__name__.lower()}: {name}", "" if high < np.inf else "a finite number "
            expected = f"between {low:g} and {high:g}" if high < np.inf else f"above {low:g}"
            raise InputError(where, given, f"{finite}{expected} belongs here".replace("above -inf ", ""))


def _chances(chance: ArrayLike) -> Floats:
    found = np.asarray(chance, dtype=float)
    if not np.all((found > 0) & (found < 1)):
        raise InputError("chance", found.tolist(), "between 0 and 1, both excluded, belongs here")
    return found
