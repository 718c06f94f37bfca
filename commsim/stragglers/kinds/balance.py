"""What gives some more to do than others?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from commsim.errors import InputError
from commsim.stragglers.effects import Effect, Target
from commsim.stragglers.kinds.straggler import Effects, Straggler, not_negative, share
from commsim.stragglers.laws import Constant, Empirical, Law
from commsim.stragglers.parts import expert_share

if TYPE_CHECKING:
    from commsim.training.estimate import Estimate

SEQUENCES = Empirical((0.36, 0.83, 0.90, 0.99, 1.35, 1.79, 1.92), (0.0, 0.1, 0.5, 0.75, 0.9, 0.95, 1.0))
"""Forward time of a micro-batch over its mean, by its sequences (ByteDance StragglerAnalysis, trace SE, stage 0)."""


@dataclass(frozen=True)
class SequenceImbalance(Straggler):
    """Micro-batches have the same tokens and other attention: one long sequence takes longer than many short ones."""

    law: Law = SEQUENCES

    @property
    def effects(self) -> Effects:
        """A factor of each micro-batch of each pipeline, alike on all its stages and in both passes."""
        return (Effect("compute", "operation", self.law, Target("replica")),)


@dataclass(frozen=True)
class ExpertImbalance(Straggler):
    """The fullest expert rank has `excess` more than the mean, and all wait for it in each layer.

    1.564 with DeepSeek-R1 on 32 ranks, 0.115 with redundant experts (TensorRT-LLM). `share` of an operation's time is
    spent in experts; unless said it is that of the estimate.
    """

    share: float | None = None
    excess: float = 1.564

    def __post_init__(self) -> None:
        """Refuse a share above 1 and a negative excess; InputError."""
        not_negative(self, "excess")
        if self.share is not None:
            share(self, "share")

    @property
    def effects(self) -> Effects:
        """A factor of all operations, for the job; InputError while nobody knows the share."""
        if self.share is None:
            raise InputError(
                "expert imbalance: share", None, "a share of the time, or the step of a model, belongs here"
            )
        return (Effect("compute", "job", Constant(1 + self.share * self.excess), Target("all")),)

    def on(self, estimate: Estimate) -> ExpertImbalance:
        """Return it with the estimate's share; InputError for a model whose experts are not dealt out."""
        if self.share is not None:
            return self
        found = expert_share(estimate)
        if not found:
            model = estimate.setting.model.name
            raise InputError("expert imbalance", model, "a model with experts, and expert=N in its plan, belong here")
        return replace(self, share=found)
