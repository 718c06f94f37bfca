"""What is being estimated: which model, under which plan and recipe, on which machine?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from commsim.training.axes import AXES, Context, Expert, Pipeline, Tensor, Traffic
from commsim.training.chunks import Chunks, chunks
from commsim.training.fitting import misfits
from commsim.training.operations import Shard
from commsim.training.pieces import ACTIVATION_BYTES
from commsim.training.recipe import SCALINGS

if TYPE_CHECKING:
    from collections.abc import Hashable

    from commsim.hardware.system import System
    from commsim.training.model import Model
    from commsim.training.operations import Array
    from commsim.training.pieces import Piece
    from commsim.training.plan import Plan
    from commsim.training.recipe import Recipe

UNFUSED, ALL_TO_ALL, HYBRID = "unfused", "alltoall", "hybridep"


@dataclass(frozen=True, eq=False)
class Setting:
    """A model, a plan, a recipe and a machine that fit each other."""

    model: Model
    plan: Plan
    recipe: Recipe
    system: System

    def __post_init__(self) -> None:
        """Refuse what does not fit; InputError names the first thing."""
        for error in misfits(self):
            raise error
        self.chunks  # noqa: B018 - layers that cannot be spread do not fit either

    @property
    def microbatches(self) -> int:
        """Micro-batches that pass each pipeline in a step."""
        return self.recipe.global_batch // (self.recipe.micro_batch * self.plan.data)

    @property
    def tokens_per_step(self) -> int:
        """Tokens of one optimizer step."""
        return self.recipe.global_batch * self.recipe.sequence

    @property
    def imbalance(self) -> float:
        """Tokens of the most loaded expert rank over the mean: 1 where one rank has all experts."""
        return self.recipe.imbalance if self.plan.expert > 1 else 1.0

    @property
    def schedule(self) -> str:
        """The pipeline's schedule: the recipe's, else 1F1B, interleaved with virtual stages."""
        return self.recipe.schedule or ("interleaved" if self.plan.virtual > 1 else "1f1b")

    @property
    def kernel(self) -> str | None:
        """The generation of the attention kernel; None for the newest one, and where attention is not fused."""
        return None if self.recipe.attention == UNFUSED else self.recipe.attention

    @cached_property
    def cut(self) -> tuple[Hashable, ...]:
        """What the pieces of the model depend on: settings that are alike in it have the same."""
        plan, all_alike = self.plan, self.recipe.recompute_layers is None
        axes = plan.axis(Tensor), plan.axis(Context), plan.axis(Expert), None if all_alike else plan.axis(Pipeline)
        return self.model, replace(self.recipe, global_batch=1), *axes, plan.pipeline > 1

    @cached_property
    def shard(self) -> Shard:
        """What one rank is given of a micro-batch."""
        plan, recipe = self.plan, self.recipe
        sizes = float(plan.tensor), float(plan.context), float(plan.expert)
        usual = given(recipe, recipe.micro_batch, *sizes)
        ring = plan.axis(Context).by == "ring"
        return replace(usual, expert_tensor=float(plan.expert_tensor), sequence_parallel=plan.sequence, ring=ring)

    @cached_property
    def chunks(self) -> Chunks:
        """The pieces of the model, and which of them each chunk of the pipeline holds."""
        return chunks(self)

    def bytes_of(self, width: Array) -> Array:
        """Return the bytes of so many activations for each token of a micro-batch, over all tensor ranks."""
        return self.shard.tokens * width * ACTIVATION_BYTES

    def traffic(self, piece: Piece) -> tuple[Traffic, ...]:
        """Return everything that a piece says along all axes; groups of one say nothing."""
        said = (one for axis in AXES.values() for one in self.plan.axis(axis).traffic(self, piece))
        return tuple(one for one in said if self.plan.layout(one.group).size > 1)


def given(recipe: Recipe, micro_batch: Array, tensor: Array, context: Array, expert: Array) -> Shard:
    """Return what a rank is given, by the sizes of the axes: numbers, or arrays with one entry a plan."""
    return Shard(
        tokens=micro_batch * recipe.sequence / context,
        sequence=float(recipe.sequence),
        tensor=tensor,
        context=context,
        expert=expert,
        element=ACTIVATION_BYTES,
        fused_attention=recipe.attention != UNFUSED,
        saved=recipe.saved_bytes,
        unfused=frozenset(recipe.unfused.split("+")),
        loss_parallel=recipe.loss_parallel,
        gradient=2 * recipe.gradient_bytes,
        copies=recipe.dispatcher == ALL_TO_ALL,
        sorts=recipe.dispatcher != HYBRID,
        scales=SCALINGS[recipe.scaling] if recipe.precision == "fp8" else 0.0,
        neighbours=recipe.routing == "consecutive",
    )
