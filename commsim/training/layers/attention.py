"""What is multi-head, grouped-query and multi-query attention?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from commsim.errors import InputError
from commsim.training.layers.core import Core
from commsim.training.layers.part import need_positive
from commsim.training.layers.span import Span
from commsim.training.operations import Array, Operation, Shard, Stored, passing
from commsim.training.projections import Projection, columns, rows

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True)
class Attention:
    """Attention whose keys and values are projected from the layer's input (Vaswani et al. 2017; Ainslie et al. 2023).

    `span` limits what a query sees (sliding window, chunk); `gate` multiplies the result by a gate as wide as it is;
    `query_norm` normalises queries and keys per head or over all heads; `sinks` adds one learned score a head.
    """

    heads: int
    kv_heads: int
    head_dim: int
    value_dim: int | None = None
    span: Span = Span()  # noqa: RUF009 - a frozen value
    gate: bool = False
    rotary: bool = True
    query_norm: Literal["none", "head", "layer"] = "none"
    bias: bool = False
    output_bias: bool = False
    sinks: bool = False
    dropout: bool = False

    def __post_init__(self) -> None:
        need_positive(self, "heads", "kv_heads", "head_dim")
        if self.heads % self.kv_heads:
            raise InputError("Attention: kv_heads", self.kv_heads, f"a divisor of the {self.heads} heads belongs here")

    @property
    def label(self) -> str:
        """`sliding`, `chunked` or `full`."""
        return "sliding" if self.span.most else "chunked" if self.span.chunk else "full"

    @property
    def core(self) -> Core:
        """The attention between the projections."""
        return Core(self.heads, self.kv_heads, self.head_dim, self._value, (self.span,), self.dropout)

    @property
    def _value(self) -> int:
        return self.value_dim or self.head_dim

    def projections(self, hidden: int) -> tuple[Projection, ...]:
        """Return query, key, value (and gate) as one matrix, then the output."""
        lanes = (self.heads, self.head_dim), (self.kv_heads, self.head_dim), (self.kv_heads, self._value)
        gate = (self.heads, self._value if self.gate else 0)
        return columns("query, key, value", hidden, *lanes, gate), rows("output", self.heads * self._value, hidden)

    def vectors(self, hidden: int) -> int:
        """Return biases, norms of queries and keys, and sinks."""
        qkv, _ = self.projections(hidden)
        over_heads = (self.heads + self.kv_heads) * self.head_dim
        norms = {"none": 0, "head": 2 * self.head_dim, "layer": over_heads}[self.query_norm]
        return self.bias * qkv.width + self.output_bias * hidden + norms + self.sinks * self.heads

    def exchanged(self, shard: Shard) -> Array:
        """Return the elements per token of the rank's keys and values."""
        return shard.lanes(self.kv_heads) * (self.head_dim + self._value)

    def operations(self, hidden: int, shard: Shard) -> tuple[Operation, ...]:
        """Return projection, norm, rotation, attention, gate and output."""
        qkv, output = self.projections(hidden)
        return qkv.operation(shard), *self._before(shard), *self.core.operations(shard), *self._after(output, shard)

    def _before(self, shard: Shard) -> Iterator[Operation]:
        elements = shard.tokens * (shard.lanes(self.heads) + shard.lanes(self.kv_heads)) * self.head_dim
        if self.query_norm != "none":
            yield passing("query and key norm", shard, 2 * elements, 3 * elements, split="heads")
        if self.rotary:
            yield passing("rotary embedding", shard, 2 * elements, 2 * elements, split="heads")

    def _after(self, output: Projection, shard: Shard) -> Iterator[Operation]:
        elements = shard.tokens * shard.lanes(self.heads) * self._value
        if self.gate:
            yield passing("gate", shard, 3 * elements, 5 * elements, split="heads")
        yield output.operation(shard)

    def stored(self, hidden: int, shard: Shard) -> tuple[Stored, ...]:
        """Return queries, keys, values (twice the former two when they are normalised), statistics and the output."""
        del hidden
        unit = shard.element * shard.tokens
        heads, groups = shard.lanes(self.heads), shard.lanes(self.kv_heads)
        before = Stored("queries and keys before the norm", unit * (heads + groups) * self.head_dim, "heads")
        after = Stored("query, key, value", unit * (heads * self.head_dim + self.exchanged(shard)), "heads")
        kept = (shard.element + shard.copied) * shard.tokens
        output = Stored("attention output", kept * heads * self._value, "heads")
        gate = Stored("gate and its input", 2 * unit * heads * self._value, "heads")
        optional = (before,) * (self.query_norm != "none") + (gate,) * self.gate
        return after, *optional, *self.core.stored(shard), output
