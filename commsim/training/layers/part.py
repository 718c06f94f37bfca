"""What must every part of a layer say of itself?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from commsim.errors import InputError

if TYPE_CHECKING:
    from commsim.training.operations import Array, Operation, Shard, Stored
    from commsim.training.projections import Projection


class Part(Protocol):
    """One half of a layer: what mixes tokens (attention, Mamba, ...), or what each token passes alone.

    A part reads the normalised layer input and gives what is added to it; norms and residuals belong to the layer.
    """

    @property
    def label(self) -> str:
        """One word for it in tables."""

    def projections(self, hidden: int) -> tuple[Projection, ...]:
        """Return the weight matrices, in the order in which a token passes them."""

    def vectors(self, hidden: int) -> int:
        """Return how many parameters are in no matrix: norms, biases, convolutions, sinks."""

    def operations(self, hidden: int, shard: Shard) -> tuple[Operation, ...]:
        """Return the forward pass on one rank."""

    def stored(self, hidden: int, shard: Shard) -> tuple[Stored, ...]:
        """Return what the backward pass needs, without the part's input."""


class Mixer(Part, Protocol):
    """A part that lets tokens see each other."""

    @property
    def heads(self) -> int:
        """How many heads the tensor axis can share out."""

    @property
    def kv_heads(self) -> int:
        """How many heads of keys and values (or groups) it can share out before it replicates them."""

    def exchanged(self, shard: Shard) -> Array:
        """Return the elements per token that a rank must give to the other ranks of the context axis."""


def need_positive(part: object, *names: str) -> None:
    """Raise InputError unless these fields of the part are above 0."""
    for name in names:
        if getattr(part, name) < 1:
            raise InputError(f"{type(part).__name__}: {name}", getattr(part, name), "a number above 0 belongs here")
