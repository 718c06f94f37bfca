"""Which constants make NCCL's times those that were measured, and how well do they do on what they were not fitted on?

    python scripts/fit_nccl.py TABLES [--hold-out] [--rounds 8]

TABLES is a folder of measured tables as `commsim validate collectives` reads them. Each group of a band of sizes weighs
the same. Prints every constant with its value and one standard deviation (tables resampled, one step of the fit).
"""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from commsim.collectives.layout import Layout
from commsim.errors import InputError
from commsim.libraries.calibration import calibration
from commsim.measurement.calibrate.constants import changed, constants
from commsim.measurement.cluster import cluster, library
from commsim.validation.collectives import BANDS, Case, agreement
from commsim.validation.constants import FITTED_ON
from commsim.validation.measured import HEALTHY, Measured, read_measured

if TYPE_CHECKING:
    from collections.abc import Iterable

    from commsim.libraries.calibration import Calibration
    from commsim.libraries.library import Floats
    from commsim.measurement.calibrate.constants import Constant

AIMS = {"< 1 MiB": 0.1, "1 to 64 MiB": 0.09, ">= 64 MiB": 0.04}
"""Median errors that are sought, by band: how hard each one pulls."""
TIED = {
    "links.nvlink2.hop.LL": "links.nvlink4.hop.LL",
    "links.nvlink2.hop.Simple": "links.nvlink3.hop.Simple",
    "links.nvlink2.send": "links.nvlink3.send",
    "links.nvlink3.hop.LL": "links.nvlink4.hop.LL",
    "links.nvlink[567]*.send": "links.nvlink4.send",
    "links.tcpxo nic.efficiency": "links.tcpx nic.efficiency",
    "links.efa nic.efficiency": "links.* nic.efficiency",
    "links.infiniband nic.efficiency": "links.* nic.efficiency",
    "links.efa nic.staged": "links.pcie*.staged",
    "links.pcie*.staged_hop.LL": "links.pcie*.hop.LL",
    "older.hop": "links.nvlink3.hop.Simple",
}
"""Constants that are others, too: what measurements do not tell apart."""
STEP, ROBUST, DAMPING = 0.02, 0.05, 1e-3
RESAMPLED = 200
LEAST = 4
"""Tables of a family of which half are held out."""


class Table:
    """A measured table with what its prediction needs."""

    def __init__(self, of: Measured) -> None:
        """Find its machine and library; InputError when it has none."""
        one = of.measurement
        rows = [row for row in one.rows if row.size and (row.out_of_place or row.in_place)]
        self.of, self.by = of, library(one)
        self.sizes = np.array([row.size for row in rows], dtype=np.float64)
        self.measured = np.array([row.timing.seconds for row in rows])
        system = cluster(one)
        self.topology, self.layout = system.topology, Layout.first(one.ranks)
        self.family = (one.system, system.scale_out.fabric if system.scale_out and system.nodes > 1 else "")

    def predicted(self, fitted: Calibration) -> Floats:
        """Return the times, s."""
        by = dataclasses.replace(self.by, fitted=fitted)
        return by.time(self.of.measurement.op, self.sizes, self.layout, self.topology).seconds

    def cases(self, fitted: Calibration) -> list[Case]:
        """Return the rows beside their prediction."""
        found = self.predicted(fitted)
        return [Case(self.of, int(s), float(m), float(p)) for s, m, p in zip(self.sizes, self.measured, found)]


def tables(folder: Path) -> list[Table]:
    """Return the healthy tables that can be predicted."""
    found = []
    for one in read_measured([folder])[0]:
        try:
            found += [Table(one)] if one.health == HEALTHY and _counts(one) else []
        except InputError:
            continue
    return [one for one in found if len(one.sizes)]


def _counts(one: Measured) -> bool:
    """Whether it ran on NCCL, and was not replayed from a CUDA graph, which hides launches."""
    return one.measurement.library == "nccl" and "CUDA graph" not in one.measurement.settings.get("as_stated", "")


def weights(of: Iterable[Table]) -> list[Floats]:
    """Return the weight[row] of each table: of all rows of its group in a band together 1 / the band's aim."""
    listed = list(of)
    ends = [end for end, _ in BANDS if end]
    aims = np.array([AIMS[name] for _, name in BANDS])
    places = [np.digitize(one.sizes, ends) for one in listed]
    count: dict[tuple[str, int], int] = {}
    for one, band in zip(listed, places):
        for each in band:
            count[one.of.group, each] = count.get((one.of.group, each), 0) + 1
    return [
        np.array([1 / np.sqrt(count[one.of.group, each]) for each in band]) * AIMS[">= 64 MiB"] / aims[band] * 3
        for one, band in zip(listed, places)
    ]


