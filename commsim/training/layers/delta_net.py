"""What is a gated delta net?"""

from __future__ import annotations

from dataclasses import dataclass

from commsim.training.layers.part import need_positive
from commsim.training.layers.scan import scan
from commsim.training.operations import Array, Operation, Shard, Stored, passing
from commsim.training.projections import Projection, columns, replicated, rows

SCAN_FLOPS = 8
"""FLOPs of the delta rule per value head and element of its state, as Megatron counts them (`gdn_layer_flops`)."""


@dataclass(frozen=True)
class DeltaNet:
    """Linear attention by the gated delta rule (Yang et al. 2024), each value head with a state key_dim × value_dim.

    The state decays by one number a head, or by one a channel that comes from a `decay_rank` (Kimi Linear 2025). The
    output gate is full, or of `gate_rank`.
    """

    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    conv: int = 4
    decay_rank: int | None = None
    gate_rank: int | None = None

    def __post_init__(self) -> None:
        need_positive(self, "key_heads", "value_heads", "key_dim", "value_dim", "conv")

    @property
    def label(self) -> str:
        """`linear`."""
        return "linear"

    @property
    def heads(self) -> int:
        """Value heads."""
        return self.value_heads

    @property
    def kv_heads(self) -> int:
        """Key heads, which are what the tensor axis can share out without replicating."""
        return self.key_heads

    def projections(self, hidden: int) -> tuple[Projection, ...]:
        """Return query, key, value, step (and gate, decay) as one matrix, low ranks apart, then the output."""
        value = self.value_heads, self.value_dim
        gate = 0 if self.gate_rank else self.value_dim
        lanes = (self.key_heads, 2 * self.key_dim), (self.value_heads, self.value_dim + gate + 1)
        decay = (self.value_heads, 0 if self.decay_rank else 1)
        return (
            columns("query, key, value", hidden, *lanes, decay),
            *self._ranked("decay", hidden, self.decay_rank, (self.value_heads, self.key_dim)),
            *self._ranked("gate", hidden, self.gate_rank, value),
            rows("output", self.value_heads * self.value_dim, hidden),
        )

    def _ranked(self, name: str, hidden: int, rank: int | None, lanes: tuple[int, int]) -> tuple[Projection, ...]:
        if not rank:
            return ()
        return replicated(f"{name} down", hidden, rank), columns(f"{name} up", rank, lanes)

    def vectors(self, hidden: int) -> int:
        """Return the convolutions, decay and step biases, and the norm of a head."""
        del hidden
        channels = 2 * self.key_heads * self.key_dim + self.value_heads * self.value_dim
        decays = self.value_heads * (self.key_dim if self.decay_rank else 1)
        return channels * self.conv + self.value_heads + decays + self.value_dim

    def exchanged(self, shard: Shard) -> Array:
        """Return the elements per token that context parallelism exchanges: queries, keys, values and results."""
        return self._mixed(shard) + shard.lanes(self.value_heads) * self.value_dim

    def _mixed(self, shard: Shard) -> Array:
        return 2 * shard.lanes(self.key_heads) * self.key_dim + shard.lanes(self.value_heads) * self.value_dim

    def operations(self, hidden: int, shard: Shard) -> tuple[Operation, ...]:
        """Return projections, convolution, the delta rule, gated norm and output."""
        *before, output = (projection.operation(shard) for projection in self.projections(hidden))
        heads = shard.lanes(self.value_heads)
        mixed, values = shard.tokens * self._mixed(shard), shard.tokens * heads * self.value_dim
        flops = SCAN_FLOPS * heads * self.key_dim * self.value_dim
        moved = self._mixed(shard) + heads * self.value_dim
        return (
            *before,
            passing("convolution", shard, 2 * mixed, 3 * mixed, split="heads"),
            scan("delta rule", shard, flops, moved, (self.value_heads, self.value_dim, self.key_dim)),
            passing("gated norm", shard, 3 * values, 5 * values, split="heads"),
            output,
        )

    def stored(self, hidden: int, shard: Shard) -> tuple[Stored, ...]:
        """Return what goes into the convolution, the rule and the gate, and what comes out; states come again."""
        lanes = [lane for matrix in self.projections(hidden) if matrix.share == "columns" for lane in matrix.outputs]
        projected = sum((shard.lanes(count) * width for count, width in lanes), 0.0)
        unit = shard.element * shard.tokens
        values = unit * shard.lanes(self.value_heads) * self.value_dim
        return (
            Stored("projected input", unit * projected, "heads"),
            Stored("query, key, value", unit * self._mixed(shard), "heads"),
            Stored("delta rule output", values, "heads"),
            Stored("output's input", values, "heads"),
        )
