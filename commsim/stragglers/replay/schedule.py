"""In which order did the stages work, where a trace does not say it?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from commsim.errors import InputError
from commsim.measurement.traces.steps import BACKWARD, FORWARD, ONCE, PASSES, Turn
from commsim.training.pipeline import compiled

if TYPE_CHECKING:
    from commsim.measurement.traces.steps import Ints, StepTrace
    from commsim.training.pipeline import Program


def ordered(trace: StepTrace, schedule: str = "1f1b", virtual: int = 1) -> StepTrace:
    """Return the trace with an order: its own, else that of a schedule with so many chunks of the model a stage.

    InputError where the trace has more or fewer passes than the schedule.
    """
    if trace.order:
        return trace
    turns = trace.seconds[FORWARD].shape[1]
    if virtual < 1:
        raise InputError("virtual stages", virtual, "a whole number of at least 1 belongs here")
    if turns % virtual:
        raise InputError(
            trace.source, f"{turns} forward passes a stage", f"a multiple of {virtual} chunks belongs here"
        )
    program = compiled(schedule, trace.stages, turns // virtual, virtual)
    if program.dims[0] > 1 and (BACKWARD not in trace.seconds or trace.seconds[BACKWARD].shape[1] != turns):
        raise InputError(trace.source, BACKWARD, "as many backward as forward passes belong here")
    said = f"the order of operations is not in the trace; taken to be that of {schedule}"
    order, chunk = _order(program), _chunks(program)
    single = {
        op: np.tile(np.arange(trace.stages)[:, None], trace.seconds[op].shape[1]) for op in ONCE if op in trace.seconds
    }
    return replace(trace, order=order, chunk={**chunk, **single}, repairs=(*trace.repairs, said))


def _order(program: Program) -> tuple[tuple[Turn, ...], ...]:
    """What each stage computes, counted by pass."""
    return tuple(tuple(_turns(kinds)) for kinds in _kinds(program).tolist())


def _turns(kinds: list[int]) -> list[Turn]:
    return [Turn(PASSES[kind], kinds[:place].count(kind)) for place, kind in enumerate(kinds)]


def _kinds(program: Program) -> Ints:
    """The kind of operation of each stage in each turn; a split backward is no matter here."""
    found: Ints = program.order // (program.dims[1] * program.dims[2])
    if found.max() >= len(PASSES):
        raise InputError("schedule", program.schedule, "one with whole backward passes belongs here")
    return found


def _chunks(program: Program) -> dict[str, Ints]:
    """The chunk of each pass, [stage, turn]."""
    chunk, kinds = program.order // program.dims[2] % program.dims[1], _kinds(program)
    stages = program.shape.stages
    return {op: chunk[kinds == kind].reshape(stages, -1) for kind, op in enumerate(PASSES[: program.dims[0]])}
