"""What is the compressed attention of DeepSeek-V4?"""

from __future__ import annotations

from dataclasses import dataclass

from commsim.errors import InputError
from commsim.training.layers.core import Core
from commsim.training.layers.indexer import Indexer  # noqa: TC001 - the reader of YAML needs it when it runs
from commsim.training.layers.part import need_positive
from commsim.training.layers.span import Span
from commsim.training.operations import Array, Operation, Shard, Stored, passing
from commsim.training.projections import Lanes, Projection, columns, replicated, rows


@dataclass(frozen=True)
class CompressedAttention:
    """Attention over the `window` latest tokens and a pool of compressed ones (DeepSeek-V4 2026, section 2.3).

    One head serves as key and value of all `heads`. Every `stride` tokens give one pooled entry (0: no pool); with an
    `indexer` a query sees the `top_k` best of them and the pooling windows overlap, else it sees all. The output goes
    through `output_groups` groups of rank `output_rank`.
    """

    heads: int
    head_dim: int
    query_rank: int
    window: int
    output_groups: int
    output_rank: int
    stride: int = 0
    indexer: Indexer | None = None

    def __post_init__(self) -> None:
        need_positive(self, "heads", "head_dim", "query_rank", "window", "output_groups", "output_rank")
        if self.heads % self.output_groups:
            expected = f"a divisor of the {self.heads} heads belongs here"
            raise InputError("CompressedAttention: output_groups", self.output_groups, expected)

    @property
    def label(self) -> str:
        """`compressed-STRIDE`, or `sliding` without a pool."""
        return f"compressed-{self.stride}" if self.stride else "sliding"

    @property
    def kv_heads(self) -> int:
        """One, shared by all heads."""
        return 1

    @property
    def core(self) -> Core:
        """The attention between the projections."""
        pool = Span(stride=self.stride, most=self.indexer.top_k if self.indexer else None) if self.stride else None
        spans = (Span(most=self.window), *((pool,) if pool else ()))
        return Core(self.heads, 1, self.head_dim, self.head_dim, spans)

    @property
    def _overlap(self) -> int:
        return 2 if self.indexer else 1

    def _pool(self, hidden: int) -> tuple[Projection, ...]:
        if not self.stride:
            return ()
        pooled = replicated("compressor", hidden, 2 * self._overlap * self.head_dim)
        indexer = self.indexer.projections(hidden, self.query_rank, 2 * self._overlap) if self.indexer else ()
        return pooled, *indexer

    def projections(self, hidden: int) -> tuple[Projection, ...]:
        """Return query down and up, the shared key and value, the compressor, the indexer, and the grouped output."""
        grouped = self.heads * self.head_dim // self.output_groups
        lanes: tuple[Lanes, ...] = ((self.output_rank, 1),)
        return (
            replicated("query down", hidden, self.query_rank),
            columns("query up", self.query_rank, (self.heads, self.head_dim)),
            replicated("key and value", hidden, self.head_dim),
            *self._pool(hidden),
            Projection("output down", grouped, lanes, "groups", copies=self.output_groups, used=self.output_groups),
            rows("output up", self.output_groups * self.output_rank, hidden),
        )

    def vectors(self, hidden: int) -> int:
        """Return norms, sinks and the position biases of the pools."""
        del hidden
        pool = (self.stride * self._overlap + 1) * self.head_dim if self.stride else 0
        indexer = (self.stride * self._overlap + 1) * self.indexer.head_dim if self.indexer else 0
        return self.query_rank + self.head_dim + self.heads + pool + indexer

    def exchanged(self, shard: Shard) -> Array:
        """Return the elements per token of the shared head, and of the pool."""
        del shard
        return self.head_dim * (1.0 + (1 / self.stride if self.stride else 0.0))

    def operations(self, hidden: int, shard: Shard) -> tuple[Operation, ...]:
        """Return projections, norms, rotation, pooling, the choice of entries, attention and output."""
        *before, down, up = (projection.operation(shard) for projection in self.projections(hidden))
        queries = shard.tokens * shard.lanes(self.heads) * self.head_dim
        latents = shard.spread * (self.query_rank + self.head_dim)
        norm = passing("latent norm", shard, 2 * latents, 3 * latents, split="sequence")
        rotation = passing("query norm and rotary embedding", shard, 4 * queries, 5 * queries, split="heads")
        chosen = (self.indexer.operation(shard, self.stride),) if self.indexer else ()
        return *before, norm, rotation, *self._pooling(shard), *chosen, *self.core.operations(shard), down, up

    def _pooling(self, shard: Shard) -> tuple[Operation, ...]:
        if not self.stride:
            return ()
        width = 2 * self._overlap * (self.head_dim + (self.indexer.head_dim if self.indexer else 0))
        elements = shard.spread * width
        return (passing("pooling", shard, elements * (1 + 1 / self.stride), 2 * elements, split="sequence"),)

    def stored(self, hidden: int, shard: Shard) -> tuple[Stored, ...]:
        """Return the latents, the inputs of the pools, queries before and after their norm, keys, and the output."""
        heads = shard.element * shard.tokens * shard.lanes(self.heads) * self.head_dim
        pool = sum(projection.width for projection in self._pool(hidden))
        latents = shard.spread * (2 * (self.query_rank + self.head_dim) + pool)
        down = shard.element * shard.tokens * shard.lanes(self.output_groups) * self.output_rank
        return (
            Stored("latents and pools", shard.element * latents, "sequence"),
            Stored("queries", 2 * heads, "heads"),
            *self.core.stored(shard),
            Stored("attention output", heads, "heads"),
            Stored("output down", down, "groups"),
        )
