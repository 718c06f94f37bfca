"""How near do estimated step times come to published ones?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from statistics import median
from typing import TYPE_CHECKING

from commsim.errors import InputError
from commsim.validation.agreement import Agreement, grouped, rank_correlation
from commsim.validation.job import job
from commsim.validation.rows import Skipped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from commsim.validation.published import Published

FEWEST = 4
"""Results that make a sweep."""
SCALES = ((8, "up to 8 GPUs"), (64, "9 to 64 GPUs"), (512, "65 to 512 GPUs"))


@dataclass(frozen=True)
class Case:
    """A published result beside its estimate, s, with what the estimate assumes beyond what is stated."""

    result: Published
    measured: float
    predicted: float
    experts: bool
    assumptions: tuple[str, ...]

    @property
    def error(self) -> float:
        """How much too long the estimate is, as a share of what was measured; below 0 when too short."""
        return self.predicted / self.measured - 1


@dataclass(frozen=True)
class Validation:
    """Results beside their estimates, and those that could not be estimated."""

    cases: tuple[Case, ...]
    skipped: tuple[Skipped, ...]

    @cached_property
    def headline(self) -> tuple[Case, ...]:
        """The cases that are reported first."""
        return tuple(case for case in self.cases if case.result.headline)

    @cached_property
    def sweeps(self) -> dict[tuple[str, str], float]:
        """Rank correlation (Spearman) in each sweep: results of one source and group, four at least."""
        found = grouped(self.cases, lambda case: (case.result.source, case.result.group))
        return {
            name: rank_correlation([one.measured for one in cases], [one.predicted for one in cases])
            for name, cases in found.items()
            if len(cases) >= FEWEST and name[1]
        }

    @property
    def order(self) -> float | None:
        """The median rank correlation of the sweeps; None without sweeps."""
        return median(self.sweeps.values()) if self.sweeps else None

    def cases_by(self, view: str) -> dict[str, list[Case]]:
        """Return the cases by a key of VIEWS, in its order. InputError for another."""
        if view not in VIEWS:
            raise InputError("by", view, "no such view", among=VIEWS)
        return dict(sorted(grouped(self.cases, VIEWS[view]).items()))

    def by(self, view: str) -> dict[str, Agreement]:
        """Return the agreement of the cases by a key of VIEWS. InputError for another."""
        return {name: Agreement.of(case.error for case in cases) for name, cases in self.cases_by(view).items()}


def validate(results: Iterable[Published], models: Mapping[str, Mapping[str, str]]) -> Validation:
    """Return every result beside its estimate, or with the reason why it has none."""
    cases: list[Case] = []
    skipped: list[Skipped] = []
    for result in results:
        reason = _unfit(result)
        try:
            cases += [] if reason else [_case(result, models)]
        except InputError as error:
            reason = str(error)
        skipped += [Skipped(result.row_id, reason)] if reason else []
    return Validation(tuple(cases), tuple(skipped))


def _unfit(result: Published) -> str:
    """Why a result is not compared at all; empty when it is."""
    if result.core is False:
        return "not a core result: its plan or its time is not fully known"
    if result.exact_duplicate_of:
        return f"the same result as {result.exact_duplicate_of}"
    return f"not stated: {', '.join(result.missing)}" if result.missing else ""


def _case(result: Published, models: Mapping[str, Mapping[str, str]]) -> Case:
    found = job(result, models)
    experts = found.estimate.setting.model.experts is not None
    return Case(result, result.step_time_to_predict_s or 0.0, found.estimate.step_time, experts, found.assumptions)


def _scale(case: Case) -> str:
    return next((name for most, name in SCALES if case.result.n_gpus <= most), "more than 512 GPUs")


VIEWS: Mapping[str, Callable[[Case], str]] = {
    "GPU": lambda case: case.result.accelerator or case.result.system,
    "precision": lambda case: case.result.number_format or "bf16",
    "layers": lambda case: "experts" if case.experts else "dense",
    "scale": _scale,
    "source": lambda case: case.result.source or "not stated",
}
