"""How many parameters has a model?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from commsim.training.layers.experts import Experts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from commsim.training.block import Block, Norm
    from commsim.training.layers.part import Part
    from commsim.training.model import Model


@dataclass(frozen=True)
class Count:
    """Parameters: all there are, and those that one token passes."""

    total: int
    active: int

    def __add__(self, other: Count) -> Count:
        return Count(self.total + other.total, self.active + other.active)

    def __mul__(self, times: int) -> Count:
        return Count(self.total * times, self.active * times)


@dataclass(frozen=True)
class Parameters:
    """The parameters of a model, by where they are.

    `blocks` gives for one layer of each kind its parts and its norms. As vendors do, `total` and `active` leave out
    the multi-token-prediction modules; `trained` has them.
    """

    embedding: int
    output: int
    norm: int
    blocks: Mapping[str, Mapping[str, Count]]
    layers: Count
    predictors: Count

    @property
    def total(self) -> int:
        """All parameters of the model."""
        return self.embedding + self.output + self.norm + self.layers.total

    @property
    def active(self) -> int:
        """Parameters that one token passes, the whole embedding among them."""
        return self.embedding + self.output + self.norm + self.layers.active

    @property
    def trained(self) -> int:
        """All parameters that training updates."""
        return self.total + self.predictors.total


def parameters(model: Model) -> Parameters:
    """Return the parameters of the model."""
    blocks = {block.name: of_block(block, model.hidden) for block in model.blocks}
    layer = {kind: sum(parts.values(), Count(0, 0)) for kind, parts in blocks.items()}
    layers = sum((layer[kind] * count for kind, count in model.counts.items()), Count(0, 0))
    # a module joins the hidden state and the next token's embedding, each normalised
    joint = 2 * model.hidden**2 + 3 * norm_size(model.blocks[0].norm, model.hidden) if model.mtp_depth else 0
    module = sum((layer[kind] for kind in model.mtp), Count(joint, joint))
    return Parameters(
        embedding=(model.vocabulary + model.positions) * model.hidden,
        output=0 if model.tied_embeddings else model.vocabulary * model.hidden,
        norm=norm_size(model.blocks[0].norm, model.hidden),
        blocks=blocks,
        layers=layers,
        predictors=module * model.mtp_depth,
    )


def of_block(block: Block, hidden: int) -> dict[str, Count]:
    """Return the parameters of one layer: of each part by its label, of the norms, of the mixing of streams."""
    counts = {part.label: of_part(part, hidden) for part in block.parts}
    norms, mixing = block.norms * norm_size(block.norm, hidden), stream_weights(block, hidden)
    return counts | {"norms": Count(norms, norms)} | ({"streams": Count(mixing, mixing)} if mixing else {})


def of_part(part: Part, hidden: int) -> Count:
    """Return the parameters of one part of a layer."""
    matrices, vectors = part.projections(hidden), part.vectors(hidden)
    idle = part.idle(hidden) if isinstance(part, Experts) else 0
    return Count(
        sum(each.parameters for each in matrices) + vectors, sum(each.active for each in matrices) + vectors - idle
    )


def norm_size(norm: Norm, hidden: int) -> int:
    """Return the parameters of one norm: a scale, and with layer norm a shift."""
    return 2 * hidden if norm == "layer" else hidden


def stream_weights(block: Block, hidden: int) -> int:
    """Return the weights that mix residual streams, (n² + 2n) × n hidden for each part (DeepSeek-V4, section 2.2)."""
    streams = block.streams
    return len(block.parts) * (streams**2 + 2 * streams) * streams * hidden if streams > 1 else 0
