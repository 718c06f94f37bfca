"""Which program does a schedule become?"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from commsim.errors import InputError
from commsim.training.pipeline.messages import COMMUNICATION, NOTHING, linked
from commsim.training.pipeline.periods import WHOLE, fewer, longer
from commsim.training.pipeline.program import Program
from commsim.training.pipeline.rounds import by_depth, in_rounds
from commsim.training.pipeline.schedules import BACKWARD, FORWARD, SCHEDULES, WEIGHT, Shape

if TYPE_CHECKING:
    from commsim.training.pipeline.schedules import Integers

    Graph = tuple[Integers, Integers, Integers]

MOST = 2**20
"""Chunks x micro-batches that are compiled at most."""


def compiled(
    schedule: str,
    stages: int,
    microbatches: int,
    virtual: int = 1,
    *,
    group: int | None = None,
    communication: str = "asynchronous",
) -> Program:
    """Return the program of a schedule; remembered.

    `virtual` is the chunks a stage, `group` the micro-batches in a row on one chunk (interleaved only). Raises
    InputError for a schedule that does not exist or cannot be cut so, and for communication that would deadlock.
    """
    _known("pipeline: schedule", schedule, tuple(SCHEDULES))
    _known("pipeline: communication", communication, COMMUNICATION)
    shape = Shape(
        _count("stages", stages),
        _count("microbatches", microbatches),
        _count("virtual", virtual),
        None if group is None else _count("group", group),
    )
    if shape.chunks * shape.microbatches > MOST:
        expected = f"more than {MOST} chunks x micro-batches, the most that is compiled"
        raise InputError("pipeline: (stages, virtual, microbatches)", (stages, virtual, microbatches), expected)
    return _compiled(schedule, shape, communication)


@lru_cache(maxsize=128)
def _compiled(schedule: str, shape: Shape, communication: str) -> Program:
    order = SCHEDULES[schedule](shape)
    dims = (order.size // (shape.chunks * shape.microbatches), shape.chunks, shape.microbatches)
    before, needs = linked(order, _sources(dims), communication)
    depth = _lengthened(schedule, shape, communication, (order, before, needs))
    run, sizes = in_rounds(before, needs) if depth is None else by_depth(depth)
    if run.size < order.size + np.count_nonzero(before[order.size :] != NOTHING):
        expected = f"{schedule} deadlocks so; asynchronous and blocking never do"
        raise InputError("pipeline: communication", communication, expected)
    for array in (order, before, needs, run, sizes):
        array.flags.writeable = False  # a program is remembered and shared
    return Program(schedule, communication, shape, dims, order, before, needs, run, sizes)


def _lengthened(schedule: str, shape: Shape, communication: str, graph: Graph) -> Integers | None:
    """The round of each node, from a program with fewer micro-batches; None where that does not answer it."""
    few = fewer(schedule, shape)
    if few == shape or schedule in WHOLE:
        return None
    return longer(_compiled(schedule, few, communication), *graph)


def _known(where: str, name: str, names: tuple[str, ...]) -> None:
    if name not in names:
        raise InputError(where, name, "unknown", among=names)


def _count(what: str, given: int) -> int:
    if not isinstance(given, int | np.integer) or isinstance(given, bool) or given < 1:
        raise InputError(f"pipeline: {what}", given, "a whole number of at least 1 belongs here")
    return int(given)


def _sources(dims: tuple[int, int, int]) -> Integers:
    """[operation]: whose output it takes, NOTHING for the first chunk's forward."""
    number = np.arange(np.prod(dims)).reshape(dims)
    source = np.full(dims, NOTHING, dtype=np.intp)
    source[FORWARD, 1:] = number[FORWARD, :-1]
    source[BACKWARD : BACKWARD + 1, :-1] = number[BACKWARD : BACKWARD + 1, 1:]
    source[BACKWARD : BACKWARD + 1, -1] = number[FORWARD, -1]
    source[WEIGHT:] = number[BACKWARD : BACKWARD + 1]
    return source.ravel()
