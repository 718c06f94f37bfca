"""What does each layer, and each end of the model, ask of a rank?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commsim.training.loss import loss
from commsim.training.operations import (
    SCORE_BYTES,
    Array,
    Operation,
    Shard,
    Stored,
    Work,
    passing,
    union,
)
from commsim.training.parameters import norm_size, stream_weights
from commsim.training.projections import columns, replicated

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commsim.training.block import Block
    from commsim.training.layers.part import Part
    from commsim.training.model import Model

_NORM = union("layernorm")
_ALWAYS: frozenset[str] = frozenset()
_PLAIN_NORM = 6.0
"""Bytes a number that a norm of PyTorch's own kernels keeps: an fp32 copy, and what is multiplied by the weight (as in
LLaMA's reference code: Touvron et al. 2023)."""
_PLAIN_PASSES = 18, 34
"""Elements of two bytes that the same kernels read and write, forward (cast, square, mean, product, cast, weight) and
backward (weight and its gradient, cast, product and its sum, square, sum of both, cast)."""


def work(model: Model, kind: str, shard: Shard) -> Work:
    """Return what one layer of that kind asks of a rank, for one micro-batch."""
    block, hidden = model.block(kind), model.hidden
    matrices = [each for part in block.parts for each in part.projections(hidden)]
    norms = block.norms * norm_size(block.norm, hidden) + stream_weights(block, hidden)
    vectors = sum(part.vectors(hidden) for part in block.parts)
    return Work(
        tuple(operation for part in block.parts for operation in _around(block, part, hidden, shard)),
        tuple(_stored(block, hidden, shard)),
        sum((each.weights(shard) for each in matrices if not each.of_experts), float(norms + vectors)),
        sum((each.weights(shard) for each in matrices if each.of_experts), 0.0),
    )


def _around(block: Block, part: Part, hidden: int, shard: Shard) -> Iterator[Operation]:
    """Yield norm, part and residual sum. The parts of a parallel block share the norm of the first."""
    elements = shard.spread * hidden
    if part is block.parts[0] or not block.parallel:
        yield _norm("norm", elements, shard)
    yield from part.operations(hidden, shard)
    if block.post_norm:
        yield _norm("post norm", elements, shard)
    yield _residual(block, elements, shard)


def _norm(name: str, elements: Array, shard: Shard) -> Operation:
    """Return a norm: forward it reads its input and writes its result, backward it reads both and writes one."""
    forward, backward = _PLAIN_PASSES if "norm" in shard.unfused else (2, 3)
    return passing(name, shard, forward * elements, backward * elements, split="sequence", recompute=_NORM)


def _residual(block: Block, elements: Array, shard: Shard) -> Operation:
    """Return the sum of residual and part: three tensors, and a mask of one byte with dropout.

    n streams are also read once to be joined before the part, and read and written to be mixed after it.
    """
    moved = 3 * block.streams + (2 if block.streams > 1 else 0)
    masks = elements * block.dropout / shard.element
    return passing("residual", shard, moved * elements + masks, moved * elements + masks, split="sequence")


def _stored(block: Block, hidden: int, shard: Shard) -> Iterator[Stored]:
    """Yield what a layer keeps. Its own input is kept whatever is recomputed; each norm keeps input and result.

    For the layer of GPT-3 without fused attention this is 34sbh + 5as²b (Korthikanti et al. 2022, eq. 1-4).
    """
    unit = shard.element * shard.spread * hidden
    yield Stored("layer input", unit * block.streams, "sequence", _ALWAYS)
    for number, part in enumerate(block.parts):
        if number:
            yield Stored("residual", unit * block.streams, "sequence")
        if not (number and block.parallel):
            yield from _normed(hidden, shard)
        yield from part.stored(hidden, shard)
        if block.post_norm:
            yield Stored("post norm input", unit, "sequence")
        if block.dropout:
            yield Stored("dropout mask", shard.spread * hidden, "sequence")


def _normed(hidden: int, shard: Shard) -> Iterator[Stored]:
    """Yield what a norm keeps besides its input: its result for the matmuls, and what PyTorch's own kernels read."""
    yield Stored("norm output", shard.saved * shard.spread * hidden, "sequence", _NORM)
    if "norm" in shard.unfused:
        yield Stored("norm of its own kernels", _PLAIN_NORM * shard.spread * hidden, "sequence", _NORM)


def embedding(model: Model, shard: Shard) -> Work:
    """Return the look-up: rows are read and written; their gradients are added to fp32 ones, read and written."""
    elements = shard.tokens * model.hidden
    gradient = elements * (1 + 2 * SCORE_BYTES / shard.element)
    lookup = passing("embedding", shard, 2 * elements, gradient, split="columns")
    mask = Stored("embedding dropout mask", shard.spread * model.hidden, "sequence", _ALWAYS)
    rows = model.vocabulary / shard.tensor + model.positions
    return Work((lookup,), (mask,) if model.blocks[0].dropout else (), rows * model.hidden)


def head(model: Model, shard: Shard) -> Work:
    """Return the last norm, the logits and their cross entropy; tied weights are counted with the embedding.

    Kept are the norm's input and result, and what the loss keeps: 4sbh/t (1 + v/h) in all (Korthikanti et al. 2022,
    section 4.3).
    """
    elements = shard.spread * model.hidden
    logits = columns("logits", model.hidden, (model.vocabulary, 1))
    entropy, kept = loss(model, shard)
    unit = shard.element * elements
    stored = (
        Stored("head input", unit, "sequence", _ALWAYS),
        Stored("norm output", unit, "sequence", _ALWAYS),
        kept,
    )
    weights = 0 * logits.weights(shard) if model.tied_embeddings else logits.weights(shard)
    norm = float(norm_size(model.blocks[0].norm, model.hidden))
    return Work((_norm("norm", elements, shard), logits.operation(shard), entropy), stored, weights + norm)


def predictors(model: Model, shard: Shard) -> Work | None:
    """Return all multi-token-prediction modules: each joins two normalised inputs, has layers and gives logits.

    They share embedding and head with the model. None when the model has no such modules.
    """
    if not model.mtp_depth:
        return None
    elements = shard.spread * model.hidden
    joint = replicated("join", 2 * model.hidden, model.hidden)
    norms = (_norm("norm", elements, shard),) * 2
    inputs = Stored("joint input", 4 * shard.element * elements, "sequence", _ALWAYS)
    vectors = 3.0 * norm_size(model.blocks[0].norm, model.hidden)
    one = Work((*norms, joint.operation(shard)), (inputs,), joint.weights(shard) + vectors)
    for kind in model.mtp:
        one += work(model, kind, shard)
    logits = head(model, shard)
    one += Work(logits.operations, logits.stored, 0.0)
    whole = one
    for _ in range(model.mtp_depth - 1):
        whole += one
    return whole


def model_flops(model: Model, sequence: Array) -> Array:
    """Return the model's FLOPs per token of training at this sequence length, by commsim's one convention.

    Three times the forward pass: projections, attention over what the causal mask, windows and choices leave, scans,
    feed-forward layers or the chosen and shared experts, logits, and the same of prediction modules. Embedding, norms,
    softmax, routers and whatever is computed twice are not counted.
    """
    token = Shard(tokens=1.0, sequence=sequence)
    layers = sum((count * _counted(work(model, kind, token)) for kind, count in model.counts.items() if count), 0.0)
    ends = [head(model, token), predictors(model, token)]
    return 3 * (layers + sum((_counted(end) for end in ends if end), 0.0))


def _counted(asked: Work) -> Array:
    return sum((operation.flops for operation in asked.operations if operation.counted), 0.0)
