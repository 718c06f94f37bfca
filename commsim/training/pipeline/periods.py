"""What repeats in a pipeline, however many micro-batches there are?

After its warm-up a schedule does the same for every group of micro-batches. What a program with few of them shows
(what can be in flight, which nodes run together) holds for any number: the steady part is only longer.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from commsim.training.pipeline.messages import NOTHING
from commsim.training.pipeline.schedules import Shape, group_of

if TYPE_CHECKING:
    from commsim.training.pipeline.program import Program
    from commsim.training.pipeline.schedules import Integers

WHOLE = ("gpipe", "afab", "forward")
"""Schedules that do all of one kind first: they have no group of micro-batches that repeats."""
_GROUPS, _AFTER = 3, 8
"""Groups, and without groups micro-batches after the warm-up, that show a warm-up, what repeats, and the end."""


def fewer(schedule: str, shape: Shape) -> Shape:
    """Return the shape with so few micro-batches that all is seen that repeats with more of them."""
    if schedule in WHOLE:
        return replace(shape, microbatches=1)
    if schedule != "interleaved":
        return replace(shape, microbatches=min(shape.microbatches, shape.stages + _AFTER))
    group = group_of(shape)
    groups, rest = divmod(shape.microbatches, group)
    return shape if groups <= _GROUPS else replace(shape, microbatches=_GROUPS * group + rest, group=group)


def longer(few: Program, order: Integers, before: Integers, needs: Integers) -> Integers | None:
    """Return a round for each node of a longer program of the same schedule, NOTHING for messages that do not exist.

    The turns of the steady part are repeated. None when the rounds so found would let a node run before one that it
    follows.
    """
    turns, more = few.order.shape[1], order.shape[1]
    period = turns // few.shape.microbatches * (few.shape.group or 1)
    middle = (turns - period) // 2
    turn = np.arange(more)
    again = np.clip((turn - middle) // period, 0, (more - turns) // period)
    found = _rounds_of(few)
    by_turn = found[:, :, turn - again * period]
    gain = by_turn.dtype.type(np.median(found[0, :, middle + period] - found[0, :, middle]))
    depth = np.full(before.size + 1, NOTHING, dtype=np.intp)
    depth[order], depth[order + order.size] = by_turn + again * gain
    depth[:-1][order.size :][before[order.size :] == NOTHING] = NOTHING
    runs = np.flatnonzero(depth[:-1] != NOTHING)
    in_turn = (depth[before[runs]] < depth[runs]) & (depth[needs[runs]] < depth[runs])
    return depth[:-1] if in_turn.all() else None


def _rounds_of(program: Program) -> Integers:
    """The round of each operation and of its message, [2, stage, turn]."""
    depth = np.empty(program.before.size, dtype=np.intp)
    depth[program.run] = np.repeat(np.arange(program.sizes.size), program.sizes)
    return np.stack([depth[program.order], depth[program.order + program.operations]])
