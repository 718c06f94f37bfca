"""How long do several exponential waits take together?

The incomplete gamma function is computed here, by its series and its continued fraction. scipy has it too, but nothing
else that an estimate with stragglers needs asks for scipy, and the inverse in the deep tail would still be ours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from commsim.stragglers.laws.law import Floats, Law, Size, between
from commsim.stragglers.laws.normal import deviations

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import ArrayLike


@dataclass(frozen=True)
class Gamma(Law):
    """The sum of `shape` exponential waits (which need not be a whole number); the larger, the nearer to normal."""

    shape: float
    mean: float = 1.0

    def __post_init__(self) -> None:
        """Refuse a shape or a mean that is not positive, or a shape that is as good as normal; InputError."""
        between(self, shape=(0.0, 1e6), mean=(0.0, np.inf))

    @property
    def scale(self) -> float:
        """The mean of one wait."""
        return self.mean / self.shape

    @cached_property
    def sd(self) -> float:
        """The standard deviation, in closed form: the integral takes seconds where the shape is large."""
        return self.mean / math.sqrt(self.shape)

    def at(self, below: Floats, above: Floats) -> Floats:
        """Return the value by Newton's method on the logarithm of the nearer tail, which is concave."""
        upper = above < below
        wanted = np.log(np.where(upper, above, below))
        x = _first_guess(self.shape, below, above)
        for _ in range(_NEWTON):
            found = _log_tails(self.shape, x)
            now = np.where(upper, found[1], found[0])
            slope = np.where(upper, -1.0, 1.0) * np.exp(_log_density(self.shape, x) + np.log(x) - now)
            change = np.clip((wanted - now) / slope, -1.0, 1.0)
            x = np.maximum(x * np.exp(change), np.finfo(float).tiny)
            if np.all(np.abs(change) < _CLOSE):
                break
        return self.scale * x

    def below(self, value: ArrayLike) -> Floats:
        """Return the regularised lower incomplete gamma function (DLMF 8.2.4)."""
        return self._tails(value)[0]

    def above(self, value: ArrayLike) -> Floats:
        """Return the regularised upper incomplete gamma function (DLMF 8.2.4)."""
        return self._tails(value)[1]

    def sample(self, rng: Generator, size: Size) -> Floats:
        """Return draws by numpy's own way."""
        return rng.gamma(self.shape, self.scale, size)

    def _tails(self, value: ArrayLike) -> tuple[Floats, Floats]:
        x = np.asarray(value, dtype=float) / self.scale
        lower, upper = _log_tails(self.shape, np.maximum(x, np.finfo(float).tiny))
        return np.where(x > 0, np.exp(lower), 0.0), np.where(x > 0, np.exp(upper), 1.0)


_NEWTON, _CLOSE, _TERMS = 100, 1e-13, 20_000


def _first_guess(shape: float, below: Floats, above: Floats) -> Floats:
    """Wilson and Hilferty's cube (1931), and the power that a small value follows (DLMF 8.7.1)."""
    cube = 1 - 1 / (9 * shape) + deviations(below, above) / (3 * math.sqrt(shape))
    power = np.exp(np.maximum((np.log(below) + math.lgamma(shape + 1)) / shape, -690.0))
    guess: Floats = np.where(cube > _SMALL, shape * np.maximum(cube, _SMALL) ** 3, power)
    return guess


_SMALL = 0.3


def _log_density(shape: float, x: Floats) -> Floats:
    found: Floats = (shape - 1) * np.log(x) - x - math.lgamma(shape)
    return found


def _log_tails(shape: float, x: Floats) -> tuple[Floats, Floats]:
    """The logarithms of the lower and upper function: each from the formula that converges, else by the other."""
    series, x = x < shape + 1, np.asarray(x)
    lower, upper = np.empty_like(x), np.empty_like(x)
    front = _log_density(shape, x) + np.log(x)
    lower[series] = front[series] + np.log(_series(shape, x[series]))
    upper[~series] = front[~series] + np.log(_fraction(shape, x[~series]))
    upper[series], lower[~series] = _other(lower[series]), _other(upper[~series])
    return lower, upper


def _other(log_chance: Floats) -> Floats:
    found: Floats = np.log(np.maximum(-np.expm1(np.minimum(log_chance, 0.0)), np.finfo(float).tiny))
    return found


def _series(shape: float, x: Floats) -> Floats:
    """DLMF 8.7.1: the sum of x^k / (shape (shape + 1) ... (shape + k))."""
    term = np.full_like(x, 1 / shape)
    total = term.copy()
    for k in range(1, _TERMS):
        term = term * x / (shape + k)
        total += term
        if np.all(term <= total * _CLOSE):
            break
    return total


def _fraction(shape: float, x: Floats) -> Floats:
    """DLMF 8.9.2 by the modified method of Lentz (Thompson and Barnett 1986)."""
    b = x + 1 - shape
    c, d = np.full_like(x, 1e300), 1 / b
    total = d.copy()
    for k in range(1, _TERMS):
        b = b + 2
        d = 1 / (k * (shape - k) * d + b)
        c = b + k * (shape - k) / c
        total *= c * d
        if np.all(np.abs(c * d - 1) < _CLOSE):
            break
    return total
