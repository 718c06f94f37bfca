"""What is in a plain table, or JSON lines, of rank, step, op, start and duration in s, as `bench.record` writes it?

An operation that is named after a collective is where ranks meet; a column `group` tells several groups apart. Without
starts, or without anything to meet in, only the durations are judged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commsim.errors import InputError
from commsim.measurement.traces import columns as table
from commsim.measurement.traces.calls import CallTrace
from commsim.measurement.traces.events import UNNUMBERED, EventTrace, Rows, assembled
from commsim.measurement.traces.names import collective_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from commsim.measurement.traces.columns import Column
    from commsim.measurement.traces.steps import Ints

OP, DURATION = ("op", "name", "operation"), ("duration", "duration_s", "dur", "seconds")
START = ("start", "start_s", "start_ts")
NAMES = ("rank", "step", *OP, *START, *DURATION, "group")
_LONGEST = 200
_MOST_OPERATIONS = 10_000


def recognises(header: Iterable[str]) -> bool:
    """Whether a table has a rank, an operation and a duration."""
    names = set(header)
    return "rank" in names and bool(names & {*OP}) and bool(names & {*DURATION})


def read(paths: Iterable[Path], source: str) -> EventTrace | CallTrace:
    """Return the events of all files, by the clock if they have starts and collectives; InputError for no figures."""
    tables, repairs = [], []
    for path in paths:
        is_table = recognises(table.header(path))
        columns, damaged = table.table(path) if is_table else table.json_lines(path, NAMES)
        tables.append(_named(columns, path.name))
        repairs += [f"{path.name}: {damaged} rows with missing fields: left out"] * bool(damaged)
    shared = set.intersection(*(set(one) for one in tables))
    rows = {name: np.concatenate([one[name] for one in tables]) for name in shared}
    op = table.texts(rows, "op", source)
    if len(set(op.tolist())) > _MOST_OPERATIONS:
        raise InputError(f"{source}: op", f"{len(set(op.tolist()))} names", f"at most {_MOST_OPERATIONS} belong here")
    meets = np.array([collective_of(str(one)) is not None for one in op])
    return (
        _events(rows, op, meets, source, repairs) if "start" in rows and meets.any() else _calls(rows, source, repairs)
    )


def _named(columns: Mapping[str, Column], source: str) -> dict[str, Column]:
    """The columns under one name each."""
    found = dict(columns)
    for name, others in (("op", OP), ("duration", DURATION), ("start", START)):
        given = next((other for other in others if other in columns), None)
        if given:
            found[name] = found.pop(given)
    if not found.get("op", np.empty(0)).size:
        raise InputError(source, sorted(columns), "rows with rank, step, op, start and duration belong here")
    return found


def _events(
    rows: Mapping[str, Column], op: NDArray[np.str_], meets: NDArray[np.bool_], source: str, repairs: list[str]
) -> EventTrace:
    rank = table.whole(rows, "rank", source)
    group = table.texts(rows, "group", source) if "group" in rows else np.full(rank.size, "all")
    together = np.array([f"{one}/{collective_of(str(name))}" for one, name in zip(group, op)])
    listed = Rows(
        rank=rank,
        step=_steps(rows, source),
        name=op.astype(f"<U{_LONGEST}"),
        group=np.where(meets, together, ""),
        number=np.full(rank.size, UNNUMBERED),
        start=table.numbers(rows, "start", source),
        seconds=table.numbers(rows, "duration", source, least=0),
    )
    return assembled(listed, source, repairs=tuple(repairs))


def _steps(rows: Mapping[str, Column], source: str) -> Ints:
    size = next(iter(rows.values())).size
    return table.whole(rows, "step", source) if "step" in rows else np.zeros(size, dtype=np.int64)


def _calls(rows: Mapping[str, Column], source: str, repairs: list[str]) -> CallTrace:
    """The mean duration of each operation on each rank."""
    rank, step = table.whole(rows, "rank", source), _steps(rows, source)
    seconds = table.numbers(rows, "duration", source, least=0)
    if "start" in rows:
        table.numbers(rows, "start", source)
    ranks, column = np.unique(rank, return_inverse=True)
    names, row = np.unique(table.texts(rows, "op", source), return_inverse=True)
    shape = (names.size, ranks.size)
    place = np.ravel_multi_index((row, column), shape)
    count = np.bincount(place, minlength=names.size * ranks.size).reshape(shape)
    total = np.bincount(place, seconds, minlength=names.size * ranks.size).reshape(shape)
    none = np.full(names.size, np.nan)
    return CallTrace(
        op=tuple(names.tolist()),
        count=count.max(axis=1),
        seconds=np.where(count, total / np.maximum(count, 1), np.nan),
        meets=np.array([collective_of(name) is not None for name in names.tolist()]),
        ranks=tuple(ranks.tolist()),
        transfer=none,
        skew=none,
        steps=np.unique(step).size,
        source=source,
        repairs=tuple(repairs),
    )
