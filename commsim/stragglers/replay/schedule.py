"""In which order did the stages work, where a trace does not say it?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from commsim.errors import InputError
from commsim.measurement.traces.steps import BACKWARD, FORWARD, MESSAGES, ONCE, PASSES, RECEIVES, SENDS, Turn
from commsim.training.pipeline import compiled

if TYPE_CHECKING:
    from commsim.measurement.traces.steps import Ints, StepTrace
    from commsim.training.pipeline import Program


def ordered(trace: StepTrace, schedule: str = "1f1b", virtual: int = 1) -> StepTrace:
    """Return the trace with an order: its own, else that of a schedule with so many chunks of the model a stage.

    Stages without messages between them are given messages that take no time, for they wait for each other all the
    same. InputError where the trace has more or fewer passes than the schedule.
    """
    return _joined(trace if trace.order else _scheduled(trace, schedule, virtual))


def _scheduled(trace: StepTrace, schedule: str, virtual: int) -> StepTrace:
    """The trace with the order of a schedule."""
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


def _joined(trace: StepTrace) -> StepTrace:
    """The trace with messages between its stages: for every pass of a stage that has any, as profilers record them."""
    if trace.stages == 1 or any(op in trace.seconds for op in MESSAGES):
        return trace
    last, seconds = trace.chunks - 1, dict(trace.seconds)
    for op, first, final in ((FORWARD, 0, last), (BACKWARD, last, 0)):
        if op in trace.seconds:
            there = {RECEIVES[op]: trace.chunk[op] != first, SENDS[op]: trace.chunk[op] != final}
            for name, has in there.items():
                some = has.any(axis=1)[:, None, None, None]
                seconds[name] = np.where(some, np.zeros_like(trace.seconds[op]), np.nan)
    said = "there are no messages between stages; taken to take no time"
    return replace(trace, seconds=seconds, repairs=(*trace.repairs, said))


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
