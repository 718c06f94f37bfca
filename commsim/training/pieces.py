"""What are the pieces of a model that a chunk of the pipeline consists of?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from commsim.training.operations import AT_ONCE, NOTHING, Array, Operation, Recomputed, Stored, Work
from commsim.training.work import embedding, head, predictors, work

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from commsim.training.block import Block
    from commsim.training.projections import Projection
    from commsim.training.setting import Setting

ACTIVATION_BYTES = 2.0
"""Activations between operations are bf16 or fp16, also where matmuls are fp8 or fp4."""
STATISTICS = 3
"""All-reduces of the cross entropy over a split vocabulary: maximum, sum of exponentials, the target's logit."""


@dataclass(frozen=True)
class Join:
    """Where the tensor ranks meet: a width that must be whole before, one that is summed after, for each token.

    `statistics` fp32 numbers a token are summed besides; `repeated`: recomputation passes here again, and ends before
    the sum if it `stops` here.
    """

    gathered: int
    scattered: int
    repeated: bool = False
    statistics: int = 0
    stops: bool = False


@dataclass(frozen=True, eq=False)
class Piece:
    """A piece of a model that runs as a whole: a layer of one kind, or what one end has besides its layers.

    `formats` are the number formats of its matmuls and of the rest, `recomputed` the modules that run twice (without
    the end that no backward pass reads, when that `stops_early`),
    `exchanged` and `sent` the widths that a token gives to other context ranks and sends to its experts, `tied` the
    weights that the embedding on the first stage holds as well; `waits`: the host launches no kernel of the next piece
    before it knows how many tokens each expert gets.
    """

    name: str
    work: Work
    formats: tuple[str, str]
    recomputed: Recomputed = NOTHING
    joins: tuple[Join, ...] = ()
    exchanged: Array = 0.0
    sent: float = 0.0
    tied: Array = 0.0
    waits: bool = False
    stops_early: bool = False

    @property
    def again(self) -> tuple[float, ...]:
        """The share of each operation of the forward pass that runs a second time."""
        return self.work.again(self.recomputed, early=self.stops_early)

    @property
    def kept(self) -> Array:
        """Bytes that stay on a rank from the forward to the backward pass of one micro-batch."""
        return self.work.kept(self.recomputed)

    @property
    def working(self) -> Array:
        """Bytes that are on the rank besides while its backward pass runs: what is computed again, and gradients."""
        return self.work.kept() - self.kept + self.work.gradients


def layer(setting: Setting, kind: str, recomputed: Recomputed) -> Piece:
    """Return one layer of that kind, with what is recomputed of it."""
    model, recipe = setting.model, setting.recipe
    block = model.block(kind)
    return Piece(
        kind,
        skewed(work(model, kind, setting.shard), setting.imbalance, ACTIVATION_BYTES),
        (recipe.matmul_format, recipe.other_format),
        recomputed,
        tuple(_stopping([*_joins(block, model.hidden, recomputed)], stops=recipe.stops_early)),
        block.mixer.exchanged(setting.shard) if block.mixer else 0.0,
        float(block.experts.top_k * block.experts.sent(model.hidden)) if block.experts else 0.0,
        waits=bool(block.experts) and recipe.dropless and not recipe.cuda_graphs,
        stops_early=recipe.stops_early,
    )


def ends(setting: Setting) -> tuple[Piece, Piece, Piece | None]:
    """Return the embedding, the logits with their loss, and what prediction modules have besides their layers.

    The last stage of a pipeline holds the embedding, too, where the logits share its weights and where prediction
    modules read it (both as in Megatron-Core). Nothing here is recomputed; what the loss keeps is gone when the
    backward pass comes to the layers, unless all forward passes come first.
    """
    model, shard, plain = setting.model, setting.shard, (setting.recipe.other_format,) * 2
    first, last = embedding(model, shard), head(model, shard)
    tied = first.weights if setting.plan.pipeline > 1 and (model.tied_embeddings or model.mtp_depth) else 0.0
    last = replace(last, weights=last.weights + tied)
    joint = predictors(replace(model, mtp=()), shard)
    loss = Join(model.hidden, 0, statistics=STATISTICS)
    both = replace(loss, scattered=model.hidden)  # the embedding of the next token, and the logits
    return (
        Piece("embedding", first, plain, joins=(Join(0, model.hidden),)),
        Piece("head", last, plain, NOTHING if setting.schedule == "gpipe" else AT_ONCE, (loss,), tied=tied),
        Piece("predictors", joint, plain, joins=(both,) * model.mtp_depth) if joint else None,
    )


def _stopping(joins: list[Join], *, stops: bool) -> list[Join]:
    """The joins of a layer; recomputation that stops early does not come to the sum of the last."""
    return [*joins[:-1], *(replace(last, stops=stops) for last in joins[-1:])]


def _joins(block: Block, hidden: int, recomputed: Recomputed) -> Iterator[Join]:
    """One join for each part with split matrices; the parts of a parallel block share one."""
    each = [part.projections(hidden) for part in block.parts]
    for projections in [[one for some in each for one in some]] if block.parallel else each:
        join = _join(projections, hidden, recomputed)
        if join.gathered or join.scattered:
            yield join


def _join(projections: Iterable[Projection], hidden: int, recomputed: Recomputed) -> Join:
    """Inputs of matrices split by columns are gathered (of latent attention these are the latents); rows give sums."""
    inputs = {one.inputs for one in projections if one.share == "columns"}
    sums = [one for one in projections if one.share == "rows"]
    return Join(sum(inputs), hidden if sums else 0, any(one.recompute & recomputed for one in sums))


def skewed(even: Work, factor: Array, element: float) -> Work:
    """Return the work of the rank whose experts get `factor` times the mean of tokens, of `element` bytes a number."""
    operations = tuple(_skewed(one, factor, element) if one.split == "experts" else one for one in even.operations)
    stored = tuple(_fuller(one, factor) if one.split == "experts" else one for one in even.stored)
    return replace(even, operations=operations, stored=stored)


def _skewed(one: Operation, factor: Array, element: float) -> Operation:
    """More rows of a matmul move more inputs and outputs, but the same weights."""
    if one.kind != "matmul":
        return replace(one, bytes=one.bytes * factor, backward_bytes=one.backward_bytes * factor)
    moved = (factor - 1) * element * one.m * (one.k + one.n) * one.batch
    busy = replace(one, m=one.m * factor, flops=one.flops * factor, backward_flops=one.backward_flops * factor)
    return replace(busy, bytes=one.bytes + moved, backward_bytes=one.backward_bytes + moved)


def _fuller(tensor: Stored, factor: Array) -> Stored:
    return replace(tensor, bytes=tensor.bytes * factor)
