"""What does the cross entropy over the vocabulary cost, and what does it keep?"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from commsim.training.operations import AT_ONCE, Operation, Shard, Stored, passing

if TYPE_CHECKING:
    from commsim.training.model import Model


class Way(NamedTuple):
    """Bytes a bf16 logit: moved forward and backward, kept for the backward pass, and there besides during it."""

    forward: float
    backward: float
    kept: float
    gradient: float


FUSED = Way(6.0, 4.0, 4.0, 2.0)
"""One kernel (Transformer Engine, flash-attn): logits are read twice, and their gradient is written in their place; the
backward pass scales it. Kept are fp32 logits as of Megatron's own, 4sbv/t (Korthikanti et al. 2022, section 4.3)."""
PLAIN = Way(14.0, 22.0, 6.0, 8.0)
"""`cross_entropy(logits.float())`: cast and log-softmax, each read and written; backward the log-softmax's gradient is
set to zero, read with the log-softmax for another, and cast. Kept are the logits and their fp32 log-softmax; the fp32
gradients of its result and of its input are there at once."""


def loss(model: Model, shard: Shard) -> tuple[Operation, Stored]:
    """Return the cross entropy of a rank's logits, all of them where the loss is not split, and what it keeps."""
    way = PLAIN if "loss" in shard.unfused else FUSED
    logits = shard.tokens * model.vocabulary / (shard.tensor if shard.loss_parallel else 1.0)
    moved = logits * way.forward / shard.element, logits * way.backward / shard.element
    operation = passing("cross entropy", shard, *moved, split="columns" if shard.loss_parallel else "none")
    return operation, Stored("logits", logits * way.kept, "columns", AT_ONCE, logits * way.gradient)
