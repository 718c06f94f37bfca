"""What waits with a hazard that grows, stays or falls, and what has no scale?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from commsim.errors import InputError
from commsim.stragglers.laws.law import Floats, Law, Size, between

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import ArrayLike


@dataclass(frozen=True)
class Weibull(Law):
    """A stretched exponential: `shape` 1 is the exponential law, below 1 the tail is longer, above 1 shorter."""

    shape: float
    mean: float = 1.0

    def __post_init__(self) -> None:
        """Refuse a shape or a mean that is not positive; InputError."""
        between(self, shape=(0.01, np.inf), mean=(0.0, np.inf))

    @property
    def scale(self) -> float:
        """The value that 1 in e exceeds."""
        return self.mean / math.gamma(1 + 1 / self.shape)

    def at(self, below: Floats, above: Floats) -> Floats:
        """Return scale (-ln above)^(1/shape)."""
        hazard = np.where(above < below, -np.log(above), -np.log1p(-np.minimum(below, 0.5)))
        found: Floats = self.scale * hazard ** (1 / self.shape)
        return found

    def below(self, value: ArrayLike) -> Floats:
        """Return 1 - exp(-(value/scale)^shape)."""
        found: Floats = -np.expm1(-self._hazard(value))
        return found

    def above(self, value: ArrayLike) -> Floats:
        """Return exp(-(value/scale)^shape)."""
        found: Floats = np.exp(-self._hazard(value))
        return found

    def sample(self, rng: Generator, size: Size) -> Floats:
        """Return powers of exponential draws."""
        found: Floats = self.scale * rng.standard_exponential(size) ** (1 / self.shape)
        return found

    def _hazard(self, value: ArrayLike) -> Floats:
        found: Floats = (np.maximum(value, 0.0) / self.scale) ** self.shape
        return found


@dataclass(frozen=True)
class Pareto(Law):
    """A power: the chance of more than x is (least/x)^alpha. Its mean is finite for alpha above 1 alone."""

    alpha: float
    least: float = 1.0

    def __post_init__(self) -> None:
        """Refuse an exponent without a mean, and a least value that is not positive; InputError."""
        between(self, alpha=(0.0, np.inf), least=(0.0, np.inf))
        if self.alpha <= 1:
            raise InputError("pareto: alpha", self.alpha, "above 1 belongs here, for there is no mean below")

    @property
    def mean(self) -> float:
        """The mean, alpha least / (alpha - 1)."""
        return self.alpha * self.least / (self.alpha - 1)

    @property
    def tail(self) -> float:
        """The exponent: moments of lower orders are finite."""
        return self.alpha

    @property
    def support(self) -> tuple[float, float]:
        """From the least value on."""
        return self.least, np.inf

    def at(self, below: Floats, above: Floats) -> Floats:  # noqa: ARG002 - near `least` the upper chance says it all
        """Return least above^(-1/alpha)."""
        found: Floats = self.least * above ** (-1 / self.alpha)
        return found

    def below(self, value: ArrayLike) -> Floats:
        """Return 1 - (least/value)^alpha."""
        found: Floats = -np.expm1(self._log(value))
        return found

    def above(self, value: ArrayLike) -> Floats:
        """Return (least/value)^alpha."""
        found: Floats = np.exp(self._log(value))
        return found

    def _log(self, value: ArrayLike) -> Floats:
        found: Floats = self.alpha * np.log(self.least / np.maximum(value, self.least))
        return found
