"""How often is it said rightly whether a run fits into memory?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from commsim.errors import InputError
from commsim.units import counted
from commsim.validation.agreement import grouped
from commsim.validation.job import job
from commsim.validation.rows import Skipped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from commsim.training.memory import Memory
    from commsim.validation.outcomes import Outcome
    from commsim.validation.published import Published


@dataclass(frozen=True)
class Case:
    """A run that fitted or ran out of memory, beside the memory that is estimated."""

    result: Published
    fits: bool
    memory: Memory

    @property
    def share(self) -> float:
        """Estimated share of the memory that there is; more than 1 is said not to fit."""
        return self.memory.total / self.memory.capacity

    @property
    def right(self) -> bool:
        """Whether what is said is what happened."""
        return self.fits == self.memory.fits


@dataclass(frozen=True)
class Told:
    """Of how many runs it was told rightly whether they fit: all, those that did, those that ran out of memory."""

    count: int
    right: int

    @classmethod
    def of(cls, cases: Iterable[Case]) -> Told:
        """Return the count of these cases."""
        said = [one.right for one in cases]
        return cls(len(said), sum(said))

    @property
    def share(self) -> float | None:
        """The share that is right; None without any case."""
        return self.right / self.count if self.count else None


@dataclass(frozen=True)
class Validation:
    """Runs beside their estimates, and those that cannot be estimated."""

    cases: tuple[Case, ...]
    skipped: tuple[Skipped, ...]

    def told(self, *, fits: bool | None = None) -> Told:
        """Return how many are told rightly: of all runs, or of those that did (not) fit."""
        return Told.of(one for one in self.cases if fits in {None, one.fits})

    def by(self, view: str) -> dict[str, Validation]:
        """Return the runs by a key of VIEWS, in its order. InputError for another."""
        if view not in VIEWS:
            raise InputError("by", view, "no such view", among=VIEWS)
        return {name: Validation(tuple(some), ()) for name, some in sorted(grouped(self.cases, VIEWS[view]).items())}


def validate(outcomes: Iterable[Outcome], models: Mapping[str, Mapping[str, str]]) -> Validation:
    """Return every run beside its estimate, or with the reason why it has none."""
    cases: list[Case] = []
    skipped: list[Skipped] = []
    for one in outcomes:
        try:
            cases.append(Case(one.result, one.fits, job(one.result, models).estimate.memory))
        except InputError as error:
            skipped.append(Skipped(one.result.row_id, str(error)))
    return Validation(tuple(cases), tuple(skipped))


VIEWS: Mapping[str, Callable[[Case], str]] = {
    "model": lambda case: case.result.model_id,
    "tokens": lambda case: f"{case.result.seq_len * case.result.micro_batch:>6,} at once",
    "recompute": lambda case: case.result.recompute_mode or "not stated",
    "attention": lambda case: case.result.attention_kernel or "not stated",
    "tensor": lambda case: counted(case.result.tp, "rank"),
}
