"""How long does a step take, and why?"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from commsim.errors import InputError
from commsim.figures import is_range
from commsim.hardware.system import System
from commsim.libraries.calibration import NOMINAL, Case
from commsim.libraries.nccl import Nccl
from commsim.libraries.own import own
from commsim.training.assumptions import assumed
from commsim.training.model import Model
from commsim.training.passes import Explanation
from commsim.training.plan import Plan
from commsim.training.recipe import Recipe
from commsim.training.setting import Setting
from commsim.training.sources import Sources, sources
from commsim.training.step import machine_of, said, steps
from commsim.training.work import model_flops
from commsim.units import counted, show

if TYPE_CHECKING:
    from commsim.libraries.library import Library
    from commsim.training.memory import Memory
    from commsim.training.steps import Step, Steps

WHAT_IFS = {
    "compute": "matrix units twice as fast",
    "memory": "memory twice as fast",
    "scale-up": "links of the scale-up domain twice as fast",
    "network": "NICs and network twice as fast",
}


@dataclass(frozen=True, eq=False)
class Estimate:
    """The time of a step of a model under a plan on a machine, with its reasons."""

    setting: Setting
    library: Library

    @cached_property
    def step(self) -> Step:
        """The step at the nominal figures of the machine."""
        return self.at(NOMINAL)

    def at(self, case: Case) -> Step:
        """Return the step in another case: at the end of the machine's ranges, or with something made faster."""
        machine = machine_of(self.setting, self.library, case)
        found = self.steps if case == NOMINAL else steps(self.setting, machine)
        return found.step(said=said(self.setting, machine))

    @cached_property
    def steps(self) -> Steps:
        """The step as the one plan of an array of them, at the nominal figures of the machine."""
        return steps(self.setting, machine_of(self.setting, self.library))

    @property
    def step_time(self) -> float:
        """Time of one optimizer step, s."""
        return float(self.steps.seconds[0])

    @cached_property
    def memory(self) -> Memory:
        """Memory of the fullest rank."""
        return self.steps.held.memory(0, float(self.setting.system.accelerator.memory))

    @property
    def tokens_per_second_per_gpu(self) -> float:
        """Tokens per second and GPU."""
        return self.setting.tokens_per_step / self.step_time / self.setting.system.gpus

    @cached_property
    def model_flops_per_gpu(self) -> float:
        """FLOPs of the model per GPU and step: causal, with logits, without recompute (see `model_flops`)."""
        setting = self.setting
        flops = model_flops(setting.model, float(setting.recipe.sequence))
        return float(flops) * setting.tokens_per_step / setting.system.gpus

    @property
    def mfu(self) -> float:
        """Model FLOPs utilisation: `model_flops_per_gpu` over the dense peak of the matmuls' number format."""
        peak = self.setting.system.accelerator.peak[self.setting.recipe.matmul_format]
        return self.model_flops_per_gpu / self.step_time / peak

    @cached_property
    def assumptions(self) -> tuple[str, ...]:
        """What the estimate takes for granted, one sentence each."""
        windows = isinstance(self.library, Nccl) and self.library.symmetric
        name = f"{self.library.name} on symmetric windows" if windows else self.library.name
        return tuple(assumed(self.setting, self.step, name))

    @cached_property
    def range(self) -> tuple[float, float] | None:
        """Step time at the fast and at the slow end of the machine's figures, s; None when they are all certain."""
        system = self.setting.system
        figures = [*system.accelerator.peak.values(), system.accelerator.memory_bandwidth]
        links = [value for link in system.topology.kinds for value in (link.bandwidth, link.latency)]
        if not any(map(is_range, [*figures, *links])):
            return None
        return self.at(Case("high")).seconds, self.at(Case("low")).seconds

    @cached_property
    def what_if(self) -> dict[str, float]:
        """Step time saved, s, if one resource were twice as fast: what would help most."""
        system = self.setting.system
        cases = {"compute": ["compute"], "memory": ["memory"], **links_of(system)}
        return {
            name: self.step_time - self.at(Case(faster=tuple((kind, 2.0) for kind in kinds))).seconds
            for name, kinds in cases.items()
            if kinds
        }

    def __str__(self) -> str:
        """The estimate in a few lines; `commsim estimate` says more."""
        parts = {"compute": self.step.compute, "bubble": self.step.bubble, "optimizer": self.step.optimizer}
        exposed = {f"{axis} exposed": seconds for axis, seconds in self.step.exposed.items()}
        used = f"{show(self.memory.total, 'B', 3)} of {show(self.memory.capacity, 'B', 3)}"
        lines = [
            f"{self.setting.model.name} on {counted(self.setting.system.gpus, 'GPU')} of {self.setting.system.name}",
            str(self.setting.plan),
            f"step {show(self.step_time, 's', 4)}, MFU {self.mfu:.1%}",
            f"{self.tokens_per_second_per_gpu:.1f} tokens/s/GPU",
            *(f"  {name:<20}{show(max(value, 0.0), 's', 3)}" for name, value in (parts | exposed).items()),
            f"memory {used}: {'fits' if self.memory.fits else 'does not fit'}",
        ]
        return "\n".join(lines)

    def sources(self) -> Sources:
        """Return the figures behind the estimate with the documents that they are from; printed, one line each."""
        return sources(self.setting, self.step.said, self.library)

    def explain(self, axis: str) -> Explanation:
        """Return what is said along an axis: each collective with its algorithm, its limit and its time.

        InputError for an axis that says nothing in this plan.
        """
        found = Explanation(one for one in self.step.said if one.traffic.axis == axis)
        if not found:
            speaking = list(dict.fromkeys(one.traffic.axis for one in self.step.said))
            raise InputError("axis", axis, "it says nothing in this plan", among=speaking)
        return found


