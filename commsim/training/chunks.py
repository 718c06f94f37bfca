"""Which pieces of the model does each chunk of the pipeline hold?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from commsim.collectives.remembered import remembered
from commsim.errors import InputError
from commsim.training.axes import Pipeline
from commsim.training.operations import NOTHING
from commsim.training.pieces import Piece, ends, layer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commsim.training.operations import Recomputed
    from commsim.training.setting import Setting

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Held = tuple[Piece, Ints]
"""A piece, and how many of it each chunk has: [chunk]."""


@dataclass(frozen=True, eq=False)
class Chunks:
    """The pieces of each chunk: counts[chunk, piece]; `assumption` says how the layers were spread, if unevenly."""

    pieces: tuple[Piece, ...]
    counts: Ints
    stages: int
    assumption: str = ""

    def of_stages(self, values: Floats) -> Floats:
        """Return the sums over the chunks of each stage, [..., stage, plan], of values [..., chunk, plan]."""
        total: Floats = values.reshape(*values.shape[:-2], -1, self.stages, values.shape[-1]).sum(axis=-3)
        return total

    def by_stage(self, values: Floats) -> Floats:
        """Return the sums over the pieces of each stage, [..., stage, plan], of values [..., piece, plan]."""
        held: Floats = self._of_stage @ values
        return held

    @cached_property
    def _of_stage(self) -> Floats:
        """How many of each piece a stage has, [stage, piece]."""
        total: Ints = self.counts.reshape(-1, self.stages, self.counts.shape[1]).sum(axis=0)
        return total.astype(float)


def chunks(setting: Setting) -> Chunks:
    """Return the pieces and how many of each every chunk holds; remembered with the machine.

    InputError when a stage would be without a layer.
    """
    question = "chunks", *setting.cut, setting.plan.axis(Pipeline)
    return remembered(setting.system.topology, question, lambda: _chunks(setting))


def _chunks(setting: Setting) -> Chunks:
    axis = setting.plan.axis(Pipeline)
    sizes, assumption = spread(len(setting.model.layers), axis)
    held = [*_layers(setting, sizes), *_ends(setting, axis.chunks)]
    pieces, counts = zip(*held)
    return Chunks(pieces, np.stack(counts, axis=1), axis.size, assumption)


def _layers(setting: Setting, sizes: Ints) -> Iterator[Held]:
    """The layers that are recomputed, then the others; the layers of prediction modules stand in the last chunk."""
    model, recipe = setting.model, setting.recipe
    first, last = np.cumsum(sizes) - sizes, np.cumsum(sizes)
    every = recipe.recompute_layers is None
    again = sizes if every else _recomputed(sizes, setting.plan.pipeline, recipe.recompute_layers or 0)
    twice, once = model.counts_between(first, first + again), model.counts_between(first + again, last)
    predicted = [model.mtp.count(kind) * model.mtp_depth for kind in model.kinds]
    (twice if every else once)[-1] += predicted
    yield from _present(setting, twice, recipe.recomputed)
    yield from _present(setting, once, NOTHING)


def _present(setting: Setting, counts: Ints, recomputed: Recomputed) -> Iterator[Held]:
    for kind, column in zip(setting.model.kinds, counts.T):
        if column.any():
            question = "layer", *setting.cut, kind, recomputed
            yield remembered(setting.system.topology, question, partial(layer, setting, kind, recomputed)), column


def _ends(setting: Setting, chunks: int) -> Iterator[Held]:
    first, last = np.zeros(chunks, int), np.zeros(chunks, int)
    first[0] = last[-1] = 1
    question = "ends", *setting.cut
    embedding, head, joint = remembered(setting.system.topology, question, lambda: ends(setting))
    yield from ((embedding, first), (head, last))
    if joint:
        yield joint, last


def _recomputed(sizes: Ints, stages: int, wanted: int) -> Ints:
    """How many layers of each chunk are recomputed: `wanted` of each stage, shared evenly by its chunks."""
    by_turn = sizes.reshape(-1, stages)
    most = int(by_turn.sum(axis=0).max())
    if wanted > most:
        raise InputError("recompute-layers", wanted, f"at most the {most} layers of a stage belong here")
    left, found = np.full(stages, wanted), np.zeros_like(by_turn)
    for turn, layers in enumerate(by_turn):
        found[turn] = np.minimum(layers, -(-left // (len(by_turn) - turn)))
        left -= found[turn]
    return found.reshape(-1)


def spread(layers: int, axis: Pipeline) -> tuple[Ints, str]:
    """Return how many layers each chunk has, in order, and the assumption if they are not even.

    As the axis says, else evenly; where the chunks do not divide the layers, those at the ends have one less, because
    they hold the embedding and the loss besides (as Llama 3 did). InputError when a stage, or a chunk that is not at an
    end, would be without a layer.
    """
    sizes, assumption = _given(layers, axis) if axis.layers else _spread(layers, axis.chunks)
    per_stage = sizes.reshape(axis.virtual, axis.size).sum(axis=0)
    given = f"{axis.size} stages" + (f" x {axis.virtual} chunks" if axis.virtual > 1 else "")
    if not per_stage.all():
        expected = f"stage {int(np.argmin(per_stage))} would be without a layer: the model has {layers}"
        raise InputError("plan: pipeline", given, expected)
    if not sizes[1:-1].all():
        raise InputError("plan: virtual stages", given, f"chunks would be without a layer: the model has {layers}")
    return sizes, assumption


def _given(layers: int, axis: Pipeline) -> tuple[Ints, str]:
    if sum(axis.layers) != layers:
        raise InputError(
            "plan: pipeline: layers",
            axis.layers,
            f"the {layers} layers of the model belong here, not {sum(axis.layers)}",
        )
    return np.array(axis.layers), ""


def _spread(layers: int, chunks: int) -> tuple[Ints, str]:
    sizes = np.full(chunks, -(-layers // chunks))
    missing = int(sizes.sum()) - layers
    ends = [place for pair in zip(range(chunks - 1, -1, -1), range(chunks)) for place in pair]
    sizes[list(dict.fromkeys(ends))[:missing]] -= 1
    assumption = f"{layers} layers do not divide into {chunks} chunks: those at the ends have one less"
    if missing == len(("embedding", "loss")):
        assumption = f"the embedding and the loss take the slot of a layer each ({layers} + 2 in {chunks} chunks)"
    return sizes, assumption if missing else ""
