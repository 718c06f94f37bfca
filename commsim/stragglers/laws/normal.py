"""What adds up from many small causes, or multiplies?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from commsim.stragglers.laws.law import Floats, Law, Size, between

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import ArrayLike


@dataclass(frozen=True)
class Normal(Law):
    """The sum of many small things."""

    mean: float = 0.0
    sd: float = 1.0

    def __post_init__(self) -> None:
        """Refuse a spread that is not positive; InputError."""
        between(self, mean=(-np.inf, np.inf), sd=(0.0, np.inf))

    @property
    def support(self) -> tuple[float, float]:
        """Everything."""
        return -np.inf, np.inf

    def at(self, below: Floats, above: Floats) -> Floats:
        """Return the mean and so many standard deviations (Wichura 1988)."""
        found: Floats = self.mean + self.sd * deviations(below, above)
        return found

    def below(self, value: ArrayLike) -> Floats:
        """Return the chance by the complementary error function."""
        return _tail((self.mean - np.asarray(value)) / self.sd)

    def above(self, value: ArrayLike) -> Floats:
        """Return the chance by the complementary error function."""
        return _tail((np.asarray(value) - self.mean) / self.sd)

    def sample(self, rng: Generator, size: Size) -> Floats:
        """Return draws by numpy's own way."""
        return rng.normal(self.mean, self.sd, size)


_WIDEST = 10.0
"""Of a logarithm: one value in six is then 20,000 times the median, which nothing measured is."""


@dataclass(frozen=True)
class Lognormal(Law):
    """The product of many small things: `sigma` is the standard deviation of its logarithm."""

    sigma: float
    mean: float = 1.0

    def __post_init__(self) -> None:
        """Refuse a spread or a mean that is not positive; InputError."""
        between(self, sigma=(0.0, _WIDEST), mean=(0.0, np.inf))

    @property
    def mu(self) -> float:
        """The mean of the logarithm."""
        return math.log(self.mean) - self.sigma**2 / 2

    def at(self, below: Floats, above: Floats) -> Floats:
        """Return the exponential of the normal value."""
        found: Floats = np.exp(self.mu + self.sigma * deviations(below, above))
        return found

    def below(self, value: ArrayLike) -> Floats:
        """Return the normal chance of the logarithm."""
        return _tail((self.mu - _log(value)) / self.sigma)

    def above(self, value: ArrayLike) -> Floats:
        """Return the normal chance of the logarithm."""
        return _tail((_log(value) - self.mu) / self.sigma)

    def sample(self, rng: Generator, size: Size) -> Floats:
        """Return draws by way of the logarithm."""
        drawn = rng.standard_normal(size)
        drawn *= self.sigma
        drawn += self.mu
        found: Floats = np.exp(drawn, out=drawn)
        return found


def deviations(below: Floats, above: Floats) -> Floats:
    """Return the standard normal value with these chances of a smaller and a larger one.

    Wichura 1988, "Algorithm AS 241: the percentage points of the normal distribution", PPND16: right to 1 part in 1e16,
    from either tail's own chance.
    """
    nearer = np.minimum(below, above)
    middle = 0.5 - nearer
    root = np.sqrt(-np.log(nearer))
    beyond = np.where(root <= _FAR, _ratio(_TAIL, root - 1.6), _ratio(_FAR_TAIL, root - 5.0))
    found = np.where(middle <= _MIDDLE, middle * _ratio(_CENTRE, _MIDDLE**2 - middle**2), beyond)
    return np.where(below < above, -found, found)


_MIDDLE, _FAR = 0.425, 5.0
_CENTRE = (
    (2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4,
     1.3731693765509461125e4, 1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080e0),
    (5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4,
     5.3941960214247511077e3, 6.8718700749205790830e2, 4.2313330701600911252e1, 1.0),
)  # fmt: skip
_TAIL = (
    (7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258e0,
     3.64784832476320460504e0, 5.76949722146069140550e0, 4.63033784615654529590e0, 1.42343711074968357734e0),
    (1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
     6.89767334985100004550e-1, 1.67638483018380384940e0, 2.05319162663775882187e0, 1.0),
)  # fmt: skip
_FAR_TAIL = (
    (2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2,
     2.96560571828504891230e-1, 1.78482653991729133580e0, 5.46378491116411436990e0, 6.65790464350110377720e0),
    (2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4,
     1.48753612908506148525e-2, 1.36929880922735805310e-1, 5.99832206555887937690e-1, 1.0),
)  # fmt: skip


def _ratio(polynomials: tuple[tuple[float, ...], tuple[float, ...]], x: Floats) -> Floats:
    over, under = (np.polyval(coefficients, x) for coefficients in polynomials)
    found: Floats = over / under
    return found


def _tail(deviation: Floats) -> Floats:
    """The chance of a larger standard normal value."""
    scaled = np.asarray(deviation) / math.sqrt(2)
    found: Floats = 0.5 * np.vectorize(math.erfc, otypes=[float])(scaled)
    return found


def _log(value: ArrayLike) -> Floats:
    with np.errstate(divide="ignore"):
        found: Floats = np.log(np.maximum(value, 0.0))
    return found
