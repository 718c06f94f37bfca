"""What is a model?"""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Self

import numpy as np

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

    import numpy.typing as npt

    from commsim.training.layers.part import Mixer, Part

    Layer = int | npt.NDArray[np.int64]

MOST, MOST_LAYERS = 2**24, 4096
"""The largest size of anything in a model that is read, and the most layers: whoever writes more made a mistake."""
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


@dataclass(frozen=True)
class Model:
    """A decoder language model: its kinds of layer, and which of them each layer is.

    `mtp` are the kinds of layer in one multi-token-prediction module, `mtp_depth` how many such modules follow the
    layers (DeepSeek-V3 2024, section 2.2); `positions` the rows of a learned position table. `assumptions` say what
    the source did not tell or this value cannot hold.
    """

    name: str
    source: str
    hidden: int
    vocabulary: int
    blocks: tuple[Block, ...]
    layers: tuple[str, ...]
    tied_embeddings: bool = False
    positions: int = 0
    mtp: tuple[str, ...] = ()
    mtp_depth: int = 0
    assumptions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for field in ("hidden", "vocabulary"):
            if getattr(self, field) < 1:
                raise InputError(f"{self.name}: {field}", getattr(self, field), "a number above 0 belongs here")
        if not self.layers:
            raise InputError(f"{self.name}: layers", list(self.layers), "at least one layer belongs here")
        for kind in dict.fromkeys(self.layers + self.mtp):
            if kind not in self.kinds:
                raise InputError(f"{self.name}: layers", kind, "no such block", among=self.kinds)

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """Names of the blocks, in the order of every table over them."""
        return tuple(block.name for block in self.blocks)

    def block(self, kind: str) -> Block:
        """Return the block of that name. InputError when there is none."""
        if kind not in self.kinds:
            raise InputError(f"{self.name}: block", kind, "no such block", among=self.kinds)
        return self.blocks[self.kinds.index(kind)]

    @cached_property
    def counts(self) -> dict[str, int]:
        """How many layers are of each kind."""
        found = Counter(self.layers)
        return {kind: found[kind] for kind in self.kinds}

    @cached_property
    def _counts_before(self) -> npt.NDArray[np.int64]:
        of_layer = [[kind == layer for kind in self.kinds] for layer in self.layers]
        return np.vstack([np.zeros(len(self.kinds), int), np.cumsum(of_layer, axis=0)])

    def counts_between(self, first: Layer, last: Layer) -> npt.NDArray[np.int64]:
        """Return how many layers of each kind [..., kind] are in the half-open ranges of layers [first, last)."""
        between: npt.NDArray[np.int64] = self._counts_before[last] - self._counts_before[first]
        return between

    @property
    def experts(self) -> Experts | None:
        """The experts, when some layer has any."""
        return next((block.experts for block in self.blocks if block.experts), None)

    @property
    def heads(self) -> int:
        """The most ranks that can share a layer's heads: the fewest heads of any mixer; 0 without mixers."""
        return min((block.mixer.heads for block in self.blocks if block.mixer), default=0)


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
