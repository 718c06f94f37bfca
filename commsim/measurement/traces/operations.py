"""Which steps are in a table with a row for each operation of each worker, as StragglerAnalysis publishes them?

Columns: dp_rank, stage, step, optype, start_ts and duration in seconds; rank, seq_id and mc (the chunk of the stage)
where they are there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from commsim.errors import InputError
from commsim.measurement.traces import columns as table
from commsim.measurement.traces.messages import matched
from commsim.measurement.traces.places import Grid, complete, synchronised
from commsim.measurement.traces.steps import FORWARD, OPERATIONS, PASSES, StepTrace, Turn

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from commsim.measurement.traces.columns import Column
    from commsim.measurement.traces.steps import Floats, Ints

REQUIRED = ("dp_rank", "stage", "step", "optype", "start_ts", "duration")
_MOST_TURNS = 2**16


def read(path: Path) -> StepTrace:
    """Return the steps of a table; InputError where a stage is missing or figures are none."""
    columns, damaged = table.table(path)
    rows = _Rows.of(columns, path.name)
    repairs = [f"{damaged} rows with missing fields: left out"] * bool(damaged)
    return _trace(rows, path.name, repairs)


@dataclass(frozen=True, eq=False)
class _Rows:
    """The table, arrays [row]; replicas and steps by their place among those that there are."""

    op: NDArray[np.str_]
    place: tuple[Ints, Ints, Ints, Ints]
    start: Floats
    duration: Floats
    chunk: Ints
    rank: Ints
    steps: Ints
    replicas: Ints

    @classmethod
    def of(cls, columns: Mapping[str, Column], source: str) -> _Rows:
        op = table.texts(columns, "optype", source)
        known = np.isin(op, OPERATIONS)
        if FORWARD not in op:
            raise InputError(f"{source}: optype", op[:1].tolist(), f"operations such as {FORWARD} belong here")
        cut = {name: column[known] for name, column in columns.items()}
        replica, stage, step = (table.whole(cut, name, source) for name in ("dp_rank", "stage", "step"))
        start, duration = (table.numbers(cut, "start_ts", source), table.numbers(cut, "duration", source, least=0))
        replicas, replica = np.unique(replica, return_inverse=True)
        steps, step = np.unique(step, return_inverse=True)
        rank = table.whole(cut, "rank", source) if "rank" in cut else stage * replicas.size + replica
        chunk = _chunks(cut, source) if "mc" in cut else np.zeros_like(stage)
        own = op[known]
        turn = table.whole(cut, "seq_id", source) if "seq_id" in cut else _counted(own, (rank, stage, step), start)
        if turn.max() > _MOST_TURNS:
            raise InputError(f"{source}: seq_id", int(turn.max()), f"at most {_MOST_TURNS} belongs here")
        return cls(own, (stage, turn, step, replica), start, duration, chunk, rank, steps, replicas)


def _chunks(columns: Mapping[str, Column], source: str) -> Ints:
    """The chunk of the stage, the first where an operation has none (-1)."""
    return np.maximum(table.numbers(columns, "mc", source), 0).astype(np.int64)


def _counted(op: NDArray[np.str_], places: tuple[Ints, ...], start: Floats) -> Ints:
    """The number of each operation among those of its name, rank and step, by start."""
    keys = np.unique(op, return_inverse=True)[1]
    sort = np.lexsort((start, keys, *places))
    together = np.stack([one[sort] for one in (keys, *places)])
    new = np.append(True, (np.diff(together, axis=1) != 0).any(axis=0))
    first = np.maximum.accumulate(np.where(new, np.arange(sort.size), 0))
    found = np.empty_like(sort)
    found[sort] = np.arange(sort.size) - first
    return found


def _trace(rows: _Rows, source: str, repairs: list[str]) -> StepTrace:
    grid, said = complete(_grid(rows, source), source)
    grid, apart = synchronised(grid)
    order = tuple(_order(grid, stage) for stage in range(len(grid.ranks)))
    grid = matched(grid, source)
    begin = np.min([np.nanmin(start, axis=(0, 1, 3)) for start in grid.starts.values()], axis=0)
    end = np.max([np.nanmax(grid.starts[op] + grid.seconds[op], axis=(0, 1, 3)) for op in grid.starts], axis=0)
    return StepTrace(
        seconds=grid.seconds,
        ranks=grid.ranks,
        steps=tuple(rows.steps[grid.steps].tolist()),
        order=order,
        chunk=grid.chunk,
        starts={op: start - begin[:, None] for op, start in grid.starts.items()},
        measured=end - begin,
        replica_numbers=tuple(rows.replicas[grid.replicas].tolist()),
        source=source,
        repairs=(*repairs, *said, *apart),
    )


def _grid(rows: _Rows, source: str) -> Grid:
    """The table as arrays by operation, NaN where there is no row."""
    stage, turn, _, replica = rows.place
    stages = int(stage.max()) + 1
    passes = rows.op == FORWARD
    missing = sorted(set(range(stages)) - set(stage[passes].tolist()))
    if missing:
        raise InputError(source, f"no {FORWARD} of stage {missing[0]}", "every stage from 0 on belongs in it")
    size = (stages, rows.steps.size, rows.replicas.size)
    ranks = np.full((size[0], size[2]), np.iinfo(np.int64).max)
    np.minimum.at(ranks, (stage[passes], replica[passes]), rows.rank[passes])
    first = rows.rank == ranks[stage, replica]
    seconds, starts, chunk = {}, {}, {}
    for op in (one for one in OPERATIONS if np.any(rows.op == one)):
        own = (rows.op == op) & first
        where = tuple(axis[own] for axis in rows.place)
        shape = (size[0], int(turn[rows.op == op].max()) + 1, size[1], size[2])
        seconds[op], starts[op] = np.full(shape, np.nan), np.full(shape, np.nan)
        seconds[op][where], starts[op][where] = rows.duration[own], rows.start[own]
        chunk[op] = np.tile(np.arange(size[0])[:, None], shape[1])
        chunk[op][where[:2]] = rows.chunk[own] * size[0] + where[0]
    shared = np.count_nonzero(~first)
    said = (f"{shared} rows of ranks that share a stage and a replica with a lower rank: left out",) if shared else ()
    return Grid(seconds, starts, chunk, ranks, np.arange(size[1]), np.arange(size[2]), said)


def _order(grid: Grid, stage: int) -> tuple[Turn, ...]:
    """What a stage computes, in the order of the first step of the first replica."""
    found = [
        (float(start), turn, op)
        for op in PASSES
        if op in grid.starts
        for turn, start in enumerate(grid.starts[op][stage, :, 0, 0])
        if not np.isnan(start)
    ]
    return tuple(Turn(op, turn) for _, turn, op in sorted(found))
