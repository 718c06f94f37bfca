"""What makes one estimated step longer than another: the machine, the library, the plan, or a choice of the recipe?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from commsim.errors import InputError
from commsim.training.comparing.differing import Differing, differing

if TYPE_CHECKING:
    from commsim.training.estimate import Estimate
    from commsim.training.steps import Step
    from commsim.units import Seconds


@dataclass(frozen=True)
class Change:
    """One thing in which two jobs differ: what it is in each, and the step of the first with it alone changed, s.

    `seconds` is None where it cannot be changed alone: what a plan needs another machine may not have.
    """

    what: str
    first: str
    second: str
    seconds: Seconds | None


@dataclass(frozen=True, eq=False)
class Difference:
    """Two estimates beside each other."""

    first: Estimate
    second: Estimate

    @property
    def ratio(self) -> float:
        """Time for a token of the second over the first: GPU-seconds, so that machines of two sizes compare."""
        return self.first.tokens_per_second_per_gpu / self.second.tokens_per_second_per_gpu

    @cached_property
    def parts(self) -> dict[str, tuple[Seconds, Seconds]]:
        """What the time of each step goes to, s, by part: of the first, of the second."""
        first, second = (_parts(one.step) for one in (self.first, self.second))
        return {name: (first.get(name, 0.0), second.get(name, 0.0)) for name in {**first, **second}}

    @cached_property
    def changes(self) -> tuple[Change, ...]:
        """Each thing in which the jobs differ, changed alone in the first, what shortens its step most first."""
        found = [_change(one) for one in differing(self.first, self.second)]
        return tuple(sorted(found, key=lambda one: one.seconds if one.seconds is not None else float("inf")))


def difference(first: Estimate, second: Estimate) -> Difference:
    """Return two estimates beside each other; InputError for two different models."""
    ours, theirs = first.setting.model.name, second.setting.model.name
    if ours != theirs:
        raise InputError("compare", theirs, f"the model of the other, {ours}, belongs here: steps of two models differ")
    return Difference(first, second)


def _change(one: Differing) -> Change:
    try:
        seconds = one.changed().step_time
    except InputError:
        seconds = None
    return Change(one.what, one.first, one.second, seconds)


def _parts(step: Step) -> dict[str, Seconds]:
    exposed = {f"exposed: {axis}": seconds for axis, seconds in step.exposed.items()}
    return {"compute": step.compute, "pipeline bubble": step.bubble, **exposed, "optimizer": step.optimizer}
