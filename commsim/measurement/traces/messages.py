"""To which pass does each message between stages belong?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from commsim.errors import InputError
from commsim.measurement.traces.steps import PASSES, RECEIVES, SENDS

if TYPE_CHECKING:
    from commsim.measurement.traces.places import Grid
    from commsim.measurement.traces.steps import Floats, Ints

_CLOSE = 5e-5
"""Clocks of one worker's streams disagree by less, s."""


def matched(grid: Grid, source: str) -> Grid:
    """Return the grid with messages numbered by the passes that they belong to.

    Profilers record sends before the first pass and receives after the last, which move nothing: they are dropped. The
    first receive of a pipeline may be missing. InputError for any other number of messages.
    """
    seconds, starts = dict(grid.seconds), dict(grid.starts)
    for kind in (one for one in PASSES if one in grid.seconds):
        for op in (one for one in (SENDS[kind], RECEIVES[kind]) if one in grid.seconds):
            turns = [_turns(grid, kind, op, stage, source) for stage in range(len(grid.ranks))]
            size = grid.seconds[kind].shape[1]
            seconds[op] = _renumbered(grid.seconds[op], turns, size)
            starts[op] = _renumbered(grid.starts[op], turns, size)
    chunk = {op: array for op, array in grid.chunk.items() if op not in {*SENDS.values(), *RECEIVES.values()}}
    return replace(grid, seconds=seconds, starts=starts, chunk=chunk)


def _turns(grid: Grid, kind: str, op: str, stage: int, source: str) -> tuple[Ints, int]:
    """Which recorded messages of a stage count, and the pass of the first of them."""
    passes = grid.starts[kind][stage, :, 0, 0]
    over = passes + grid.seconds[kind][stage, :, 0, 0]
    start = grid.starts[op][stage, :, 0, 0]
    end = start + grid.seconds[op][stage, :, 0, 0]
    receives = op == RECEIVES[kind]
    real = start <= np.nanmax(passes) + _CLOSE if receives else end >= np.nanmin(over) - _CLOSE
    turns, count = np.flatnonzero(real), int(np.count_nonzero(~np.isnan(passes)))
    if turns.size not in {0, count - receives, count}:
        raise InputError(
            f"{source}: stage {stage}", f"{turns.size} x {op}", f"one for each of {count} passes belongs here"
        )
    return turns, count - turns.size if receives and turns.size else 0


def _renumbered(array: Floats, turns: list[tuple[Ints, int]], size: int) -> Floats:
    found = np.full((array.shape[0], size, *array.shape[2:]), np.nan)
    for stage, (own, first) in enumerate(turns):
        found[stage, first : first + own.size] = array[stage, own]
    return found
