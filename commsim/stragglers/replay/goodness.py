"""Which law do measured times follow, and how well?

Parameters are those of the largest likelihood. Laws are compared by Akaike's criterion (AIC, 2 k - 2 ln L), and held
against the samples by the largest distance of the distributions (Kolmogorov and Smirnov). Its chance is that of
parameters that were not fitted, so it flatters.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from commsim.errors import InputError
from commsim.stragglers.laws import Constant, Empirical, Gamma, Lognormal, Normal, Pareto, Weibull

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import ArrayLike

    from commsim.stragglers.laws import Law
    from commsim.stragglers.laws.law import Floats

CLOSE = 0.05
"""A law that is further from the samples is no description of them, however many there are."""
LEVELS = np.unique(np.concatenate([np.linspace(0.0, 1.0, 101), [0.001, 0.005, 0.995, 0.999]]))
"""The quantiles of an empirical law."""
_FEWEST = 8


@dataclass(frozen=True)
class Fit:
    """A law with its goodness; the AIC of an empirical law, which has no density, is None."""

    name: str
    law: Law
    aic: float | None
    distance: float
    chance: float

    @property
    def describes(self) -> bool:
        """Whether the samples may well be drawn from it, or are as good as."""
        return self.distance < CLOSE or self.chance > CLOSE


def fits(samples: ArrayLike) -> tuple[Fit, ...]:
    """Return the laws that samples may follow, the best first, the empirical law last.

    Best is the least AIC among those that describe the samples, else the empirical law. InputError for fewer than 8
    samples and for what is no finite time.
    """
    values = np.sort(np.asarray(samples, dtype=float), axis=None)
    if values.size < _FEWEST or not np.isfinite(values).all():
        raise InputError("fit", values.size, f"at least {_FEWEST} finite figures belong here")
    empirical = Empirical(tuple(np.quantile(values, LEVELS).tolist()), tuple(LEVELS.tolist()))
    if values[0] == values[-1]:
        return (Fit("constant", Constant(float(values[0])), None, 0.0, 1.0),)
    found = [_fit(name, law, density, values) for name, law, density in _laws(values)]
    found.sort(key=lambda one: (not one.describes, one.aic))
    last = _held("empirical", empirical, None, values)
    return (*found, last) if found and found[0].describes else (last, *found)


def _laws(x: Floats) -> Iterator[tuple[str, Law, Callable[[Floats], Floats]]]:
    """The laws with their parameters and the logarithms of their densities."""
    mean, sd = float(x.mean()), float(x.std())
    yield "normal", Normal(mean, sd), lambda v: -(((v - mean) / sd) ** 2) / 2 - math.log(sd * math.sqrt(2 * math.pi))
    if x[0] <= 0:
        return
    log = np.log(x)
    mu, sigma = float(log.mean()), float(log.std())
    scale = sigma * math.sqrt(2 * math.pi)
    lognormal = Lognormal(sigma, math.exp(mu + sigma**2 / 2))
    yield "lognormal", lognormal, lambda v: -(((np.log(v) - mu) / sigma) ** 2) / 2 - np.log(v * scale)
    yield from _gamma(mean, math.log(mean) - mu)
    yield from _weibull(log)
    alpha = 1 / max(mu - float(log[0]), np.finfo(float).tiny)
    if alpha > 1:
        least = float(x[0])
        yield (
            "pareto",
            Pareto(alpha, least),
            lambda v: math.log(alpha) + alpha * math.log(least) - (alpha + 1) * np.log(v),
        )


def _gamma(mean: float, spread: float) -> Iterator[tuple[str, Law, Callable[[Floats], Floats]]]:
    """The shape at which ln(shape) - digamma(shape) is the logarithm of the mean less the mean logarithm."""
    from scipy.optimize import brentq
    from scipy.special import digamma, gammaln

    guess = (3 - spread + math.sqrt((spread - 3) ** 2 + 24 * spread)) / (12 * spread)  # Minka 2002
    if not _LEAST_SHAPE < guess < _MOST_SHAPE:
        return
    shape = float(brentq(lambda k: math.log(k) - float(digamma(k)) - spread, guess / 2, guess * 2))
    if shape < _MOST_SHAPE:
        by = mean / shape
        yield (
            "gamma",
            Gamma(shape, mean),
            lambda v: (shape - 1) * np.log(v / by) - v / by - gammaln(shape) - math.log(by),
        )


_LEAST_SHAPE, _MOST_SHAPE = 1e-3, 9e5


def _weibull(log: Floats) -> Iterator[tuple[str, Law, Callable[[Floats], Floats]]]:
    """The shape at which the mean of ln(x) weighted by x^shape exceeds the plain one by 1 / shape."""
    from scipy.optimize import brentq

    centred = log - log.max()

    def excess(shape: float) -> float:
        weight = np.exp(shape * centred)
        return float(weight @ centred / weight.sum() - centred.mean() - 1 / shape)

    if not excess(_STEEPEST) > 0:
        return
    shape = float(brentq(excess, _FLATTEST, _STEEPEST))
    scale = math.exp(log.max() + math.log(float(np.mean(np.exp(shape * centred)))) / shape)
    law = Weibull(shape, scale * math.gamma(1 + 1 / shape))
    yield "weibull", law, lambda v: math.log(shape / scale) + (shape - 1) * np.log(v / scale) - (v / scale) ** shape


_FLATTEST, _STEEPEST = 0.02, 1e5
_PARAMETERS = 2


def _fit(name: str, law: Law, density: Callable[[Floats], Floats], values: Floats) -> Fit:
    return _held(name, law, 2 * _PARAMETERS - 2 * float(density(values).sum()), values)


def _held(name: str, law: Law, aic: float | None, values: Floats) -> Fit:
    """The law against the steps of the samples' own distribution."""
    from scipy.stats import kstwobign

    below, n = law.below(values), values.size
    distance = float(np.max(np.maximum(np.arange(1, n + 1) / n - below, below - np.arange(n) / n)))
    return Fit(name, law, aic, distance, float(kstwobign.sf(distance * math.sqrt(n))))
