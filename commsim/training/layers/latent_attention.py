"""What is multi-head latent attention?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from commsim.training.layers.core import Core
from commsim.training.layers.indexer import Indexer  # noqa: TC001 - the reader of YAML needs it when it runs
from commsim.training.layers.part import need_positive
from commsim.training.layers.span import Span
from commsim.training.operations import Array, Operation, Shard, Stored, passing, union
from commsim.training.projections import Projection, columns, replicated, rows

if TYPE_CHECKING:
    from collections.abc import Iterator

_UP = union("mla_up_proj")


@dataclass(frozen=True)
class LatentAttention:
    """Attention whose keys and values grow from a small latent (DeepSeek-V2 2024, eq. 9-19), its query too if ranked.

    A key is `nope_dim` from the latent and `rope_dim` shared by all heads. Training expands the latent, so every head
    has its own keys and values. An `indexer` lets a query see its `top_k` best keys only.
    """

    heads: int
    kv_rank: int
    nope_dim: int
    rope_dim: int
    value_dim: int
    query_rank: int | None = None
    gate: bool = False
    indexer: Indexer | None = None

    def __post_init__(self) -> None:
        need_positive(self, "heads", "kv_rank", "nope_dim", "value_dim")

    @property
    def label(self) -> str:
        """`sparse` with an indexer, else `latent`."""
        return "sparse" if self.indexer else "latent"

    @property
    def kv_heads(self) -> int:
        """As many as there are heads: training expands the latent."""
        return self.heads

    @property
    def key_dim(self) -> int:
        """Width of a query and of a key."""
        return self.nope_dim + self.rope_dim

    @property
    def core(self) -> Core:
        """The attention between the projections."""
        span = Span(most=self.indexer.top_k if self.indexer else None)
        return Core(self.heads, self.heads, self.key_dim, self.value_dim, (span,))

    def _query(self, hidden: int) -> tuple[Projection, ...]:
        lanes = self.heads, self.key_dim
        if not self.query_rank:
            return (columns("query", hidden, lanes, recompute=_UP),)
        down = replicated("query down", hidden, self.query_rank)
        return down, columns("query up", self.query_rank, lanes, recompute=_UP)

    def _key_value(self, hidden: int) -> tuple[Projection, ...]:
        down = replicated("key, value down", hidden, self.kv_rank + self.rope_dim)
        return down, columns("key, value up", self.kv_rank, (self.heads, self.nope_dim + self.value_dim), recompute=_UP)

    def projections(self, hidden: int) -> tuple[Projection, ...]:
        """Return query, key and value, down and up, then the indexer, the gate and the output."""
        width = self.heads * self.value_dim
        indexer = self.indexer.projections(hidden, self.query_rank or hidden) if self.indexer else ()
        gate = (columns("gate", hidden, (self.heads, self.value_dim)),) if self.gate else ()
        return *self._query(hidden), *self._key_value(hidden), *indexer, *gate, rows("output", width, hidden)

    def vectors(self, hidden: int) -> int:
        """Return the norms of both latents, and of the indexer's key."""
        del hidden
        return (self.query_rank or 0) + self.kv_rank + (2 * self.indexer.head_dim if self.indexer else 0)

    def exchanged(self, shard: Shard) -> Array:
        """Return the elements per token of the rank's expanded keys and values."""
        return shard.lanes(self.heads) * (self.key_dim + self.value_dim)

    def operations(self, hidden: int, shard: Shard) -> tuple[Operation, ...]:
        """Return projections, norms, rotation, the choice of keys, attention, gate and output."""
        *before, output = (projection.operation(shard) for projection in self.projections(hidden))
        return *before, *self._before(shard), *self.core.operations(shard), *self._after(shard), output

    def _before(self, shard: Shard) -> Iterator[Operation]:
        latents = shard.spread * (self.kv_rank + (self.query_rank or 0))
        # a fused kernel turns the rope part of queries in place, and joins keys of their two parts (Megatron-Core)
        turned = 2 * self.rope_dim + self.nope_dim + self.key_dim
        rotated = shard.tokens * shard.lanes(self.heads) * turned
        yield passing("latent norm", shard, 2 * latents, 3 * latents, split="sequence", recompute=_UP)
        yield passing("rotary embedding", shard, rotated, rotated, split="heads", recompute=_UP)
        if self.indexer:
            yield self.indexer.operation(shard)

    def _after(self, shard: Shard) -> Iterator[Operation]:
        elements = shard.tokens * shard.lanes(self.heads) * self.value_dim
        if self.gate:
            yield passing("gate", shard, 3 * elements, 5 * elements, split="heads")

    def stored(self, hidden: int, shard: Shard) -> tuple[Stored, ...]:
        """Return the latents before and after their norm, the expanded queries, keys and values, and the output."""
        del hidden
        heads = shard.element * shard.tokens * shard.lanes(self.heads)
        latents = 2 * (self.kv_rank + (self.query_rank or 0)) + self.rope_dim
        output = Stored("attention output", heads * self.value_dim, "heads")
        gate = Stored("gate and its input", 2 * heads * self.value_dim, "heads")
        return (
            Stored("latents", shard.element * shard.spread * latents, "sequence"),
            Stored("query, key, value", heads * (2 * self.key_dim + self.value_dim), "heads", _UP),
            *self.core.stored(shard),
            *(gate,) * self.gate,
            output,
        )
