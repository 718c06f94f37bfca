"""What did a search find, and how is it written on the command line?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from commsim.training.plan import Plan
    from commsim.training.recipe import Recipe


@dataclass(frozen=True)
class Found:
    """A plan of a search with the recipe that it runs: its step time, s, its memory, B, and why it is not the first."""

    plan: Plan
    recipe: Recipe
    step_time: float
    memory: float
    why_not_first: str

    def __str__(self) -> str:
        return spelled(self.plan, self.recipe)


def spelled(plan: Plan, recipe: Recipe) -> str:
    """Return a plan and what a search chooses of its recipe, as options of the command line."""
    chunks = f" --virtual-stages {plan.virtual}" if plan.virtual > 1 else ""
    again = "" if recipe.recompute == "none" else f" --recompute {recipe.recompute}"
    return f"{plan.text}{chunks} --zero {plan.zero} --micro-batch {recipe.micro_batch}{again}"
