"""What does attention itself cost, between its projections?"""

from __future__ import annotations

from dataclasses import dataclass

from commsim.training.layers.span import Span
from commsim.training.operations import (
    SCORE_BYTES,
    Array,
    Operation,
    Shard,
    Stored,
    passing,
    product,
    union,
)

KEY_GRADIENTS, VALUE_GRADIENTS = 3.0, 2.0
"""FlashAttention-2's backward pass has five matmuls where the forward pass has two (Dao 2023, section 3): the scores
again, and the gradients of queries and keys, are as wide as the keys; those of values and of the weights as the values.
With equal widths that is 2.5 times the forward pass."""
BACKWARD_BYTES = 2.0
"""The backward pass reads all that the forward pass reads and writes, and writes a gradient for each."""
UNFUSED_SOFTMAX = 8.5, 7.5
"""Elements of two bytes that operations of their own move: scaling 2, a copy 2, masking 2.5 with the mask's byte,
softmax 2; backward softmax 3, masking 2.5, scaling 2 (Aleph-Alpha/scaling: masked_softmax.py; fp32 is no default)."""
BLOCK = 2.25
"""Elements moved for each query, key and value and each further block of a ring: the block's result is read, what is
there is read and written, for three quarters of them, as the causal mask empties half of a block (Transformer Engine's
context parallelism)."""
_CORE = union("core_attn")


@dataclass(frozen=True)
class Core:
    """Softmax attention of `heads` query heads over `kv_heads`, with the widths of a key and of a value."""

    heads: int
    kv_heads: int
    key_width: int
    value_width: int
    spans: tuple[Span, ...] = (Span(),)
    dropout: bool = False

    def keys(self, sequence: Array) -> Array:
        """Return how many keys a query sees on average, over all spans."""
        return sum((span.keys(sequence) for span in self.spans), 0.0)

    def operations(self, shard: Shard) -> tuple[Operation, ...]:
        """Return one fused kernel that sees only what the mask leaves, or scores, softmax and context over all keys."""
        return (self._fused(shard),) if shard.fused_attention else self._unfused(shard)

    def stored(self, shard: Shard) -> tuple[Stored, ...]:
        """Return the softmax statistics, or the softmax itself, and with dropout its mask and result.

        The latter are the 5as²b of Korthikanti et al. 2022, section 4.1.
        """
        heads = shard.tokens * shard.lanes(self.heads)
        if shard.fused_attention:
            return (Stored("softmax statistics", SCORE_BYTES * heads, "heads", _CORE),)
        scores = heads * shard.sequence
        both = 2 * shard.element * scores  # gradients, of what the softmax gives and of what it takes
        softmax = Stored("softmax", shard.element * scores, "heads", _CORE, both)
        dropped = Stored("softmax dropout", (shard.element + 1) * scores, "heads", _CORE)
        return (softmax, dropped) if self.dropout else (softmax,)

    def _fused(self, shard: Shard) -> Operation:
        widths = self.key_width, self.value_width
        heads, groups, keys = shard.lanes(self.heads), shard.lanes(self.kv_heads), self.keys(shard.sequence)
        pairs = 2 * shard.tokens * keys * heads
        backward = KEY_GRADIENTS * self.key_width + VALUE_GRADIENTS * self.value_width
        moved = shard.element * shard.tokens * sum(widths) * (heads + groups * shard.context)
        blocks = shard.context if shard.ring else 1.0
        merged = BLOCK * shard.element * shard.tokens * sum(widths) * (heads + groups) / 2
        return Operation(
            "attention",
            "attention",
            "heads",
            pairs * sum(widths),
            moved,
            pairs * backward,
            BACKWARD_BYTES * moved,
            m=shard.tokens,
            n=keys / blocks,
            k=float(self.key_width),
            batch=heads,
            recompute=_CORE,
            accumulated=merged * (blocks - 1),
        )

    def _unfused(self, shard: Shard) -> tuple[Operation, ...]:
        queries = shard.sequence / shard.context
        batch = shard.lanes(self.heads) * shard.tokens / queries
        scores = batch * queries * shard.sequence
        score = queries, float(self.key_width), shard.sequence, batch
        context = queries, shard.sequence, float(self.value_width), batch
        forward, backward = UNFUSED_SOFTMAX if "softmax" in shard.unfused else (2.0, 3.0)
        operations = (
            product("scores", shard, score, split="heads", gradient=shard.element, recompute=_CORE),
            passing("softmax", shard, forward * scores, backward * scores, split="heads", recompute=_CORE),
            product("context", shard, context, split="heads", gradient=shard.element, recompute=_CORE),
        )
        mask = scores / shard.element
        moved = 2 * scores + mask
        dropout = passing("softmax dropout", shard, moved, moved, split="heads", recompute=_CORE)
        return (*operations[:2], dropout, operations[2]) if self.dropout else operations
