"""What is being estimated: which model, under which plan and recipe, on which machine?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from commsim.errors import InputError
from commsim.training.layers.experts import Experts
from commsim.training.operations import Shard
from commsim.training.work import embedding, head, predictors, work

if TYPE_CHECKING:
    from commsim.hardware.system import System
    from commsim.training.model import Model
    from commsim.training.operations import Work
    from commsim.training.plan import Plan
    from commsim.training.recipe import Recipe

UNFUSED = "unfused"
ACTIVATION_BYTES = 2.0
"""Activations between operations are bf16 or fp16, also where matmuls are fp8 or fp4."""


@dataclass(frozen=True, eq=False)
class Setting:
    """A model, a plan, a recipe and a machine that fit each other."""

    model: Model
    plan: Plan
    recipe: Recipe
    system: System

    def __post_init__(self) -> None:
        """Refuse what does not fit; InputError names the first thing."""
        for wrong, where, given, expected in self._complaints():
            if wrong:
                raise InputError(where, given, expected)

    def _complaints(self) -> list[tuple[bool, str, object, str]]:
        plan, recipe, model, gpus = self.plan, self.recipe, self.model, self.system.gpus
        experts = model.experts.count if model.experts else 0
        replicas, chunks = recipe.micro_batch * plan.data, plan.pipeline * plan.virtual
        return [
            (plan.gpus != gpus, "plan", f"{plan.gpus} ranks", f"the machine has {gpus} GPUs; tensor x context x pipeline x data must equal that"),
            (model.heads > 0 and plan.tensor > model.heads, "plan: tensor", plan.tensor, f"at most the {model.heads} attention heads of {model.name}"),
            (model.heads % plan.tensor > 0 if model.heads else False, "plan: tensor", plan.tensor, f"a divisor of the {model.heads} attention heads of {model.name}"),
            (plan.expert > 1 and not experts, "plan: expert", plan.expert, f"{model.name} has no experts"),
            (experts > 0 and experts % plan.expert > 0, "plan: expert", plan.expert, f"a divisor of the {experts} experts of {model.name}"),
            (len(model.layers) + 2 < chunks, "plan: pipeline", f"{plan.pipeline} stages x {plan.virtual} chunks", f"{model.name} has {len(model.layers)} layers: a stage would be empty"),
            (recipe.global_batch % replicas > 0, "global-batch", recipe.global_batch, f"a multiple of micro-batch x data = {replicas}"),
            (recipe.sequence % (plan.context * (plan.tensor if plan.sequence else 1)) > 0, "sequence", recipe.sequence, f"a multiple of context x tensor = {plan.context * plan.tensor}"),
        ]  # fmt: skip

    @property
    def microbatches(self) -> int:
        """Micro-batches that pass each pipeline in a step."""
        return self.recipe.global_batch // (self.recipe.micro_batch * self.plan.data)

    @property
    def tokens_per_step(self) -> int:
        """Tokens of one optimizer step."""
        return self.recipe.global_batch * self.recipe.sequence

    @cached_property
    def shard(self) -> Shard:
        """What one rank is given of a micro-batch."""
        plan, recipe = self.plan, self.recipe
        return Shard(
            tokens=recipe.micro_batch * recipe.sequence / plan.context,
            sequence=float(recipe.sequence),
            tensor=float(plan.tensor),
            context=float(plan.context),
            expert=float(plan.expert),
            expert_tensor=float(plan.expert_tensor),
            element=ACTIVATION_BYTES,
            sequence_parallel=plan.sequence,
            fused_attention=recipe.attention != UNFUSED,
        )

    @cached_property
    def layers(self) -> dict[str, Work]:
        """What one layer of each kind asks of a rank."""
        return {kind: work(self.model, kind, self.shard) for kind in self.model.kinds}

    @cached_property
    def ends(self) -> tuple[Work, Work]:
        """What the first chunk asks besides its layers (the embedding), and the last (prediction modules, logits, loss)."""
        last, more = head(self.model, self.shard), predictors(self.model, self.shard)
        return embedding(self.model, self.shard), more + last if more else last

    @property
    def hidden_bytes(self) -> float:
        """Bytes of the activations between two layers, of one micro-batch, over all tensor ranks."""
        return float(self.shard.tokens) * self.model.hidden * ACTIVATION_BYTES

    def tensor_parts(self, kind: str) -> int:
        """Return how many parts of a layer the tensor ranks share: the mixer, a dense layer, shared experts."""
        parts = self.model.block(kind).parts
        split = [part for part in parts if not isinstance(part, Experts) or part.shared]
        return 1 if self.model.block(kind).parallel and split else len(split)

    def exchanged_bytes(self, kind: str) -> float:
        """Return the bytes that a rank gives to the other ranks of the context axis in one layer."""
        mixer = self.model.block(kind).mixer
        return float(mixer.exchanged(self.shard) * self.shard.tokens) * ACTIVATION_BYTES if mixer else 0.0

    def dispatched_bytes(self, kind: str) -> float:
        """Return the bytes that a rank sends to its tokens' experts, all copies counted."""
        experts = self.model.block(kind).experts
        if experts is None:
            return 0.0
        own = float(self.shard.tokens) / self.plan.tensor
        return own * experts.top_k * experts.sent(self.model.hidden) * ACTIVATION_BYTES

    def weights(self, kind: str) -> tuple[float, float]:
        """Return how many weights of a layer one rank holds: those that all tokens pass, and those of experts."""
        layer = self.layers[kind]
        return float(layer.weights), float(layer.expert_weights)