class Fit:
    """Constants that are fitted on tables, as logarithms."""

    def __init__(self, of: list[Table], start: Calibration) -> None:
        """Take the constants that cite measurements, and tie those that are others."""
        self.tables, self.start = of, start
        every = {one.name: one.place for one in constants(start)}
        self.constants = [one for one in constants(start) if one.name not in TIED and _is_fitted(start, one)]
        self.tied = {every[name]: every[other] for name, other in TIED.items()}
        self.weights = weights(of)
        self.used = np.ones((len(self.constants), len(of)), dtype=bool)

    def at(self, x: Floats) -> Calibration:
        """Return the calibration with these logarithms."""
        free = {c.place: float(np.exp(v)) for c, v in zip(self.constants, x)}
        return changed(self.start, free | {place: free[other] for place, other in self.tied.items()})

    def residuals(self, x: Floats) -> list[Floats]:
        """Return log(predicted / measured) of each table."""
        fitted = self.at(x)
        return [np.log(one.predicted(fitted) / one.measured) for one in self.tables]

    def jacobian(self, x: Floats, now: list[Floats]) -> list[Floats]:
        """Return d residual / d x of each table; tables that a constant does not touch are not asked again."""
        found = [np.zeros((len(one), len(x))) for one in now]
        for column in range(len(x)):
            down = np.exp(x[column] + STEP) > self.constants[column].most
            moved = x.copy()
            moved[column] += -STEP if down else STEP
            fitted = self.at(moved)
            for row in np.flatnonzero(self.used[column]):
                after = np.log(self.tables[row].predicted(fitted) / self.tables[row].measured)
                found[row][:, column] = (after - now[row]) / (moved[column] - x[column])
                self.used[column, row] = bool(np.abs(found[row][:, column]).max() > 0)
        return found

    def run(self, rounds: int) -> Floats:
        """Return the logarithms that fit best: damped Gauss-Newton with weights that forgive what is far off."""
        x: Floats = np.log([one.value for one in self.constants])
        most = np.log([one.most for one in self.constants])
        damping, best = DAMPING, self._cost(self.residuals(x))
        for _ in range(rounds):
            now = self.residuals(x)
            slopes = self.jacobian(x, now)
            for _ in range(4):
                step = _step(now, slopes, self.weights, damping)
                new = np.minimum(x + np.clip(step, -0.3, 0.3), most)
                cost = self._cost(self.residuals(new))
                if cost < best:
                    x, best, damping = new, cost, damping / 3
                    break
                damping *= 8
        return x

    def deviations(self, x: Floats) -> Floats:
        """Return the standard deviation of each logarithm: tables drawn again, one step of the fit from here."""
        now = self.residuals(x)
        slopes, rng = self.jacobian(x, now), np.random.default_rng(0)
        steps = []
        for _ in range(RESAMPLED):
            drawn = rng.integers(0, len(now), len(now))
            parts = ([now[i] for i in drawn], [slopes[i] for i in drawn], [self.weights[i] for i in drawn])
            steps.append(np.clip(_step(*parts, DAMPING), -1, 1))
        found: Floats = np.std(steps, axis=0)
        return found

    def _cost(self, residuals: list[Floats]) -> float:
        return float(sum((w**2 * _robust(r)).sum() for r, w in zip(residuals, self.weights)))


def _robust(residual: Floats) -> Floats:
    return ROBUST**2 * 2 * (np.sqrt(1 + (residual / ROBUST) ** 2) - 1)


def _step(now: list[Floats], slopes: list[Floats], weight: list[Floats], damping: float) -> Floats:
    residual, slope, weights = np.concatenate(now), np.concatenate(slopes), np.concatenate(weight)
    scale = weights / (1 + (residual / ROBUST) ** 2) ** 0.25
    a, b = slope * scale[:, None], residual * scale
    normal = a.T @ a
    diagonal = np.diag(np.maximum(np.diag(normal), 1e-6))
    found: Floats = np.asarray(-np.linalg.solve(normal + damping * diagonal + 1e-4 * np.eye(len(normal)), a.T @ b))
    return found


def _is_fitted(start: Calibration, one: Constant) -> bool:
    value: object = start
    for key in one.place:
        value = value[key] if hasattr(value, "keys") else getattr(value, key)  # type: ignore[index]
    return FITTED_ON in getattr(value, "source", ())


def errors(of: list[Table], fitted: Calibration) -> dict[str, str]:
    """Return the median and the 75th percentile over groups by band."""
    cases = [case for one in of for case in one.cases(fitted)]
    found = {}
    for _, name in BANDS:
        band = [case for case in cases if case.band == name]
        if band:
            one = agreement(band)
            found[name] = f"{one.median_error:.1%} ({one.p75_error:.1%}, {one.groups} groups)"
    return found


def main() -> None:
    """Fit, and print what was found."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("tables", type=Path)
    asked.add_argument("--hold-out", action="store_true")
    asked.add_argument("--rounds", type=int, default=8)
    given = asked.parse_args()
    every, start = tables(given.tables), calibration("nccl")
    if given.hold_out:
        return hold_out(every, start, given.rounds)
    fit = Fit(every, start)
    print("shipped:", errors(every, start))
    x = fit.run(given.rounds)
    print("fitted:", errors(every, fit.at(x)))
    for one, value, deviation in zip(fit.constants, x, fit.deviations(x)):
        print(f"{one.name:44s} {one.value:12.5g} -> {np.exp(value):12.5g}  ± {deviation:.0%}")
    return None


def hold_out(every: list[Table], start: Calibration, rounds: int) -> None:
    """Print errors on halves that were fitted and held out, by seed."""
    families: dict[tuple[str, str], list[Table]] = {}
    for one in every:
        families.setdefault(one.family, []).append(one)
    large = [found for found in families.values() if len(found) >= LEAST]
    for seed in range(5):
        rng = np.random.default_rng(seed)
        held = {id(one) for found in large for one in rng.permutation(np.array(found, dtype=object))[: len(found) // 2]}
        fit = Fit([one for one in every if id(one) not in held], start)
        fitted = fit.at(fit.run(rounds))
        inside = [one for found in large for one in found]
        print(seed, "fitted", errors([one for one in inside if id(one) not in held], fitted))
        print(seed, "held out", errors([one for one in inside if id(one) in held], fitted))


if __name__ == "__main__":
    main()
