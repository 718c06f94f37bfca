"""Plans that hypothesis draws: small machines, several models, every axis and option."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from commsim.errors import InputError
from commsim.training.axes import Context, Data, Expert, Pipeline, Tensor
from commsim.training.configs.well_known import model
from commsim.training.estimate import Estimate, estimate
from commsim.training.plan import Plan
from commsim.training.recipe import Recipe
from commsim.training.setting import Setting
from tests.training.settings import machine

MODELS = ("llama3.2-1b", "llama3.1-8b", "mixtral-8x7b", "deepseek-v2", "qwen3-30b-a3b", "nemotron-3-nano", "gpt3-5b")
SMALL = st.sampled_from([1, 2, 4])


@dataclass(frozen=True)
class Case:
    """A model, a plan, a recipe and the name of a machine that the plan fills."""

    model: str
    plan: Plan
    recipe: tuple[tuple[str, Any], ...]
    machine: str = "hgx-h100"

    def setting(self) -> Setting:
        """Return the setting."""
        return Setting(model(self.model), self.plan, Recipe(**dict(self.recipe)), machine(self.plan.gpus, self.machine))

    def estimate(self) -> Estimate:
        """Return the estimate."""
        return estimate(model(self.model), self.plan, machine(self.plan.gpus, self.machine), **dict(self.recipe))

    def but(self, **recipe: Any) -> Case:  # noqa: ANN401 - the fields of Recipe
        """Return the case with another recipe."""
        return replace(self, recipe=tuple((dict(self.recipe) | recipe).items()))


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Up to 64 ranks in any order."""
    tensor, context, data, pipeline = (draw(SMALL) for _ in range(4))
    virtual = draw(st.sampled_from([1, 2])) if pipeline > 1 else 1
    shard = draw(st.sampled_from([None, *(size for size in (1, 2) if data % size == 0)]))
    zero = draw(st.sampled_from([0, 1, 2, 3])) if shard is None else draw(st.sampled_from([1, 2, 3]))
    axes = [Tensor(tensor), Context(context), Pipeline(pipeline, virtual), Data(data, zero, shard)]
    expert = draw(st.sampled_from([1, 2, 4]))
    assume(tensor * context * data % expert == 0)
    return Plan(*draw(st.permutations([*axes, *([Expert(expert)] if expert > 1 else [])])))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Cases that fit; what does not is drawn anew."""
    recipe = {
        "global_batch": draw(st.sampled_from([8, 16, 32])),
        "micro_batch": draw(st.sampled_from([1, 2])),
        "sequence": draw(st.sampled_from([1024, 4096])),
        "recompute": draw(st.sampled_from(["none", "selective", "full"])),
        "overlap_tensor": draw(st.booleans()),
        "overlap_data": draw(st.booleans()),
        "overlap_pipeline": draw(st.sampled_from([None, True, False])),
    }
    plan = draw(plans())
    if plan.expert > 1:
        recipe["overlap_expert"] = draw(st.booleans())
    case = Case(draw(st.sampled_from(MODELS)), plan, tuple(recipe.items()))
    assume(fits(case))
    return case


@lru_cache(maxsize=4096)
def fits(case: Case) -> bool:
    """Tell whether model, plan, recipe and machine fit each other."""
    try:
        case.setting()
    except InputError:
        return False
    return True
