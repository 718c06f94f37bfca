"""What is a model?"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from commsim.errors import InputError

if TYPE_CHECKING:
    import numpy.typing as npt

    from commsim.training.block import Block
    from commsim.training.layers.experts import Experts

    Layer = int | npt.NDArray[np.int64]

MOST, MOST_LAYERS = 2**24, 4096
"""The largest size of anything in a model that is read, and the most layers: whoever writes more made a mistake."""


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
