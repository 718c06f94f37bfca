"""Which constants make a library's times those that were measured, how sure are they, and which are not told?

Least squares of log(predicted / measured) over the logarithms of the constants, with bounds. Every constant is held to
its shipped value by a weak spring, as if that were one more measurement of it that is good to a factor: what the data
say nothing of stays where it is.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np

from commsim.collectives.layout import Layout
from commsim.errors import InputError
from commsim.figures import Figure
from commsim.libraries.own import own
from commsim.measurement.calibrate.constants import Constant, changed, constants
from commsim.measurement.check.expected import Rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from commsim.hardware.system import System
    from commsim.hardware.topology import Topology
    from commsim.libraries.library import Floats, Library
    from commsim.measurement.records import Measurement

BELIEF = np.log(3.0)
"""How far from a shipped value a constant is likely to be: a factor of three."""
NOISE = 0.05
"""How far one row is from the next beside what the constants explain, as a logarithm: 5 %."""
REACH = 30.0
"""The factor within which constants are sought."""
MOVES = 0.02
"""A constant counts as used when doubling it (or what it leaves of 1) changes some time by 2 %."""
TOLD = np.log(1.5)
"""A constant is told when its interval is within a factor of 1.5 to either side, and far narrower than the belief."""
STEP = 0.01
"""The step of slopes: wide enough to see beyond the point at which a library changes its algorithm."""
SPEAK_ALIKE = {"nccl", "rccl"}
"""Libraries whose benchmarks print alike: a log of one may pass for one of the other."""
REPLICATES = 500
CALIBRATIONS = ("fitted", "figures")
"""What libraries call what is fitted of them."""


class Calibrated(Protocol):
    """A library whose constants can be changed."""

    @property
    def fitted(self) -> object:
        """Its calibration."""
        ...


@dataclass(frozen=True, eq=False)
class Run:
    """A measured table with the group that ran it and its machine."""

    table: Measurement
    layout: Layout
    topology: Topology


@dataclass(frozen=True)
class Fitted:
    """A constant as the data give it: its value and the ends of its 95 % interval (bootstrap), in SI.

    `told` is False where the data do not determine it: it stays near what is shipped.
    """

    constant: Constant
    value: float
    low: float
    high: float
    told: bool

    @property
    def figure(self) -> Figure:
        """It as a figure of a calibration, with its origin."""
        if not self.told:
            note = "these runs do not tell it: as shipped, give or take"
            return Figure(self.value, status="derived", note=note)
        return Figure(self.value, status="measured", low=self.low, high=self.high, note="95 % interval")

    def __str__(self) -> str:
        """Its value with its interval, beside the shipped one."""
        return f"{self.value:.3g} ({self.low:.3g} to {self.high:.3g}), shipped {self.constant.value:.3g}"


@dataclass(frozen=True, eq=False)
class Fit:
    """A calibration that fits measured runs: its constants, and how far the predicted times were and are, [row].

    The distances are log(predicted / measured).
    """

    calibration: object
    constants: tuple[Fitted, ...]
    before: Floats
    after: Floats

    @cached_property
    def told(self) -> tuple[Fitted, ...]:
        """The constants that the data determine."""
        return tuple(one for one in self.constants if one.told)

    def __str__(self) -> str:
        """How far times were and are, and each constant that the data determine beside what is shipped."""
        before, after = (float(np.median(np.abs(np.expm1(each)))) for each in (self.before, self.after))
        told = (f"  {one.constant.name}: {one}" for one in self.told)
        said = f"{len(self.after)} rows: median |error| {before:.1%} as shipped, {after:.1%} as fitted"
        return "\n".join((said, *told))


def calibrate(system: System, tables: Iterable[Measurement], *, library: Library | None = None, seed: int = 0) -> Fit:
    """Return the constants of a library (the vendor's own) that fit tables of the first GPUs of a machine; see `fit`.

    InputError as `fit`, and for a table of more ranks than the machine has GPUs.
    """
    runs = []
    for table in tables:
        if table.ranks > system.gpus:
            raise InputError("system", system.gpus, f"at least the {table.ranks} GPUs of the table belong here")
        runs.append(Run(table, Layout.first(table.ranks), system.topology))
    return fit(own(system, library), runs, seed=seed)


def _need_told(table: Measurement, library: Library) -> None:
    """InputError for a table that tells nothing of the library's constants."""
    where, both = table.source or "calibrate", {table.library or library.name, library.name}
    if table.ranks == 1:
        raise InputError(where, "1 rank", "at least two, that exchange something, belong here")
    if len(both) > 1 and not both <= SPEAK_ALIKE and _calibration_of(library):
        expected = f"runs of {library.name} belong here, or --library with the name of theirs"
        raise InputError(f"{where}: library", table.library, expected)


def _calibration_of(library: Library) -> str | None:
    """The field of a library that holds its constants; None where it has none."""
    return next((name for name in CALIBRATIONS if hasattr(library, name)), None)


def fit(library: Library, runs: Sequence[Run], *, seed: int = 0) -> Fit:
    """Return the constants of a library that fit measured runs best, with intervals from a seeded bootstrap.

    InputError when the library has no constants, when there are no rows, and for runs of another library.
    """
    for run in runs:
        _need_told(run.table, library)
    rows = [Rows(run.table) for run in runs]
    if not any(one.told for one in rows):
        raise InputError("calibrate", f"{len(runs)} tables", "at least one row with a size and a time belongs here")
    if seed < 0:
        raise InputError("seed", seed, "0 or more belongs here")
    field = _calibration_of(library)
    if field is None:
        raise InputError("calibrate: library", library.name, "a library that has constants belongs here")

    start: object = getattr(library, field)

    def distance(calibration: object) -> Floats:
        by = dataclasses.replace(library, **{field: calibration})  # type: ignore[type-var]
        return np.concatenate([np.log(_times(by, run, one) / one.measured) for run, one in zip(runs, rows)])

    used = _used(start, distance)
    if not used:
        raise InputError("calibrate", library.name, "no constant of it changes these times")
    return _fitted(start, used, distance, seed)


def _times(library: Library, run: Run, rows: Rows) -> Floats:
    return library.time(run.table.op, rows.sizes, run.layout, run.topology).seconds


def _used(start: object, distance: Callable[[object], Floats]) -> list[Constant]:
    """The constants that change a time."""
    now, found = distance(start), []
    for one in constants(start):
        other = one.value / 2 if one.value * 2 > one.most else one.value * 2
        if np.abs(distance(changed(start, {one.place: other})) - now).max() > MOVES:
            found.append(one)
    return found


def _fitted(start: object, used: list[Constant], distance: Callable[[object], Floats], seed: int) -> Fit:
    from scipy.optimize import least_squares

    origin = np.log([one.value for one in used])
    spring = NOISE / BELIEF

    def at(place: Floats) -> object:
        return changed(start, {one.place: float(np.exp(value)) for one, value in zip(used, place)})

    def residuals(place: Floats) -> Floats:
        return np.concatenate([distance(at(place)), spring * (place - origin)])

    most = np.minimum(origin + np.log(REACH), np.log([one.most for one in used]) + 1e-9)
    step = np.full(len(used), STEP)
    bounds, place = (origin - np.log(REACH), most), origin
    for loss in ("linear", "soft_l1"):  # odd rows weigh less only once the rest fits: a library's choices make valleys
        found = least_squares(residuals, place, bounds=bounds, loss=loss, f_scale=2 * NOISE, diff_step=step)
        place = found.x
    rows = len(found.fun) - len(used)
    ends = _bootstrap(np.asarray(found.jac), found.fun, rows, seed)
    fitted = tuple(_constant(one, *values) for one, *values in zip(used, found.x, *ends))
    known = {one.constant.place: one.figure for one in fitted}
    return Fit(changed(start, known), fitted, distance(start), found.fun[:rows])


def _constant(constant: Constant, place: float, low: float, high: float) -> Fitted:
    """A constant with the interval around it, which does not leave what is possible."""
    most, told = constant.most, bool(max(-low, high) < TOLD)
    value, least, largest = (min(float(np.exp(one)), most) for one in (place, place + low, place + high))
    return Fitted(constant, value, least, largest, told)


def _bootstrap(slopes: Floats, residuals: Floats, rows: int, seed: int) -> tuple[Floats, Floats]:
    """The ends of the 95 % interval of each constant around its fit, as logarithms.

    Rows are drawn again with their residuals, and one step of Gauss and Newton is made from the fit for each draw
    (Efron and Tibshirani 1993, chapter 9); the uncertainty that is left by the springs is added in squares.
    """
    rng = np.random.default_rng(seed)
    data, springs = slopes[:rows], slopes[rows:]
    steps = np.empty((REPLICATES, slopes.shape[1]))
    for number in range(REPLICATES):
        drawn = rng.integers(rows, size=rows)
        system, due = np.vstack([data[drawn], springs]), np.concatenate([residuals[drawn], residuals[rows:]])
        steps[number] = -np.linalg.lstsq(system, due, rcond=None)[0]
    scale = max(float(np.sqrt(np.mean(residuals[:rows] ** 2))), 1e-6)
    held = np.sqrt(np.diag(np.linalg.pinv(data.T @ data / scale**2 + np.eye(slopes.shape[1]) / BELIEF**2)))
    low, high = np.quantile(steps, [0.025, 0.975], axis=0)
    return -np.hypot(low, 1.96 * held), np.hypot(high, 1.96 * held)
