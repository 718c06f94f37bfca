"""Which weight matrices does a token pass, and what does a rank hold of each?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from commsim.training.operations import FULL, MATMULS, Array, Operation, Recomputed, Shard, Split, product

if TYPE_CHECKING:
    from collections.abc import Callable

Lanes = tuple[int, int]
"""How many lanes (heads, columns) the tensor ranks can share out, and how wide one is."""
Shape = tuple[Array, Array, Array, Array]
Share = Literal["columns", "rows", "replicated", "groups", "expert columns", "expert rows"]


@dataclass(frozen=True)
class Projection:
    """A weight matrix, or `copies` of it of which a token passes `used`.

    `share` says what a rank gets: columns or rows over the tensor axis, a replica that sees the rank's own tokens,
    whole groups (a block-diagonal matrix), or experts, whose columns or rows the expert-tensor axis splits.
    """

    name: str
    inputs: int
    outputs: tuple[Lanes, ...]
    share: Share
    copies: int = 1
    used: int = 1
    recompute: Recomputed = FULL
    counted: bool = True

    @property
    def width(self) -> int:
        """Number of outputs."""
        return sum(count * width for count, width in self.outputs)

    @property
    def parameters(self) -> int:
        """Weights in all copies."""
        return self.inputs * self.width * self.copies

    @property
    def active(self) -> int:
        """Weights that one token passes."""
        return self.inputs * self.width * self.used

    @property
    def of_experts(self) -> bool:
        """Whether the weights are shared out over the expert axis."""
        return self.share.startswith("expert")

    def weights(self, shard: Shard) -> Array:
        """Return how many weights a rank holds."""
        _, k, n, batch = _SHAPES[self.share](self, shard)
        return k * n * batch

    def operation(self, shard: Shard) -> Operation:
        """Return the matmul of a rank."""
        shape = _SHAPES[self.share](self, shard)
        return product(
            self.name, shard, shape, split=_SPLITS[self.share], recompute=self.recompute | MATMULS, counted=self.counted
        )


def columns(name: str, inputs: int, *lanes: Lanes, recompute: Recomputed = FULL) -> Projection:
    """Return a matrix whose lanes of outputs the tensor ranks share."""
    return Projection(name, inputs, tuple(lane for lane in lanes if lane[0] * lane[1]), "columns", recompute=recompute)


def rows(name: str, inputs: int, outputs: int, recompute: Recomputed = FULL) -> Projection:
    """Return a matrix whose inputs the tensor ranks share; its outputs are partial sums."""
    return Projection(name, inputs, ((outputs, 1),), "rows", recompute=recompute)


def replicated(
    name: str, inputs: int, outputs: int, recompute: Recomputed = FULL, *, counted: bool = True
) -> Projection:
    """Return a matrix that every tensor rank holds whole and applies to its own tokens."""
    return Projection(name, inputs, ((outputs, 1),), "replicated", recompute=recompute, counted=counted)


def _columns(projection: Projection, shard: Shard) -> Shape:
    width = sum((shard.lanes(count) * width for count, width in projection.outputs), 0.0)
    return shard.tokens, float(projection.inputs), width, 1.0


def _rows(projection: Projection, shard: Shard) -> Shape:
    return shard.tokens, projection.inputs / shard.tensor, float(projection.width), 1.0


def _replicated(projection: Projection, shard: Shard) -> Shape:
    return shard.spread, float(projection.inputs), float(projection.width), 1.0


def _groups(projection: Projection, shard: Shard) -> Shape:
    return shard.tokens, float(projection.inputs), float(projection.width), shard.lanes(projection.copies)


def _expert_columns(projection: Projection, shard: Shard) -> Shape:
    experts = projection.copies / shard.expert
    tokens = shard.rows(projection.used) / experts
    return tokens, float(projection.inputs), projection.width / shard.expert_tensor, experts


def _expert_rows(projection: Projection, shard: Shard) -> Shape:
    experts = projection.copies / shard.expert
    tokens = shard.rows(projection.used) / experts
    return tokens, projection.inputs / shard.expert_tensor, float(projection.width), experts


_SHAPES: dict[Share, Callable[[Projection, Shard], Shape]] = {
    "columns": _columns,
    "rows": _rows,
    "replicated": _replicated,
    "groups": _groups,
    "expert columns": _expert_columns,
    "expert rows": _expert_rows,
}
_SPLITS: dict[Share, Split] = {
    "columns": "columns",
    "rows": "rows",
    "replicated": "sequence",
    "groups": "groups",
    "expert columns": "experts",
    "expert rows": "experts",
}
