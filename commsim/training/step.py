"""How long is one optimizer step, and where does the time go?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from commsim.training.axes import Pipeline
from commsim.training.chunks import Chunks, spread
from commsim.training.memory import weights_of
from commsim.training.overlap import exposed
from commsim.training.passes import Machine, Pass, Said, of_layer, said_in_layer
from commsim.training.pipeline import Program, compiled, per_chunk, per_link, solve

if TYPE_CHECKING:
    from commsim.training.setting import Setting

Floats = NDArray[np.float64]
UPDATE_BYTES = 30.0
"""Bytes that Adam moves for each weight: reads gradient, master weight and two moments, writes the three and the bf16."""


@dataclass(frozen=True, eq=False)
class Step:
    """One optimizer step, s: as a whole, and of its slowest stage the compute, the idle time and what each axis exposes."""

    seconds: float
    compute: float
    bubble: float
    exposed: Mapping[str, float]
    optimizer: float
    said: tuple[Said, ...]
    chunks: Chunks
    program: Program


@dataclass(frozen=True, eq=False)
class _Stages:
    """The passes of every chunk for one micro-batch: seconds [pass, chunk], and of it compute and each axis's part."""

    seconds: Floats
    compute: Floats
    exposed: Mapping[str, Floats]


def program_of(setting: Setting) -> Program:
    """Return the pipeline's program: 1F1B, interleaved with virtual stages, unless the recipe names another."""
    plan = setting.plan
    schedule = setting.recipe.schedule or ("interleaved" if plan.virtual > 1 else "1f1b")
    return compiled(schedule, plan.pipeline, setting.microbatches, plan.virtual)


def step(setting: Setting, machine: Machine) -> Step:
    """Return the step on a machine: the pipeline solved with its real stage times, then data parallelism and optimizer."""
    plan, program = setting.plan, program_of(setting)
    chunks = spread(setting.model, plan.pipeline, plan.virtual)
    said = {kind: said_in_layer(setting, machine, kind) for kind, count in setting.model.counts.items() if count}
    stages = _stages(setting, machine, chunks, said)
    hop = machine.timed(setting, plan.axis(Pipeline).message(setting), "") if plan.pipeline > 1 else None
    durations = _kinds(program, stages.seconds)
    delays = per_link(program, np.full(plan.pipeline, float(hop.timing.seconds[0]))) if hop else 0.0
    late = _ends(program, durations, delays)
    alone = _ends(program, durations, 0.0)
    before, after = _data_exposed(setting, chunks, said, stages)
    optimizer = _optimizer(setting, machine, chunks)
    last = int(np.argmax(late + after + optimizer))
    busy = stages.seconds.sum(axis=0).reshape(plan.virtual, plan.pipeline).sum(axis=0) * setting.microbatches
    busiest = int(np.argmax(busy))

    def share(part: Floats) -> float:
        whole: Floats = part.sum(axis=0).reshape(plan.virtual, plan.pipeline).sum(axis=0)
        return float(whole[busiest] * setting.microbatches)

    parts = {axis: share(part) for axis, part in stages.exposed.items()}
    parts["data"] = parts.get("data", 0.0) + float(before + after[last] + late[last] - late.max())
    if hop:
        parts["pipeline"] = float(late.max() - alone.max())
    return Step(
        seconds=float(before + late[last] + after[last] + optimizer[last]),
        compute=share(stages.compute),
        bubble=float(alone.max() - busy[busiest]),
        exposed={axis: value for axis, value in parts.items() if value},
        optimizer=float(optimizer[last]),
        said=tuple(one for each in said.values() for one in each) + ((hop,) if hop else ()),
        chunks=chunks,
        program=program,
    )


def _stages(setting: Setting, machine: Machine, chunks: Chunks, said: Mapping[str, list[Said]]) -> _Stages:
    """Sum the passes of the layers of each chunk, and of the ends."""
    recipe, kinds = setting.recipe, list(said)
    passes = [of_layer(setting, machine, kind, said[kind]) for kind in kinds]
    counts = chunks.counts[:, [setting.model.kinds.index(kind) for kind in kinds]]
    ends = [machine.compute(end, setting, (recipe.other_format, recipe.other_format)) for end in setting.ends]

    def of(value: dict[int, list[float]]) -> Floats:
        return np.array([counts @ np.array(value[which]) for which in (0, 1)])

    compute = of({which: [both[which].compute for both in passes] for which in (0, 1)})
    for chunk, end in zip((0, -1), ends):
        compute[:, chunk] += [one.compute for one in end]
    axes = {axis for both in passes for one in both for axis in one.exposed}
    parts = {axis: of({w: [both[w].exposed.get(axis, 0.0) for both in passes] for w in (0, 1)}) for axis in sorted(axes)}
    return _Stages(compute + sum(parts.values(), np.zeros_like(compute)), compute, parts)


def _kinds(program: Program, seconds: Floats) -> Floats:
    """Durations by kind of operation; a schedule that splits the backward pass gets half of it for each gradient."""
    forward, backward = seconds
    split = program.dims[0] > 2  # noqa: PLR2004 - forward, backward, and the gradient of the weights apart
    return per_chunk(forward, backward / 2, backward / 2) if split else per_chunk(forward, backward)


def _ends(program: Program, durations: Floats, delays: Floats | float) -> Floats:
    """When each stage ends its last operation, s."""
    finish = solve(program, durations, delays).max(axis=(0, 2))
    ends: Floats = finish.reshape(program.shape.virtual, program.shape.stages).max(axis=0)
    return ends


def _data_exposed(
    setting: Setting, chunks: Chunks, said: Mapping[str, list[Said]], stages: _Stages
) -> tuple[float, Floats]:
    """What data parallelism adds once a step: before the first stage's first forward pass, after each stage's last backward.

    It hides behind one micro-batch's pass through the stage; the first and the last layer's bucket cannot.
    """
    plan = setting.plan
    per_stage = stages.seconds.reshape(2, plan.virtual, plan.pipeline).sum(axis=1)
    layers = chunks.counts.reshape(plan.virtual, plan.pipeline, -1).sum(axis=0)[:, _present(setting, said)]
    found = {}
    for which, when in enumerate(("first forward", "last backward")):
        spoken = [[one for one in said[kind] if one.traffic.when == when] for kind in said]
        whole = layers @ np.array([sum(one.seconds for one in each) for each in spoken])
        hides = any(one.traffic.behind == "pass" for each in spoken for one in each)
        bucket = whole / np.maximum(layers.sum(axis=1), 1)
        cover = per_stage[which] * hides
        found[when] = np.array([max(exposed(w, c), b) for w, c, b in zip(whole, cover, bucket)])
    return float(found["first forward"][0]), found["last backward"]


def _present(setting: Setting, said: Mapping[str, list[Said]]) -> list[int]:
    return [setting.model.kinds.index(kind) for kind in said]


def _optimizer(setting: Setting, machine: Machine, chunks: Chunks) -> Floats:
    """The time of the update on each stage, s: memory-bound, on the shard that the rank owns."""
    plan = setting.plan
    shards = [plan.axis_shard(group) if plan.zero else 1 for group in ("data", "expert data")]
    owned = sum(held / shard for held, shard in zip(weights_of(setting, chunks), shards))
    return np.asarray(owned) * UPDATE_BYTES / machine.kernels.memory
