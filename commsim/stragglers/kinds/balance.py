"""What gives some more to do than others?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from commsim.errors import InputError
from commsim.stragglers.effects import Effect, Target
from commsim.stragglers.kinds.straggler import Effects, Straggler, not_negative, share
from commsim.stragglers.laws import Constant, Empirical, Law
from commsim.stragglers.parts import expert_shares

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

    1.564 with DeepSeek-R1 on 32 ranks, 0.115 with redundant experts (TensorRT-LLM). `share` of the compute is done in
    experts, and `exchange` is their part of what is said and not hidden; unless said they are those of the estimate.
    """

    share: float | None = None
    excess: float = 1.564
    exchange: float | None = None

    def __post_init__(self) -> None:
        """Refuse shares above 1 and a negative excess; InputError."""
        not_negative(self, "excess")
        for name in ("share", "exchange"):
            if getattr(self, name) is not None:
                share(self, name)

    @property
    def effects(self) -> Effects:
        """A factor of all operations, and one of what they say; InputError while nobody knows the share."""
        if self.share is None:
            raise InputError("expert imbalance: share", None, "a share of the compute, or an estimate, belongs here")
        computed, said = (Constant(1 + (part or 0.0) * self.excess) for part in (self.share, self.exchange))
        compute = Effect("compute", "job", computed, Target("all"))
        return (compute, Effect("bandwidth", "operation", said, Target("all"))) if self.exchange else (compute,)

    def on(self, estimate: Estimate) -> ExpertImbalance:
        """Return it with the estimate's shares; InputError for a model whose experts are not dealt out."""
        if self.share is not None and self.exchange is not None:
            return self
        computed, said = expert_shares(estimate)
        if self.share is None and not computed:
            model = estimate.setting.model.name
            raise InputError("expert imbalance", model, "a model with experts, and expert=N in its plan, belong here")
        return replace(
            self,
            share=min(computed, 1.0) if self.share is None else self.share,
            exchange=min(said, 1.0) if self.exchange is None else self.exchange,
        )
