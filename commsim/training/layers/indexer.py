"""How does sparse attention choose its keys?"""

from __future__ import annotations

from dataclasses import dataclass

from commsim.training.layers.core import BACKWARD_BYTES
from commsim.training.layers.span import Span
from commsim.training.operations import Operation, Shard, union
from commsim.training.projections import Projection, replicated


@dataclass(frozen=True)
class Indexer:
    """The lightning indexer (DeepSeek-V3.2-Exp 2025, eq. 1): small heads score all keys, the best `top_k` are seen."""

    heads: int
    head_dim: int
    top_k: int

    def projections(self, hidden: int, query_rank: int, key_copies: int = 1) -> tuple[Projection, ...]:
        """Return the query, key and weight matrices; compressed keys have `key_copies` of theirs."""
        return (
            replicated("indexer query", query_rank, self.heads * self.head_dim),
            replicated("indexer key", hidden, key_copies * self.head_dim),
            replicated("indexer weight", hidden, self.heads),
        )

    def operation(self, shard: Shard, stride: int = 1) -> Operation:
        """Return the scoring of every `stride`-th key: one product a head, and a weighted sum over heads."""
        keys = Span(stride=stride).keys(shard.sequence)
        flops = 2 * shard.spread * keys * self.heads * self.head_dim
        moved = shard.element * self.head_dim * (shard.spread * self.heads + shard.tokens * shard.context / stride)
        return Operation(
            "indexer scores",
            "attention",
            "sequence",
            flops,
            moved,
            2 * flops,
            BACKWARD_BYTES * moved,
            m=shard.spread,
            n=keys,
            k=float(self.head_dim),
            batch=float(self.heads),
            recompute=union("core_attn"),
        )
