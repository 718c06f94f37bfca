"""Which constants make times those that were measured, and stay near what is expected of them?

The least sum of the tables' errors and the constants' distances from what is expected (ridge regression of their
logarithms), by damped Gauss-Newton steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commsim.measurement.calibrate.constants import changed, constants
from commsim.validation.collectives import BANDS
from commsim.validation.constants import FITTED_ON
from scripts.nccl_fit.expected import TIED, expected

if TYPE_CHECKING:
    from collections.abc import Iterable

    from commsim.libraries.calibration import Calibration
    from commsim.libraries.library import Floats
    from commsim.measurement.calibrate.constants import Constant
    from scripts.nccl_fit.measured import Table

AIMS = {"< 1 MiB": 0.07, "1 to 64 MiB": 0.05, ">= 64 MiB": 0.04}
"""Errors that are sought, by band of sizes: a band of a group pulls by the inverse."""
FORGIVEN = 0.1
"""The error from which on a row pulls less and less (Cauchy's loss): some runs did what their tables do not say."""
STRENGTH = 0.003
"""What a constant one deviation from what is expected weighs beside a group of tables: chosen on halves held out."""
STEP, DAMPING, TRIALS, LONGEST = 0.02, 1e-3, 5, 0.4
RESAMPLED, AFRESH = 200, 4
"""Draws; rounds after which every table is asked about every constant again."""


def weights(of: Iterable[Table]) -> list[Floats]:
    """Return the weight[row] of each table: of all rows of its group in a band together (0.12 / the band's aim)**2."""
    listed = list(of)
    ends = [end for end, _ in BANDS if end]
    aims = np.array([AIMS[name] for _, name in BANDS])
    places = [np.digitize(one.sizes, ends) for one in listed]
    count: dict[tuple[str, int], int] = {}
    for one, band in zip(listed, places):
        for each in band:
            count[one.of.group, each] = count.get((one.of.group, each), 0) + 1
    return [
        0.12 / aims[band] / np.sqrt([count[one.of.group, each] for each in band]) for one, band in zip(listed, places)
    ]


class Fit:
    """Constants that are fitted on tables, as logarithms."""

    def __init__(self, of: list[Table], start: Calibration) -> None:
        """Take the constants that cite measurements, and tie those that are others."""
        self.tables, self.start = of, start
        every = {one.name: one.place for one in constants(start)}
        self.constants = [one for one in constants(start) if one.name not in TIED and _is_fitted(start, one)]
        self.tied = {every[name]: every[other] for name, other in TIED.items()}
        known = [expected(one.name) for one in self.constants]
        self.expected = np.log([one.value for one in known])
        self.pull = STRENGTH / np.array([one.spread for one in known]) ** 2
        self.weights = weights(of)
        self.used = np.ones((len(self.constants), len(of)), dtype=bool)

    def at(self, x: Floats) -> Calibration:
        """Return the calibration with these logarithms."""
        free = {c.place: float(np.exp(v)) for c, v in zip(self.constants, x)}
        return changed(self.start, free | {place: free[other] for place, other in self.tied.items()})

    def residuals(self, x: Floats) -> list[Floats]:
        """Return log(predicted / measured) of each table."""
        fitted = self.at(x)
        return [one.off(fitted) for one in self.tables]

    def slopes(self, x: Floats, now: list[Floats]) -> list[Floats]:
        """Return d residual / d x of each table; tables that a constant does not touch are not asked again."""
        found = [np.zeros((len(one), len(x))) for one in now]
        for column in range(len(x)):
            down = np.exp(x[column] + STEP) > self.constants[column].most
            moved = x.copy()
            moved[column] += -STEP if down else STEP
            fitted = self.at(moved)
            for row in np.flatnonzero(self.used[column]):
                after = self.tables[row].off(fitted)
                found[row][:, column] = (after - now[row]) / (moved[column] - x[column])
                self.used[column, row] = bool(np.abs(found[row][:, column]).max() > 0)
        return found

    def run(self, rounds: int) -> Floats:
        """Return the logarithms that fit best, sought from what is expected."""
        most = np.log([one.most for one in self.constants])
        x: Floats = np.minimum(self.expected, most)
        damping, best = DAMPING, self._cost(x)
        for number in range(rounds):
            self.used |= number % AFRESH == 0
            now = self.residuals(x)
            slopes = self.slopes(x, now)
            for _ in range(TRIALS):
                step = self._step(x, (now, slopes, self.weights), damping)
                new = np.minimum(x + np.clip(step, -LONGEST, LONGEST), most)
                cost = self._cost(new)
                if cost < best:
                    x, best, damping = new, cost, damping / 4
                    break
                damping *= 8
        return x

    def deviations(self, x: Floats) -> Floats:
        """Return the standard deviation of each logarithm: tables drawn again, one step of the fit from here."""
        now = self.residuals(x)
        slopes, rng = self.slopes(x, now), np.random.default_rng(0)
        steps = []
        for _ in range(RESAMPLED):
            drawn = rng.integers(0, len(now), len(now))
            parts = ([now[i] for i in drawn], [slopes[i] for i in drawn], [self.weights[i] for i in drawn])
            steps.append(np.clip(self._step(x, parts, DAMPING), -1, 1))
        found: Floats = np.std(steps, axis=0)
        return found

    def free(self, x: Floats) -> float:
        """Return how many constants the tables decide on, not what is expected: the trace of the hat matrix."""
        now = self.residuals(x)
        normal, _ = _normal(now, self.slopes(x, now), self.weights)
        return float(np.trace(np.linalg.solve(normal + np.diag(self.pull), normal)))

    def _cost(self, x: Floats) -> float:
        apart = (self.pull * (x - self.expected) ** 2).sum()
        found = ((w**2 * np.log1p((r / FORGIVEN) ** 2)).sum() for r, w in zip(self.residuals(x), self.weights))
        return float(FORGIVEN**2 * sum(found) + apart)

    def _step(self, x: Floats, parts: tuple[list[Floats], list[Floats], list[Floats]], damping: float) -> Floats:
        normal, gradient = _normal(*parts)
        curved = normal + np.diag(self.pull)
        damped = curved + damping * np.diag(np.maximum(np.diag(curved), 1e-6))
        return np.asarray(-np.linalg.solve(damped, gradient + self.pull * (x - self.expected)))


def _normal(now: list[Floats], slopes: list[Floats], weight: list[Floats]) -> tuple[Floats, Floats]:
    """The matrix and the right-hand side of the normal equations, rows weighted by how far off they are."""
    residual, slope = np.concatenate(now), np.concatenate(slopes)
    scale = np.concatenate(weight) / np.sqrt(1 + (residual / FORGIVEN) ** 2)
    a, b = slope * scale[:, None], residual * scale
    return a.T @ a, a.T @ b


def _is_fitted(start: Calibration, one: Constant) -> bool:
    value: object = start
    for key in one.place:
        value = value[key] if hasattr(value, "keys") else getattr(value, key)  # type: ignore[index]
    return FITTED_ON in getattr(value, "source", ())
