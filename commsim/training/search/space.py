"""Which plans divide the model, the batch and the machine?

The rules are those of `fitting.misfits`; a law test holds the two against each other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from commsim.errors import InputError
from commsim.training.axes import Context, Data, Expert, Pipeline, Tensor
from commsim.training.chunks import spread
from commsim.training.pipeline.compiling import MOST
from commsim.training.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commsim.training.axes import Axis
    from commsim.training.model import Model
    from commsim.training.recipe import Recipe
    from commsim.training.search.choices import Choices

Ints = NDArray[np.int64]
Mesh = tuple[int, int, int, int, int]
"""Tensor, context, expert, pipeline and data ranks."""
_ONE_CHUNK = ("1f1b", "zero-bubble", "zb-h1")


@dataclass(frozen=True, eq=False)
class Space:
    """Plans as columns, each [plan]; `recompute` is a place in the choices. The order of the axes is Megatron's."""

    tensor: Ints
    context: Ints
    expert: Ints
    pipeline: Ints
    data: Ints
    virtual: Ints
    micro_batch: Ints
    zero: Ints
    recompute: Ints

    def __len__(self) -> int:
        """How many plans there are."""
        return len(self.tensor)

    def of(self, plans: NDArray[np.intp]) -> Space:
        """Return some of the plans, by number."""
        return Space(*(getattr(self, field.name)[plans] for field in fields(self)))

    def plan(self, place: int, recipe: Recipe) -> Plan:
        """Return one of the plans; axes of one rank stand in it where an option of the recipe is about them."""
        column = {field.name: int(getattr(self, field.name)[place]) for field in fields(self)}
        axes: tuple[tuple[Axis, bool], ...] = (
            (Tensor(column["tensor"]), recipe.overlap_tensor),
            (Context(column["context"]), False),
            (Expert(column["expert"]), recipe.overlap_expert or recipe.imbalance != 1.0),
            (Data(column["data"], zero=column["zero"]), column["zero"] != 1),
            (
                Pipeline(column["pipeline"], column["virtual"]),
                recipe.schedule is not None or recipe.overlap_pipeline is not None,
            ),
        )
        return Plan(*(axis for axis, named in axes if axis.size > 1 or named))


def space(model: Model, recipe: Recipe, gpus: int, choices: Choices) -> Space:
    """Return every plan that divides; `recipe` says what is not chosen. InputError when there is none."""
    meshes: dict[tuple[int, int], list[Mesh]] = {}
    for mesh in _meshes(model, recipe, gpus, choices):
        meshes.setdefault(mesh[3:], []).append(mesh)
    parts = [
        _crossed(np.array(alike), batches, choices, experts=model.experts is not None)
        for (pipeline, data), alike in meshes.items()
        if (batches := _batches(model, recipe, pipeline, data, choices))
    ]
    if not parts:
        given = f"{gpus} GPUs, {recipe.global_batch} sequences of {recipe.sequence}"
        raise InputError(f"search: {model.name}", given, "no plan divides the model, the batch and the machine")
    return Space(*np.concatenate(parts, axis=1))


def _meshes(model: Model, recipe: Recipe, gpus: int, choices: Choices) -> Iterator[Mesh]:
    """The sizes of the axes: heads, experts, the sequence, layers and batch must divide."""
    stages = _stages(model, gpus, choices)
    for tensor in choices.of("tensor", [one for one in divisors(gpus) if _shares_heads(model, one)]):
        shared = 0 if recipe.sequence % tensor else math.gcd(gpus // tensor, recipe.sequence // tensor)
        for context in choices.of("context", divisors(shared) if shared else []):
            for pipeline in stages:
                data, rest = divmod(gpus, tensor * context * pipeline)
                if not rest and recipe.global_batch % data == 0 and choices.of("data", [data]):
                    for expert in choices.of("expert", _experts(model, tensor * context * data)):
                        yield tensor, context, expert, pipeline, data


def _shares_heads(model: Model, tensor: int) -> bool:
    """Whether heads go whole to a rank, and fewer KV heads than ranks are replicated evenly."""
    mixers = [block.mixer for block in model.blocks if block.mixer]
    return all(
        mixer.heads % tensor == 0 and (mixer.kv_heads % tensor == 0 or tensor % mixer.kv_heads == 0) for mixer in mixers
    )


def _experts(model: Model, folded: int) -> list[int]:
    """Over how many ranks of a stage the experts can be dealt out."""
    counts = {block.experts.count for block in model.blocks if block.experts}
    return divisors(math.gcd(folded, *counts)) if counts else [1]


def _stages(model: Model, gpus: int, choices: Choices) -> list[int]:
    """Numbers of stages none of which is without a layer."""
    layers = len(model.layers)
    return choices.of("pipeline", [one for one in divisors(gpus) if one <= layers + 1 and _spreads(model, one, 1)])


def _spreads(model: Model, stages: int, virtual: int) -> bool:
    try:
        spread(len(model.layers), Pipeline(stages, virtual), model.mtp_depth)
    except InputError:
        return False
    return True


def _batches(model: Model, recipe: Recipe, pipeline: int, data: int, choices: Choices) -> list[tuple[int, int]]:
    """Chunks a stage, which divide its layers, and micro-batches, of which interleaving needs one a stage."""
    layers, whole = len(model.layers), recipe.global_batch // data
    chunks = [1] if pipeline == 1 or recipe.schedule in _ONE_CHUNK else divisors(-(-layers // pipeline))
    if recipe.schedule == "interleaved":
        chunks = chunks[1:]
    return [
        (virtual, micro)
        for virtual in choices.of("virtual", [one for one in chunks if _spreads(model, pipeline, one)])
        for micro in choices.of("micro_batch", divisors(whole))
        if (virtual == 1 or recipe.schedule == "gpipe" or whole // micro >= pipeline)
        and pipeline * virtual * (whole // micro) <= MOST
    ]


def _crossed(meshes: Ints, batches: list[tuple[int, int]], choices: Choices, *, experts: bool) -> Ints:
    """All of these meshes with all batches, stages of ZeRO and ways to recompute, as columns."""
    zeros, ways = np.array(choices.zero), np.arange(len(choices.recompute))
    sizes = len(meshes), len(batches), len(zeros), len(ways)
    mesh, batch, zero, way = np.indices(sizes, dtype=np.int32).reshape(4, -1)
    tensor, context, expert, _, data = meshes.T
    alone = (context * data == 1) & ((tensor == expert) | (not experts))  # nobody holds the same weights
    kept = ~alone[mesh] | (zero == (choices.zero.index(1) if 1 in choices.zero else 0))
    found: Ints = np.vstack([meshes[mesh].T, np.array(batches)[batch].T, zeros[zero], way])[:, kept]
    return found


def divisors(number: int) -> list[int]:
    """Return all divisors, in order."""
    low = [one for one in range(1, math.isqrt(number) + 1) if number % one == 0]
    return sorted({*low, *(number // one for one in low)})
