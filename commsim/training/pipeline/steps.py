"""In which steps is a pipeline solved, and in which rows of memory do its nodes end?

Three ways through the same graph: `alone` takes a node a step and has numbers for one column (one estimate);
`together` takes a round of nodes a step, which suits some columns; `one_by_one` takes a node a step and uses rows again
that nobody waits for any more, so that many columns stay in cache.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from commsim.training.pipeline.messages import NOTHING

if TYPE_CHECKING:
    from commsim.training.pipeline.program import Program
    from commsim.training.pipeline.schedules import Integers

    Turn = tuple[int, int, int, int]


@dataclass(frozen=True, eq=False)
class Rounds:
    """A round a step, in rows from `cuts`[round] to the next; row 0 is time zero.

    `before` and `needs` [row] are the rows that a row follows, `row[node]` is where a node ends; nodes that do not
    exist share row 0.
    """

    cuts: list[int]
    before: Integers
    needs: Integers
    row: Integers


@dataclass(frozen=True, eq=False)
class Turns:
    """A node a step: (node, its row, the row before, the row that it needs); row 0 is time zero.

    `last[stage]` are the rows in which the last operations of the stages end.
    """

    steps: tuple[Turn, ...]
    last: Integers
    size: int


@dataclass(frozen=True, eq=False)
class Numbers:
    """A node a step, for numbers in place of arrays: its node, the rows before, the rows that it needs.

    Node `run[i]` ends in row i + 1; row 0 is time zero. `last`[stage] are the rows of the stages' last operations.
    Messages that occupy nobody are no steps of their own: `after[i]` is the message that brings what step i needs, or
    NOTHING.
    """

    run: Integers
    before: list[int]
    needs: list[int]
    after: Integers | None
    last: list[int]


@lru_cache(maxsize=128)
def alone(program: Program) -> Numbers:
    """Return a step for each node, every node with a row of its own; remembered."""
    run, needs, after = program.run, program.needs, None
    if program.communication == "asynchronous":
        run = run[run < program.operations]
        after = np.where(needs[run] < program.operations, NOTHING, needs[run])
        needs = np.where(needs < program.operations, needs, needs[needs])  # who sent the message
    row = np.zeros(program.before.size + 1, dtype=np.intp)
    row[run] = np.arange(1, run.size + 1)
    rows = (row[of].tolist() for of in (program.before[run], needs[run], program.order[:, -1]))
    before, sources, last = rows
    return Numbers(run, before, sources, after, last)


@lru_cache(maxsize=128)
def together(program: Program) -> Rounds:
    """Return a step for each round, every node with a row of its own; remembered."""
    row, run = np.zeros(program.before.size + 1, dtype=np.intp), program.run
    row[run] = np.arange(1, run.size + 1)
    before, needs = np.append(NOTHING, program.before[run]), np.append(NOTHING, program.needs[run])
    return Rounds([1, *(1 + np.cumsum(program.sizes)).tolist()], row[before], row[needs], row)


@lru_cache(maxsize=16)
def one_by_one(program: Program) -> Turns:
    """Return a step for each node, rows used again once the last that waits for them has run; remembered."""
    row, size = _reused_rows(program)
    steps = tuple((node, row[node], row[before], row[needs]) for node, before, needs in _in_turn(program))
    return Turns(steps, np.array(row)[program.order[:, -1]], size)


def _reused_rows(program: Program) -> tuple[list[int], int]:
    """The row of each node, and how many rows there are."""
    row, size, free = [0] * (program.before.size + 1), 1, list[int]()
    last_use = _last_use(program)
    for turn, (node, *followed) in enumerate(_in_turn(program)):
        free += [row[other] for other in set(followed) if last_use[other] == turn]
        if not free:
            free.append(size)
            size += 1
        row[node] = free.pop()
    return row, size


def _in_turn(program: Program) -> list[tuple[int, int, int]]:
    """Each node as it runs, with the two that it follows."""
    run = program.run
    return list(zip(run.tolist(), program.before[run].tolist(), program.needs[run].tolist()))


def _last_use(program: Program) -> list[int]:
    """The turn of the last follower of each node; beyond every turn for time zero and the ends of the stages."""
    run = program.run
    last = np.full(program.before.size + 1, NOTHING, dtype=np.intp)
    for followed in (program.before[run], program.needs[run]):
        np.maximum.at(last, followed, np.arange(run.size))
    last[program.order[:, -1]], last[NOTHING] = run.size, run.size
    turns: list[int] = last.tolist()
    return turns