def links_of(system: System) -> dict[str, list[str]]:
    """Return the kinds of link inside the scale-up domain, as its GPUs use them, and those of the network."""
    inside: list[str] = []
    if system.gpus > 1:
        crossed = system.topology.route(np.array([0]), np.array([1])).hops[0] > 0
        inside = [link.kind for link, used in zip(system.topology.kinds, crossed) if used]
    network = [system.fabric.cable.kind, system.fabric.hop.kind] if system.fabric else []
    return {"scale-up": inside, "network": network}


def estimate(model: Model, plan: Plan, system: System, *, library: Library | None = None, **recipe: Any) -> Estimate:  # noqa: ANN401
    """Return the estimate of a step; the keywords are the fields of `Recipe` (`global_batch` must be given).

    Without a `library` it is that of the GPUs' vendor. InputError when plan, model, recipe, machine and library do not
    fit each other, and for a machine whose accelerator has no figures of its own.
    """
    need("estimate", {"plan": plan})
    setting = Setting(model, plan, recipe_of("estimate", model, system, recipe), system)
    return Estimate(setting, own(system, library))


_MAKERS = {
    "model": (Model, "commsim.model(name)"),
    "plan": (Plan, "commsim.Plan(...)"),
    "system": (System, "commsim.load(name)"),
}


def need(where: str, given: dict[str, object]) -> None:
    """Raise InputError unless each is the value that its name says: a model, a plan, a system."""
    for what, value in given.items():
        kind, maker = _MAKERS[what]
        if not isinstance(value, kind):
            raise InputError(f"{where}: {what}", value, f"what {maker} gives belongs here")


def recipe_of(where: str, model: Model, system: System, options: dict[str, Any]) -> Recipe:
    """Return the recipe of these options; InputError for others, for what is no model or system, for mere templates."""
    need(where, {"model": model, "system": system})
    known = [field.name for field in fields(Recipe)]
    for key in options:
        if key not in known:
            raise InputError(where, key, "no such option of a recipe", among=known)
    if "global_batch" not in options:
        raise InputError(f"{where}: global_batch", None, "the sequences of one step belong here")
    if system.template:
        raise InputError(f"system {system.name}", system.name, f"nothing is published of it; try {system.template}")
    return Recipe(**options)
