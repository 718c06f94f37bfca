"""Is every worker there in every step, and do their clocks agree? What is not is left out or set right, and said."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from commsim.errors import InputError
from commsim.measurement.traces.steps import CLIP, FORWARD, SCATTER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from commsim.measurement.traces.steps import Floats, Ints

    Bools = NDArray[np.bool_]

APART = 0.01
"""Clocks that disagree by less are left as they are, s."""
_FEW = 8


@dataclass(frozen=True, eq=False)
class Grid:
    """A table of operations as arrays [stage, turn, step, replica]; `steps` and `replicas` are those that are kept."""

    seconds: Mapping[str, Floats]
    starts: Mapping[str, Floats]
    chunk: Mapping[str, Ints]
    ranks: Ints
    steps: Ints
    replicas: Ints
    said: tuple[str, ...] = ()

    def cut(self, steps: Bools, replicas: Bools) -> Grid:
        """Return the grid with some of its steps and replicas."""
        where = np.ix_(np.flatnonzero(steps), np.flatnonzero(replicas))
        seconds, starts = (
            {op: array[:, :, where[0], where[1]] for op, array in arrays.items()}
            for arrays in (self.seconds, self.starts)
        )
        kept = self.ranks[:, replicas], self.steps[steps], self.replicas[replicas]
        return Grid(seconds, starts, self.chunk, *kept, self.said)


def complete(grid: Grid, source: str) -> tuple[Grid, list[str]]:
    """Return the grid without replicas and steps that lack operations, and what was left out.

    Forward passes, which every worker has, are asked for first; of the others, those that half of the rest have.
    InputError where no step is whole.
    """
    grid, passes = _whole(grid, _lacks(grid, (FORWARD,), 0.0), source)
    grid, extra = _without_extras(grid)
    grid, others = _whole(grid, _lacks(grid, tuple(grid.seconds), _USUAL), source)
    return grid, [*grid.said, *extra, *passes, *others]


_USUAL = 0.5
"""An operation belongs in every step if this share of all steps and replicas has it."""


def _whole(grid: Grid, lacks: Bools, source: str) -> tuple[Grid, list[str]]:
    """The grid without the replicas that lack something in most steps, and then without the steps that do."""
    gone = lacks.mean(axis=0) > _USUAL
    left = ~np.atleast_1d(lacks[:, ~gone].any(axis=1))
    if gone.all() or not left.any():
        raise InputError(source, "no step with all of its operations", "whole steps of one replica or more belong here")
    said = [f"replicas {_listed(grid.replicas[gone])}: left out, operations are missing"] * bool(gone.any())
    said += [f"{np.count_nonzero(~left)} of {left.size} steps: left out, operations are missing"] * (not left.all())
    return grid.cut(left, ~gone), said


def _without_extras(grid: Grid) -> tuple[Grid, list[str]]:
    """The grid without operations that most steps and replicas do not have."""
    seconds, starts, count = {}, {}, 0
    for op, array in grid.seconds.items():
        there = ~np.isnan(array)
        extra = there & (there.mean(axis=(2, 3), keepdims=True) < _USUAL)
        count += int(np.count_nonzero(extra))
        if (there & ~extra).any():
            seconds[op], starts[op] = np.where(extra, np.nan, array), np.where(extra, np.nan, grid.starts[op])
    said = [f"{count} operations that most steps do not have: left out"] if count else []
    return replace(grid, seconds=seconds, starts=starts), said


def _lacks(grid: Grid, ops: tuple[str, ...], share: float) -> Bools:
    """Which step of which replica lacks an operation that more than this share of all have, [step, replica]."""
    found = np.zeros((grid.steps.size, grid.replicas.size), dtype=bool)
    for op in (one for one in ops if one in grid.seconds):
        there = ~np.isnan(grid.seconds[op])
        known = there.mean(axis=(2, 3), keepdims=True)
        usual = known >= share if share else known > 0
        found |= (usual & ~there).any(axis=(0, 1))
    return found


def _listed(numbers: Ints) -> str:
    shown = ", ".join(map(str, numbers[:_FEW].tolist()))
    return shown if numbers.size <= _FEW else f"{shown} and {numbers.size - _FEW} more"


def synchronised(grid: Grid) -> tuple[Grid, list[str]]:
    """Return the grid with clocks that agree, and what was set.

    What all workers end together tells their clocks. They are left alone unless a worker would have ended before
    another had begun.
    """
    op = next((one for one in (CLIP, SCATTER) if one in grid.starts), None)
    if op is None:
        return grid, []
    start, end = grid.starts[op][:, 0], grid.starts[op][:, 0] + grid.seconds[op][:, 0]
    last = start.max(axis=(0, 2) if op == CLIP else 2, keepdims=True)
    if not np.any(np.median(end - last, axis=1) < -APART):
        return grid, []
    off = np.median(end - np.median(end, axis=(0, 2), keepdims=True), axis=1)
    starts = {name: array - off[:, None, None] for name, array in grid.starts.items()}
    apart = f"clocks {np.ptp(off):.3g} s apart: set by the ends of {op}, which all workers have in common"
    return replace(grid, starts=starts), [apart]
