"""What does one expect of the k-th smallest of n independent draws?

Exact for any law: the chance below the k-th smallest has a beta law, so that E[g] is an integral of g(law.at(chance))
over that chance. It is taken over x, the logarithm of chance below over chance above, in which both tails have room,
by Gauss and Legendre's rule between points that lie close where the beta law is, and at every corner of the law.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Callable

    from commsim.stragglers.laws.law import Law

Floats = NDArray[np.float64]
_END = 690.0
"""Where x ends: chances down to 1e-300."""
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)


class Place(NamedTuple):
    """The k-th smallest of n."""

    k: int
    n: int

    @property
    def over(self) -> int:
        """How many are as large or larger, itself among them."""
        return self.n - self.k + 1


def expected(law: Law, of: Callable[[Floats], Floats], *, power: float, place: Place) -> float:
    """Return E[of(k-th smallest of n draws)]; `of` grows like that power at most. Infinite where there is none.

    Beyond the end of x a tail like x^-tail is followed in closed form.
    """
    falls = place.over - power / law.tail
    if falls <= 0:
        return math.inf
    x, weight = _points(law.corners, place)
    below, above = np.exp(-np.logaddexp(0, -x)), np.exp(-np.logaddexp(0, x))
    density = _density(x, place)
    values = of(law.at(below, above)) * (density / (density @ weight))
    rest = float(values[-1]) / falls if np.isfinite(law.tail) else 0.0
    return float(values @ weight) + rest


@lru_cache(maxsize=64)
def _points(corners: tuple[float, ...], place: Place) -> tuple[Floats, Floats]:
    """The points x and their weights; the last point lies so near the end that it stands for it."""
    centre = math.log(place.k / place.over)
    spread = math.sqrt(1 / place.k + 1 / place.over)
    bends = [math.log1p(-above) - math.log(above) for above in corners]
    edges = np.unique(np.clip([*(centre + spread * _steps()), *bends, -_END, _END], -_END, _END))
    half = np.diff(edges)[:, None] / 2
    x = (edges[:-1, None] + half + half * _NODES).ravel()
    return x, (half * _WEIGHTS).ravel()


@lru_cache(maxsize=1)
def _steps() -> Floats:
    """Edges in spreads from the centre: by halves, by ones, and then ever wider, for tails that are powers."""
    near = np.concatenate([np.arange(0.0, 12.0, 0.5), np.arange(12.0, 40.0), 40 * 1.25 ** np.arange(80)])
    return np.concatenate([-near[:0:-1], near])


def _density(x: Floats, place: Place) -> Floats:
    """The density of the beta law over x, in parts of its largest: u^k (1 - u)^(n - k + 1), for u = 1 / (1 + e^-x)."""
    log = -place.k * np.logaddexp(0, -x) - place.over * np.logaddexp(0, x)
    found: Floats = np.exp(log - log.max())
    return found
