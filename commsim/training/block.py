"""What is one kind of layer?"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Self

from commsim.errors import InputError
from commsim.training.layers.attention import Attention
from commsim.training.layers.compressed_attention import CompressedAttention
from commsim.training.layers.delta_net import DeltaNet
from commsim.training.layers.experts import Experts
from commsim.training.layers.feed_forward import FeedForward
from commsim.training.layers.latent_attention import LatentAttention
from commsim.training.layers.mamba import Mamba

if TYPE_CHECKING:
    from collections.abc import Iterable

    from commsim.training.layers.part import Mixer, Part

Norm = Literal["rms", "layer"]


@dataclass(frozen=True)
class Block:
    """One kind of layer: at most one mixer and at most one feed-forward part, each with a norm before it.

    `parallel`: both parts read the same normalised input; `post_norm`: a norm after each part, too; `streams`: how many
    residual streams are mixed (hyper-connections); `dropout`: one mask per part is kept.
    """

    name: str = ""
    attention: Attention | None = None
    latent_attention: LatentAttention | None = None
    compressed_attention: CompressedAttention | None = None
    delta_net: DeltaNet | None = None
    mamba: Mamba | None = None
    feed_forward: FeedForward | None = None
    experts: Experts | None = None
    norm: Norm = "rms"
    post_norm: bool = False
    parallel: bool = False
    streams: int = 1
    dropout: bool = False

    def __post_init__(self) -> None:
        for slots in (self._mixers, self._feed_forwards):
            if len(slots) > 1:
                given = [part.label for part in slots]
                raise InputError(f"Block: {self.name}", given, "one mixer and one feed-forward part at most")
        if not self.parts or self.streams < 1:
            raise InputError(f"Block: {self.name}", "nothing", "a mixer, a feed-forward part or both belong here")

    @classmethod
    def of(cls, *parts: Part) -> Self:
        """Return the layer that is made of these parts."""
        return cls(**{_FIELDS[type(part)]: part for part in parts})  # type: ignore[arg-type]

    @property
    def _mixers(self) -> list[Mixer]:
        slots = self.attention, self.latent_attention, self.compressed_attention, self.delta_net, self.mamba
        return [slot for slot in slots if slot]

    @property
    def _feed_forwards(self) -> list[Part]:
        return [slot for slot in (self.feed_forward, self.experts) if slot]

    @property
    def mixer(self) -> Mixer | None:
        """The part that lets tokens see each other."""
        return next(iter(self._mixers), None)

    @property
    def parts(self) -> tuple[Part, ...]:
        """Mixer, then feed-forward part."""
        return (*self._mixers, *self._feed_forwards)

    @property
    def norms(self) -> int:
        """How many norms of the hidden width the layer has."""
        return (1 if self.parallel else len(self.parts)) + self.post_norm * len(self.parts)


_FIELDS: dict[type, str] = {
    Attention: "attention",
    LatentAttention: "latent_attention",
    CompressedAttention: "compressed_attention",
    DeltaNet: "delta_net",
    Mamba: "mamba",
    FeedForward: "feed_forward",
    Experts: "experts",
}


def stack(layers: Iterable[Block]) -> tuple[tuple[Block, ...], tuple[str, ...]]:
    """Return the kinds among these layers, named by their parts (`full-moe`), and the kind of each layer.

    Kinds of the same parts but other sizes are told apart by a number.
    """
    names: dict[Block, str] = {}
    kinds = []
    for layer in layers:
        if layer not in names:
            label = "-".join(part.label for part in layer.parts)
            same = sum(name.split("#")[0] == label for name in names.values())
            names[layer] = f"{label}#{same + 1}" if same else label
        kinds.append(names[layer])
    return tuple(dataclasses.replace(block, name=name) for block, name in names.items()), tuple(kinds)
