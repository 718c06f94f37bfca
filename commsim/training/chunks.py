"""Which pieces of the model does each chunk of the pipeline hold?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from commsim.collectives.remembered import remembered
from commsim.errors import InputError
from commsim.training.axes import Pipeline
from commsim.training.operations import NOTHING
from commsim.training.pieces import Piece, ends, layer

if TYPE_CHECKING:
    from commsim.training.setting import Setting

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Chunks:
    """The pieces of each chunk: counts[chunk, piece]; `assumption` says how the layers were spread, if unevenly."""

    pieces: tuple[Piece, ...]
    counts: Ints
    stages: int
    assumption: str = ""

    @cached_property
    def kinds(self) -> Ints:
        """The chunks that differ, [kind, piece]: most chunks are alike, and what is alike is worked out once."""
        return self._kinds[0]

    def each(self, values: Floats) -> Floats:
        """Return the values of every chunk, [..., chunk, plan], from those of each kind, [..., kind, plan]."""
        found: Floats = values[..., self._kinds[1], :]
        return found

    def of_stages(self, values: Floats) -> Floats:
        """Return the sums over the chunks of each stage, [..., stage, plan], of values [..., kind, plan]."""
        total: Floats = self._kinds_of_stage @ values
        return total

    def by_stage(self, values: Floats) -> Floats:
        """Return the sums over the pieces of each stage, [..., stage, plan], of values [..., piece, plan]."""
        total: Floats = self._kinds_of_stage @ (self.kinds.astype(float) @ values)
        return total

    @cached_property
    def _kinds(self) -> tuple[Ints, Ints]:
        """The kinds, and which of them each chunk is."""
        kinds, place = np.unique(self.counts, axis=0, return_inverse=True)
        return kinds, place.reshape(-1)

    @cached_property
    def _kinds_of_stage(self) -> Floats:
        """How many chunks of each kind a stage has, [stage, kind]."""
        total: Floats = np.eye(len(self.kinds))[self._kinds[1]].reshape(-1, self.stages, len(self.kinds)).sum(axis=0)
        return total


def chunks(setting: Setting) -> Chunks:
    """Return the pieces and how many of each every chunk holds; remembered with the machine.

    InputError when a stage would be without a layer.
    """
    question = "chunks", *setting.cut, setting.plan.axis(Pipeline)
    return remembered(setting.system.topology, question, lambda: _chunks(setting))


def _chunks(setting: Setting) -> Chunks:
    every = remembered(setting.system.topology, ("pieces", *setting.cut), lambda: pieces(setting))
    counts, assumption = counted(setting)
    held: NDArray[np.bool_] = np.any(counts, axis=0)
    return Chunks(tuple(compress(every, held)), counts[:, held], setting.plan.pipeline, assumption)


def pieces(setting: Setting) -> tuple[Piece, ...]:
    """Return every piece that the model can have: its layers, recomputed and not, then its ends."""
    recipe = setting.recipe
    ways = [recipe.recomputed] if recipe.recompute_layers is None else [recipe.recomputed, NOTHING]
    found = [layer(setting, kind, recomputed) for recomputed in ways for kind in setting.model.kinds]
    return (*found, *(one for one in ends(setting) if one))


def counted(setting: Setting) -> tuple[Ints, str]:
    """Return how many of each of `pieces` each chunk has, [chunk, piece], and how the layers were spread, if unevenly.

    The layers of prediction modules stand in the last chunk. InputError when a stage would be without a layer.
    """
    model, wanted, axis = setting.model, setting.recipe.recompute_layers, setting.plan.axis(Pipeline)
    sizes, assumption = spread(len(model.layers), axis, model.mtp_depth)
    first, last = np.cumsum(sizes) - sizes, np.cumsum(sizes)
    again = sizes if wanted is None else _recomputed(sizes, axis.size, wanted)
    layers = [model.counts_between(first, first + again)]
    layers += [] if wanted is None else [model.counts_between(first + again, last)]
    layers[-1][-1] += [model.mtp.count(kind) * model.mtp_depth for kind in model.kinds]
    here = np.arange(axis.chunks)[:, None]
    joints = [here == axis.chunks - 1] if model.mtp_depth else []
    return np.hstack([*layers, here == 0, here == axis.chunks - 1, *joints]), assumption


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


def spread(layers: int, axis: Pipeline, predictors: int = 0) -> tuple[Ints, str]:
    """Return how many layers each chunk has, in order, and the assumption if they are not even.

    As the axis says, else evenly; where the chunks do not divide the layers, those at the ends have one less, because
    they hold the embedding and the loss besides (as Llama 3 did); with `predictors` (multi-token prediction modules,
    which stand with the loss) the last one first goes without, then the first (Megatron-Bridge's recipes of
    DeepSeek-V3). InputError when a stage, or a chunk that is not at an end, would be without a layer.
    """
    sizes, assumption = _given(layers, axis) if axis.layers else _spread(layers, axis.chunks, predictors)
    per_stage = sizes.reshape(axis.virtual, axis.size).sum(axis=0)
    per_stage[-1] += predictors
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


def _spread(layers: int, chunks: int, predictors: int) -> tuple[Ints, str]:
    sizes = np.full(chunks, -(-layers // chunks))
    missing = int(sizes.sum()) - layers
    uneven = f"{layers} layers do not divide into {chunks} chunks"
    if predictors:
        sizes[-1] = max(0, int(sizes[-1]) - missing)
        sizes[: int(sizes.sum()) - layers] -= 1
        return sizes, f"{uneven}: the last, which predicts more tokens as well, has fewer" if missing else ""
    ends = [place for pair in zip(range(chunks - 1, -1, -1), range(chunks)) for place in pair]
    sizes[list(dict.fromkeys(ends))[:missing]] -= 1
    assumption = f"{uneven}: those at the ends have one less"
    if missing == len(("embedding", "loss")):
        assumption = f"the embedding and the loss take the slot of a layer each ({layers} + 2 in {chunks} chunks)"
    return sizes, assumption if missing else ""
