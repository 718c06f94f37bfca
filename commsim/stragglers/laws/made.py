"""Which laws are made of others?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from commsim.errors import InputError
from commsim.stragglers.laws.law import Floats, Law, Size, between

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import ArrayLike

_LEAST = np.finfo(float).tiny


@dataclass(frozen=True)
class Rare(Law):
    """What happens by chance: with `chance` a value of the law, else the value `otherwise` (1, for a factor)."""

    chance: float
    law: Law
    otherwise: float = 1.0

    def __post_init__(self) -> None:
        """Refuse a chance below 0 or above 1; InputError."""
        if not isinstance(self.chance, int | float) or not 0 <= self.chance <= 1:
            raise InputError("rare: chance", self.chance, "between 0 and 1 belongs here")
        between(self, otherwise=(-np.inf, np.inf))

    @property
    def mean(self) -> float:
        """The mean of both."""
        return self.chance * self.law.mean + (1 - self.chance) * self.otherwise

    @property
    def support(self) -> tuple[float, float]:
        """Both together."""
        low, high = self.law.support
        seen = ((low, high) if self.chance else (), (self.otherwise,) if self.chance < 1 else ())
        values = [value for one in seen for value in one]
        return min(values), max(values)

    @property
    def tail(self) -> float:
        """That of the law, if it can happen."""
        return self.law.tail if self.chance else np.inf

    @property
    def corners(self) -> tuple[float, ...]:
        """Both ends of the jump, and the law's own corners above and below it."""
        lower, upper = self._ends
        beyond = [one * self.chance for one in self.law.corners]
        own = [one if one < upper else one + 1 - self.chance for one in beyond]
        return tuple(one for one in (*own, upper, 1 - lower) if 0 < one < 1)

    @cached_property
    def _ends(self) -> tuple[float, float]:
        """The chance of a value below `otherwise`, and of one above it."""
        lower, upper = self.law.below(self.otherwise), self.law.above(self.otherwise)
        return self.chance * float(lower), self.chance * float(upper)

    def at(self, below: Floats, above: Floats) -> Floats:
        """Return the law's value on either side of the jump."""
        below, above = np.asarray(below), np.asarray(above)
        found = np.full(below.shape, float(self.otherwise))
        lower, upper = self._ends
        for low in (below < lower, above < upper):
            if low.any():
                found[low] = self.law.at(*self._within(below[low], above[low]))
        return found

    def _within(self, below: Floats, above: Floats) -> tuple[Floats, Floats]:
        """The chances within the law of values that have these chances in all."""
        lower, upper = below / self.chance, above / self.chance
        nearer = lower < upper
        chances = np.where(nearer, lower, 1 - upper), np.where(nearer, 1 - lower, upper)
        return np.maximum(chances[0], _LEAST), np.maximum(chances[1], _LEAST)

    def below(self, value: ArrayLike) -> Floats:
        """Return the chance of both."""
        found: Floats = self.chance * self.law.below(value) + (1 - self.chance) * (np.asarray(value) >= self.otherwise)
        return found

    def above(self, value: ArrayLike) -> Floats:
        """Return the chance of both."""
        found: Floats = self.chance * self.law.above(value) + (1 - self.chance) * (np.asarray(value) < self.otherwise)
        return found

    def sample(self, rng: Generator, size: Size) -> Floats:
        """Return `otherwise`, and draws of the law where it happens."""
        found = np.full(size, float(self.otherwise))
        happens = rng.random(size) < self.chance
        found[happens] = self.law.sample(rng, int(np.count_nonzero(happens)))
        return found


@dataclass(frozen=True)
class Bounded(Law):
    """What is left of a law between two bounds, as after screening: values outside are drawn again."""

    law: Law
    low: float = -np.inf
    high: float = np.inf

    def __post_init__(self) -> None:
        """Refuse bounds between which the law has nothing; InputError."""
        if np.isnan(self.low) or np.isnan(self.high) or not self.low < self.high:
            raise InputError("bounded: (low, high)", (self.low, self.high), "the lower bound belongs first")
        if self._inside <= 0:
            raise InputError("bounded: (low, high)", (self.low, self.high), "the law has no value between them")

    @cached_property
    def _inside(self) -> float:
        return float(1 - self._lost[0] - self._lost[1])

    @cached_property
    def _lost(self) -> tuple[float, float]:
        """The chance of a value below the bounds, and of one above them."""
        lower = float(self.law.below(self.low)) if np.isfinite(self.low) else 0.0
        return lower, float(self.law.above(self.high)) if np.isfinite(self.high) else 0.0

    @property
    def support(self) -> tuple[float, float]:
        """The bounds, where the law reaches them."""
        low, high = self.law.support
        return max(low, self.low), min(high, self.high)

    @property
    def tail(self) -> float:
        """None if there is an upper bound, else the law's own."""
        return np.inf if np.isfinite(self.high) else self.law.tail

    @property
    def corners(self) -> tuple[float, ...]:
        """The law's own corners, seen between the bounds."""
        seen = ((one - self._lost[1]) / self._inside for one in self.law.corners)
        return tuple(one for one in seen if 0 < one < 1)

    def at(self, below: Floats, above: Floats) -> Floats:
        """Return the law's value at the chances that are left."""
        lower, upper = (lost + self._inside * chance for lost, chance in zip(self._lost, (below, above)))
        found: Floats = np.clip(self.law.at(lower, upper), self.low, self.high)
        return found

    def below(self, value: ArrayLike) -> Floats:
        """Return the chance among what is left."""
        found: Floats = np.clip((self.law.below(value) - self._lost[0]) / self._inside, 0.0, 1.0)
        return found

    def above(self, value: ArrayLike) -> Floats:
        """Return the chance among what is left."""
        found: Floats = np.clip((self.law.above(value) - self._lost[1]) / self._inside, 0.0, 1.0)
        return found
