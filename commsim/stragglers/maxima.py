"""How long does one wait for the slowest of many?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from commsim.errors import InputError
from commsim.stragglers.laws.integral import Place, expected
from commsim.stragglers.laws.law import Floats, Law, Size

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import ArrayLike, NDArray

    Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Maximum(Law):
    """The largest of `of` independent draws of a law; with `spared`, the largest once so many are not waited for.

    It is a law like others, exact for any number of draws; a draw costs the same however large it is.
    """

    law: Law
    of: int
    spared: int = 0

    def __post_init__(self) -> None:
        """Refuse numbers that leave nobody to wait for; InputError."""
        for name, given, least in (("of", self.of, 1), ("spared", self.spared, 0)):
            if not isinstance(given, int | np.integer) or isinstance(given, bool) or given < least:
                raise InputError(f"maximum: {name}", given, f"a whole number of at least {least} belongs here")
        if self.spared >= self.of:
            raise InputError("maximum: spared", self.spared, f"fewer than the {self.of} draws belong here")

    @property
    def _place(self) -> Place:
        return Place(int(self.of - self.spared), int(self.of))

    @cached_property
    def mean(self) -> float:
        """E[max]."""
        return expected(self.law, lambda value: value, power=1, place=self._place)

    @cached_property
    def sd(self) -> float:
        """The standard deviation; infinite where the tail is too long."""
        return math.sqrt(expected(self.law, lambda value: (value - self.mean) ** 2, power=2, place=self._place))

    @property
    def support(self) -> tuple[float, float]:
        """That of the law."""
        return self.law.support

    @property
    def tail(self) -> float:
        """That of the law, times as many as would have to be so large."""
        return self.law.tail * (self.spared + 1)

    @property
    def corners(self) -> tuple[float, ...]:
        """The law's corners at their new chances."""
        corners = np.array(self.law.corners)
        seen = self._tails(np.log1p(-corners), np.log(corners))[1]
        return tuple(one for one in seen.tolist() if 0 < one < 1)

    def at(self, below: Floats, above: Floats) -> Floats:
        """Return the law's value at the chance below^(1/of), or where spared draws leave that chance."""
        below, above = np.asarray(below, dtype=float), np.asarray(above, dtype=float)
        if self.spared:
            x = self._solved(below, above)
            return self.law.at(np.exp(-np.logaddexp(0, -x)), np.exp(-np.logaddexp(0, x)))
        return self._of_power(np.where(above < below, np.log1p(-np.minimum(above, 0.5)), np.log(below)))

    def below(self, value: ArrayLike) -> Floats:
        """Return the chance that all but the spared draws are no larger."""
        return self._at_value(value)[0]

    def above(self, value: ArrayLike) -> Floats:
        """Return the chance that one more than the spared draws is larger."""
        return self._at_value(value)[1]

    def sample(self, rng: Generator, size: Size) -> Floats:
        """Return maxima drawn directly: beta draws of their chance, as quotients of gamma draws for the deep tail."""
        if not self.spared:
            return self._of_power(-rng.standard_exponential(size))
        low, high = rng.standard_gamma(self._place.k, size), rng.standard_gamma(self._place.over, size)
        found: Floats = self.law.at(low / (low + high), high / (low + high))
        return found

    def _of_power(self, log_below: Floats) -> Floats:
        each = log_below / self.of
        return self.law.at(np.exp(each), np.maximum(-np.expm1(each), np.finfo(float).tiny))

    def _at_value(self, value: ArrayLike) -> tuple[Floats, Floats]:
        with np.errstate(divide="ignore"):
            return self._tails(np.log(self.law.below(value)), np.log(self.law.above(value)))

    def _tails(self, below: Floats, above: Floats) -> tuple[Floats, Floats]:
        """The chances that at most `spared` draws are larger, and that more are, from the logarithms for one draw."""
        if not self.spared:
            at_most = np.where(above < below, np.log1p(-np.exp(above)), below) * self.of
            return np.exp(at_most), -np.expm1(at_most)
        larger = np.arange(self.of + 1)
        with np.errstate(invalid="ignore"):
            each = _log_choose(self.of) + _times(larger, above) + _times(self.of - larger, below)
        chances: Floats = np.exp(each)
        few: Floats = chances[..., : self.spared + 1].sum(-1)
        many: Floats = chances[..., self.spared + 1 :].sum(-1)
        return few, many

    def _solved(self, below: Floats, above: Floats) -> Floats:
        """Where the nearer tail has its chance, by bisection over x = ln(below / above) of one draw."""
        low, high = np.full(below.shape, -690.0), np.full(below.shape, 690.0)
        for _ in range(_HALVINGS):
            x = (low + high) / 2
            few, many = self._tails(-np.logaddexp(0, -x), -np.logaddexp(0, x))
            too_low = np.where(below < above, few < below, many > above)
            low, high = np.where(too_low, x, low), np.where(too_low, high, x)
        found: Floats = (low + high) / 2
        return found


_HALVINGS = 60
_DRAWS = 2**17
"""Draws in memory at a time: they stay in cache."""


def one_by_one(law: Law, of: int, rng: Generator, size: int) -> Floats:
    """Return maxima [size] of so many draws, every one of which is made: what `Maximum` spares, and is held against.

    The largest value is that whose chance of a larger one is the smallest, so that only the chances are drawn.
    """
    found = np.empty(size)
    rows = max(1, _DRAWS // of)
    chances = np.empty((rows, of))
    for first in range(0, size, rows):
        rng.random(out=chances)
        found[first : first + rows] = chances.min(axis=1)[: size - first]
    above = np.maximum(found, np.finfo(float).tiny)
    return law.at(1.0 - above, above)


def hit_at_all(chance: float, of: int) -> float:
    """Return the chance that any of so many is hit, 1 - (1 - chance)^of (Dean and Barroso 2013)."""
    return -math.expm1(of * math.log1p(-chance)) if chance < 1 else 1.0


def domain(law: Law) -> str:
    """Return the name of the law that the maximum of ever more draws comes near to: a label, not a way to compute."""
    low, high = law.support
    if low == high:
        return "constant"
    if np.isfinite(law.tail):
        return "Frechet"
    return "Weibull" if np.isfinite(high) else "Gumbel"


def _times(number: Ints, log_chance: Floats) -> Floats:
    """Number x logarithm [..., number], 0 where the number is 0 whatever the chance."""
    product: Floats = np.asarray(log_chance)[..., None] * number
    return np.where(number == 0, 0.0, product)


def _log_choose(n: int) -> Floats:
    """ln(n over i), [i]."""
    i = np.arange(1, n + 1)
    return np.concatenate([[0.0], np.cumsum(np.log((n - i + 1) / i))])
