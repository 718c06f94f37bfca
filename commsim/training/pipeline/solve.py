"""When does every operation of a pipeline end, and how long is the step? Costs are those of `costs.py`."""

from __future__ import annotations

import itertools
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from commsim.training.pipeline.costs import costs_of
from commsim.training.pipeline.steps import alone, one_by_one, together

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import ArrayLike

    from commsim.training.pipeline.costs import Costs, Floats
    from commsim.training.pipeline.program import Program
    from commsim.training.pipeline.schedules import Integers

_WIDE = 768
"""Columns from which on a node a step is faster than a round a step (see bench/speed)."""
_FEW = 2
"""Columns up to which plain numbers are faster than arrays."""
_BLOCK = 2048
"""Columns solved at once, so that the rows in use stay in a core's cache."""


def solve(program: Program, durations: ArrayLike, delays: ArrayLike = 0.0) -> Floats:
    """Return when each operation ends, [kind, chunk, micro-batch, ...batch] in seconds from the start of the step.

    Raises InputError for shapes that do not fit the program, and for costs that are negative or not finite.
    """
    costs = costs_of(program, durations, delays)
    finish = np.empty((program.operations, costs.width))
    for part, some in costs.blocks(_WIDE):
        finish[:, part] = ends(program, some, np.arange(program.operations))
    return finish.reshape(*program.dims, *costs.batch)


def makespan(program: Program, durations: ArrayLike, delays: ArrayLike = 0.0) -> Floats:
    """Return how long the step takes, [...batch] in seconds; errors as in `solve`, whose maximum it is."""
    costs = costs_of(program, durations, delays)
    return longest(program, costs).reshape(costs.batch)


def stage_ends(program: Program, durations: ArrayLike, delays: ArrayLike = 0.0) -> Floats:
    """Return when each stage ends its last operation, [stage, ...batch] in seconds; errors as in `solve`."""
    costs = costs_of(program, durations, delays)
    return _last(program, costs).reshape(program.shape.stages, *costs.batch)


def longest(program: Program, costs: Costs) -> Floats:
    """Return how long the step takes, [column] in seconds."""
    found: Floats = _last(program, costs).max(axis=0)
    return found


def _last(program: Program, costs: Costs) -> Floats:
    """When each stage ends its last operation, [stage, column]; the quickest way for so many columns."""
    if costs.width >= _WIDE:
        return np.concatenate([_last_of_many(program, some) for _, some in costs.blocks(_BLOCK)], axis=1)
    if 0 < costs.width <= _FEW:
        return np.stack([_last_of_one(program, some) for _, some in costs.blocks(1)], axis=1)
    return ends(program, costs, program.order[:, -1])


def ends(program: Program, costs: Costs, nodes: Integers) -> Floats:
    """Return when the nodes end, [node, column] in seconds; NOTHING ends at zero."""
    rounds = together(program)
    place = rounds.row[:-1].reshape(2, *program.dims)
    finish = np.empty((rounds.before.size, costs.width))
    finish[place[0]], finish[place[1]] = costs.durations, costs.delays
    finish[0] = 0.0
    take, before, needs = finish.take, rounds.before, rounds.needs
    for first, end in itertools.pairwise(rounds.cuts):
        start = np.maximum(take(before[first:end], 0), take(needs[first:end], 0))
        finish[first:end] += start
    return finish[rounds.row[nodes]]


def _last_of_one(program: Program, costs: Costs) -> Floats:
    """The ends of the stages in one column, [stage]; those are remembered where all micro-batches cost the same."""
    same = costs.durations.shape[2] == costs.delays.shape[2] == 1
    each = [array if same else np.broadcast_to(array, (*program.dims, 1)) for array in costs[:2]]
    cost = np.concatenate([*(array.ravel() for array in each), [0.0]])
    return _ends_of_chunks(program, cost.tobytes()) if same else _by_number(program, cost)


@lru_cache(maxsize=1024)
def _ends_of_chunks(program: Program, cost: bytes) -> Floats:
    found = _by_number(program, np.frombuffer(cost))
    found.flags.writeable = False
    return found


def _by_number(program: Program, cost: Floats) -> Floats:
    """The ends of the stages, [stage]: the same maximum and addition a node at a time, of numbers.

    `cost` has one number for each node, or one for all micro-batches of a chunk, and the zero of NOTHING.
    """
    numbers, each = alone(program), program.before.size // (cost.size - 1)
    own, finish = cost[numbers.run // each].tolist(), [0.0]
    if numbers.after is None:
        _run(finish, zip(numbers.before, numbers.needs, own))
    else:
        _run_ahead(finish, zip(numbers.before, numbers.needs, cost[numbers.after // each].tolist(), own))
    return np.array([finish[row] for row in numbers.last])


def _run(finish: list[float], steps: Iterable[tuple[int, int, float]]) -> None:
    """Let each node begin when the rows before it are over, and append when it ends."""
    end = finish.append
    for before, needs, own in steps:
        first, second = finish[before], finish[needs]
        end((first if first > second else second) + own)  # noqa: FURB136 - max() takes twice as long


def _run_ahead(finish: list[float], steps: Iterable[tuple[int, int, float, float]]) -> None:
    """The same where what a node needs is brought by a message that occupies nobody."""
    end = finish.append
    for before, needs, message, own in steps:
        first, second = finish[before], finish[needs] + message
        end((first if first > second else second) + own)  # noqa: FURB136


def _last_of_many(program: Program, costs: Costs) -> Floats:
    """The ends of the stages, [stage, column], by the same maximum and addition a node at a time."""
    turns = one_by_one(program)
    cost = [row for array in costs[:2] for row in _each(program, array)]
    finish = np.zeros((turns.size, costs.width))
    rows = list(finish)
    for node, out, before, needs in turns.steps:
        start = rows[before] if before == needs else np.maximum(rows[before], rows[needs], out=rows[out])
        np.add(start, cost[node], out=rows[out])
    return finish[turns.last]


def _each(program: Program, array: Floats) -> list[Floats]:
    """The costs of each operation, [column] in the order of their numbers."""
    repeats = program.dims[2] // array.shape[2]
    return [row for row in array.reshape(-1, array.shape[-1]) for _ in range(repeats)]
