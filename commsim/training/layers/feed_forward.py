"""What is a feed-forward layer that every token passes?"""

from __future__ import annotations

from dataclasses import dataclass

from commsim.training.layers.part import need_positive
from commsim.training.operations import MATMULS, Operation, Recomputed, Shard, Stored, passing, union
from commsim.training.projections import Projection, columns, rows

GATED_PASSES, PLAIN_PASSES, UNFUSED_PASSES = (3, 5), (2, 3), (5, 9)
"""Widths moved by the activation, forward and backward: a gated one reads two tensors and writes one, then reads three
and writes two; a plain one reads and writes one, then reads two and writes one. Unfused, the gate is activated by one
kernel and multiplied by the next."""
_ACTIVATION: Recomputed = union("activation", "mlp")


@dataclass(frozen=True)
class FeedForward:
    """Two matrices with an activation between them, or three when it is `gated` (Shazeer 2020)."""

    width: int
    gated: bool = True
    bias: bool = False

    def __post_init__(self) -> None:
        need_positive(self, "width")

    @property
    def label(self) -> str:
        """`dense`."""
        return "dense"

    def projections(self, hidden: int) -> tuple[Projection, ...]:
        """Return up (with its gate) and down."""
        up = columns("up", hidden, (self.width, 1 + self.gated), recompute=union("mlp"))
        return up, rows("down", self.width, hidden, union("mlp"))

    def vectors(self, hidden: int) -> int:
        """Return the biases."""
        return self.bias * (self.width * (1 + self.gated) + hidden)

    def operations(self, hidden: int, shard: Shard) -> tuple[Operation, ...]:
        """Return up, activation and down."""
        up, down = (projection.operation(shard) for projection in self.projections(hidden))
        elements = shard.tokens * self.width / shard.tensor
        gated = UNFUSED_PASSES if "activation" in shard.unfused else GATED_PASSES
        forward, backward = gated if self.gated else PLAIN_PASSES
        activation = passing(
            "activation", shard, forward * elements, backward * elements, split="columns", recompute=_ACTIVATION
        )
        return up, activation, down

    def stored(self, hidden: int, shard: Shard) -> tuple[Stored, ...]:
        """Return the activation's input and its result, which is the input of the second matrix.

        PyTorch's own kernels also keep the activated gate, which is multiplied.
        """
        del hidden
        elements = shard.tokens * self.width / shard.tensor
        width = shard.element * elements
        gate = Stored("gate", width, "columns", union("mlp", "matmul"))
        activated = Stored("activated gate", width, "columns", _ACTIVATION)
        return (
            Stored("up", width, "columns", union("mlp", *MATMULS), gradient=width * (1 + self.gated)),
            *(gate,) * self.gated,
            *(activated,) * (self.gated and "activation" in shard.unfused),
            Stored("activated", shard.saved * elements, "columns", _ACTIVATION),
        )
