"""Why does a pipeline take so long: where is it idle, what does it hold, which operations follow on each other?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from commsim.errors import InputError
from commsim.training.pipeline.costs import costs_of
from commsim.training.pipeline.messages import NOTHING
from commsim.training.pipeline.schedules import FORWARD, KINDS
from commsim.training.pipeline.solve import ends, longest

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from commsim.training.pipeline.costs import Floats
    from commsim.training.pipeline.program import Program
    from commsim.training.pipeline.schedules import Integers
    from commsim.units import Seconds


@dataclass(frozen=True)
class Operation:
    """What a stage does with one micro-batch on one chunk, or the message that it sends then, from start to finish.

    `kind` is forward, backward, weight (see KINDS) or message.
    """

    kind: str
    stage: int
    chunk: int
    microbatch: int
    start: Seconds
    finish: Seconds


def bubble(program: Program, durations: ArrayLike, delays: ArrayLike = 0.0) -> Floats:
    """Return how long each stage computes nothing, [stage, ...batch] in seconds of the whole step."""
    costs, shape = costs_of(program, durations, delays), program.shape
    by_chunk = costs.durations.sum(axis=(0, 2)) * (shape.microbatches // costs.durations.shape[2])
    busy = by_chunk.reshape(shape.virtual, shape.stages, -1).sum(axis=0)
    return np.reshape(longest(program, costs) - busy, (shape.stages, *costs.batch))


def in_flight(program: Program) -> Integers:
    """Return the most activations that each stage holds at a time, [stage], in those of one chunk and micro-batch.

    An activation lives from its forward to the last operation on the same chunk and micro-batch. Forwards without
    backwards hold nothing.
    """
    kinds, kind = program.dims[0], program.order // (program.dims[1] * program.dims[2])
    made_less_freed = (kind == FORWARD).astype(np.intp) - (kind == kinds - 1)
    held: Integers = made_less_freed.cumsum(axis=1).max(axis=1)
    return held


def critical_path(program: Program, durations: ArrayLike, delays: ArrayLike = 0.0) -> tuple[Operation, ...]:
    """Return the operations and messages, one after the other without a gap, that make the step as long as it is.

    Durations and delays have no batch axes here. Of two that end at the same time the one on the same stage is taken.
    """
    costs = costs_of(program, durations, delays)
    if costs.batch:
        raise InputError("pipeline: batch axes", costs.batch, "a critical path is that of one step: give one alone")
    finish = ends(program, costs, np.append(np.arange(program.before.size), NOTHING))[:, 0]
    node, path = int(program.order[np.argmax(finish[program.order[:, -1]]), -1]), list[Operation]()
    while node != NOTHING:
        latest = max((int(program.before[node]), int(program.needs[node])), key=lambda other: finish[other])
        path.append(_operation(program, node, finish[latest], finish[node]))
        node = latest
    return tuple(reversed(path))


def _operation(program: Program, node: int, start: float, finish: float) -> Operation:
    kind, chunk, microbatch = np.unravel_index(node % program.operations, program.dims)
    name = KINDS[kind] if node < program.operations else "message"
    stage = int(chunk) % program.shape.stages
    return Operation(name, stage, int(chunk), int(microbatch), float(start), float(finish))
