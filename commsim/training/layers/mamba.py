"""What is a Mamba-2 mixer?"""

from __future__ import annotations

from dataclasses import dataclass

from commsim.training.layers.part import need_positive
from commsim.training.layers.scan import scan
from commsim.training.operations import Array, Operation, Shard, Stored, passing
from commsim.training.projections import Projection, columns, rows

SCAN_FLOPS = 7
"""FLOPs of the scan per channel and state, as Megatron counts them (`mamba_layer_flops`); a few percent of a layer."""


@dataclass(frozen=True)
class Mamba:
    """A state-space mixer (Dao and Gu 2024, section 7): `heads` of `head_dim` channels, `state` numbers a channel.

    `groups` share their input and output maps; a short convolution of `conv` taps goes before the scan.
    """

    heads: int
    head_dim: int
    state: int
    groups: int
    conv: int = 4
    conv_bias: bool = True

    def __post_init__(self) -> None:
        need_positive(self, "heads", "head_dim", "state", "groups", "conv")

    @property
    def label(self) -> str:
        """`mamba`."""
        return "mamba"

    @property
    def kv_heads(self) -> int:
        """Groups, which are what the tensor axis can share out without replicating."""
        return self.groups

    @property
    def inner(self) -> int:
        """Channels."""
        return self.heads * self.head_dim

    def projections(self, hidden: int) -> tuple[Projection, ...]:
        """Return input (gate, channels, input and output maps, step sizes) and output."""
        lanes = (self.heads, 2 * self.head_dim), (self.groups, 2 * self.state), (self.heads, 1)
        return columns("input", hidden, *lanes), rows("output", self.inner, hidden)

    def vectors(self, hidden: int) -> int:
        """Return the convolution, three numbers a head (decay, skip, step bias) and the norm."""
        del hidden
        channels = self.inner + 2 * self.groups * self.state
        return channels * (self.conv + self.conv_bias) + 3 * self.heads + self.inner

    def exchanged(self, shard: Shard) -> Array:
        """Return the elements per token that context parallelism exchanges: the channels, before and after."""
        return 2 * shard.lanes(self.heads) * self.head_dim

    def _mixed(self, shard: Shard) -> Array:
        return shard.lanes(self.heads) * self.head_dim + shard.lanes(self.groups) * 2 * self.state

    def operations(self, hidden: int, shard: Shard) -> tuple[Operation, ...]:
        """Return input, convolution, scan, gated norm and output."""
        into, out = (projection.operation(shard) for projection in self.projections(hidden))
        mixed, inner = shard.tokens * self._mixed(shard), shard.tokens * shard.lanes(self.heads) * self.head_dim
        flops = SCAN_FLOPS * shard.lanes(self.heads) * self.head_dim * self.state
        moved = self._mixed(shard) + shard.lanes(self.heads) * self.head_dim
        return (
            into,
            passing("convolution", shard, 2 * mixed, 3 * mixed, split="heads"),
            scan("scan", shard, flops, moved, (self.heads, self.head_dim, self.state)),
            passing("gated norm", shard, 3 * inner, 5 * inner, split="heads"),
            out,
        )

    def stored(self, hidden: int, shard: Shard) -> tuple[Stored, ...]:
        """Return the projected input, the result of the scan, and the output's input.

        The kernel of Dao and Gu computes the convolution and the states again.
        """
        del hidden
        inner = shard.lanes(self.heads) * self.head_dim
        projected = inner + self._mixed(shard) + shard.lanes(self.heads)
        unit = shard.element * shard.tokens
        return (
            Stored("projected input", unit * projected, "heads"),
            Stored("scan output", unit * inner, "heads"),
            Stored("output's input", unit * inner, "heads"),
        )
