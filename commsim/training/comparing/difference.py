"""What makes one estimated step longer than another: the machine, the plan, or which choice of the recipe?"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from commsim.errors import InputError
from commsim.training.estimate import Estimate
from commsim.units import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commsim.hardware.system import System
    from commsim.training.setting import Setting
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
        found = [self._change(*each) for each in _differences(self.first.setting, self.second.setting)]
        return tuple(sorted(found, key=lambda one: one.seconds if one.seconds is not None else float("inf")))

    def _change(self, what: str, other: dict[str, object], first: str, second: str) -> Change:
        try:
            setting = dataclasses.replace(self.first.setting, **other)  # type: ignore[arg-type] # fields by their names
            return Change(what, first, second, Estimate(setting, self.first.library).step_time)
        except InputError:
            return Change(what, first, second, None)


def difference(first: Estimate, second: Estimate) -> Difference:
    """Return two estimates beside each other; InputError for two different models."""
    ours, theirs = first.setting.model.name, second.setting.model.name
    if ours != theirs:
        raise InputError("compare", theirs, f"the model of the other, {ours}, belongs here: steps of two models differ")
    return Difference(first, second)


def _parts(step: Step) -> dict[str, Seconds]:
    exposed = {f"exposed: {axis}": seconds for axis, seconds in step.exposed.items()}
    return {"compute": step.compute, "pipeline bubble": step.bubble, **exposed, "optimizer": step.optimizer}


def _differences(first: Setting, second: Setting) -> Iterator[tuple[str, dict[str, object], str, str]]:
    """What differs, the fields of the setting that it changes, and what it is in each."""
    ours, theirs = first.system, second.system
    if (ours.name, ours.gpus, ours.nodes) != (theirs.name, theirs.gpus, theirs.nodes):
        yield "system", {"system": theirs}, _system(ours), _system(theirs)
    if first.plan != second.plan:
        yield "plan", {"plan": second.plan}, _plan(first), _plan(second)
    for field in dataclasses.fields(first.recipe):
        before, after = (getattr(one.recipe, field.name) for one in (first, second))
        if before != after:
            recipe = dataclasses.replace(first.recipe, **{field.name: after})
            yield field.name.replace("_", "-"), {"recipe": recipe}, str(before), str(after)


def _system(system: System) -> str:
    return f"{counted(system.gpus, 'GPU')} of {system.name}"


def _plan(setting: Setting) -> str:
    return ", ".join(f"{axis.name} {axis.size}" for axis in setting.plan.axes)
