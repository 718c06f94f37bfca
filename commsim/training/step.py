"""How long is one optimizer step, and where does the time go?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from commsim.training.axes import AXES
from commsim.training.links import links
from commsim.training.once import once
from commsim.training.passes import passes
from commsim.training.pipeline import compiled, per_chunk, per_link, solve
from commsim.training.stages import stages

if TYPE_CHECKING:
    from collections.abc import Mapping

    from commsim.training.chunks import Chunks
    from commsim.training.passes import Machine, Said
    from commsim.training.pipeline import Program
    from commsim.training.setting import Setting
    from commsim.training.stages import Stages

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Step:
    """One optimizer step, s, and its parts: those of the stage that has most to do. Together they are the step.

    `bubble` is the time in which that stage waits for others, `exposed` what each axis adds. `said` is everything that
    was said, `chunks` and `program` which layers ran where and in which order (a lone stage repeats the program of one
    micro-batch).
    """

    seconds: float
    compute: float
    bubble: float
    exposed: Mapping[str, float]
    optimizer: float
    said: tuple[Said, ...]
    chunks: Chunks
    program: Program


def step(setting: Setting, machine: Machine) -> Step:
    """Return the step on a machine: the pipeline solved with its real stage times, and what comes once a step."""
    chunks, program = setting.chunks, program_of(setting)
    said = [machine.said(setting, piece) for piece in chunks.pieces]
    run = stages(chunks, [passes(machine, piece, spoken) for piece, spoken in zip(chunks.pieces, said)])
    message, delays = links(setting, machine)
    rest = once(setting, machine, said, run)
    times = setting.microbatches // program.shape.microbatches
    early, late = (_ends(setting, run, delays) * times + rest.after).max(axis=1)
    busy = chunks.of_stages(run.seconds.sum(axis=0)) * setting.microbatches + rest.after
    most = int(np.argmax(busy))
    exposed = dict(zip(AXES, (chunks.of_stages(run.exposed.sum(axis=1))[:, most] * setting.microbatches).tolist()))
    exposed["data"] += rest.before + float(rest.data[most])
    exposed["pipeline"] += float(late - early + rest.ends[most])
    return Step(
        seconds=float(rest.before + late),
        compute=float(chunks.of_stages(run.compute.sum(axis=0))[most]) * setting.microbatches,
        bubble=max(0.0, float(early - busy[most])) if chunks.stages > 1 else 0.0,  # alone it waits for nobody
        exposed={axis: seconds for axis, seconds in exposed.items() if seconds},
        optimizer=float(rest.optimizer[most]),
        said=(*(one for spoken in said for one in spoken), *message),
        chunks=chunks,
        program=program,
    )


def program_of(setting: Setting, communication: str = "") -> Program:
    """Return the pipeline's program: its schedule, and how its stages communicate.

    Without overlap a message occupies both stages in 1F1B, and its sender in other schedules. 1F1B does not overlap
    unless the recipe says so, the others do (Megatron-LM's choices). A lone stage takes one micro-batch after the
    other, so its program has one.
    """
    plan, one_by_one = setting.plan, setting.schedule == "1f1b"
    asked = setting.recipe.overlap_pipeline
    waiting = "rendezvous" if one_by_one else "blocking"
    how = communication or (waiting if (one_by_one if asked is None else not asked) else "asynchronous")
    microbatches = 1 if one_by_one and plan.pipeline == 1 else setting.microbatches
    return compiled(setting.schedule, plan.pipeline, microbatches, plan.virtual, communication=how)


def _ends(setting: Setting, run: Stages, delays: Floats) -> Floats:
    """When each stage ends its last operation [2, stage], s: if messages took no time, and as they are."""
    program, free = program_of(setting), program_of(setting, communication="asynchronous")
    if program is free:
        return _solved(program, run, np.stack([np.zeros_like(delays), delays], axis=-1)).T
    return np.stack([_solved(free, run, np.zeros_like(delays)), _solved(program, run, delays)])


def _solved(program: Program, run: Stages, delays: Floats) -> Floats:
    """When each stage ends its last operation [stage, ...batch], s, with delays of links [stage, ...batch]."""
    forward, backward = run.seconds
    split = program.dims[0] > len(run.seconds)
    kinds = (forward, backward - run.weights, run.weights) if split else (forward, backward)
    ends = solve(program, per_chunk(*kinds), per_link(program, delays)).max(axis=(0, 2))
    found: Floats = ends.reshape(-1, program.shape.stages, *ends.shape[1:]).max(axis=0)
    return found
