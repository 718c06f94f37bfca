"""What do the summaries of TraceLens say? Mean times by rank and collective; or transfers and skews, ranks not told.

Times are microseconds. Both files of one run complete each other: one has the ranks, the other what collectives take
once all are there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commsim.measurement.traces import columns as table
from commsim.measurement.traces.calls import CallTrace
from commsim.measurement.traces.names import collective_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from commsim.measurement.traces.columns import Column

    Key = tuple[str, int]

NAME, ELEMENTS = "Collective name", "In msg nelems"
_MEAN, _COUNT = "dur_mean", "operation_count"
_LATENCY, _SKEW = "comm_latency_mean", "skew in start time_mean"
_US = 1e-6


def recognises(header: Iterable[str]) -> bool:
    """Whether a table is one of TraceLens's summaries of collectives."""
    names = set(header)
    return NAME in names and ({"rank", _MEAN} <= names or _LATENCY in names)


def read(paths: Iterable[Path], source: str) -> CallTrace:
    """Return the collectives of all files; those that only one rank has, or a group of one, are left aside."""
    by_rank: dict[Key, dict[int, float]] = {}
    count: dict[Key, int] = {}
    known: dict[Key, tuple[float, float]] = {}
    for path in paths:
        columns, _ = table.table(path)
        keys = _keys(columns, path.name)
        counts = table.whole(columns, _COUNT if _COUNT in columns else "count", path.name).tolist()
        for key, number in zip(keys, counts):
            count[key] = max(count.get(key, 0), number)
        if _MEAN in columns:
            ranks = table.whole(columns, "rank", path.name).tolist()
            for key, rank, mean in zip(keys, ranks, table.numbers(columns, _MEAN, path.name, least=0).tolist()):
                by_rank.setdefault(key, {})[rank] = mean * _US
        else:
            both = (table.numbers(columns, name, path.name, least=0) * _US for name in (_LATENCY, _SKEW))
            known.update(zip(keys, zip(*(one.tolist() for one in both))))
    return _trace(by_rank, count, known, source)


def _keys(columns: Mapping[str, Column], source: str) -> list[Key]:
    names = [collective_of(name) or name for name in table.texts(columns, NAME, source).tolist()]
    return list(zip(names, table.whole(columns, ELEMENTS, source).tolist()))


def _trace(
    by_rank: Mapping[Key, Mapping[int, float]],
    count: Mapping[Key, int],
    known: Mapping[Key, tuple[float, float]],
    source: str,
) -> CallTrace:
    ranks = sorted({rank for times in by_rank.values() for rank in times})
    seconds = np.array([[by_rank.get(key, {}).get(rank, np.nan) for rank in ranks] for key in count])
    transfer, skew = np.array([known.get(key, (np.nan, np.nan)) for key in count]).T
    return CallTrace(
        op=tuple(f"{op} of {elements} elements" for op, elements in count),
        count=np.array(list(count.values())),
        seconds=seconds.reshape(len(count), len(ranks)),
        meets=np.ones(len(count), dtype=bool),
        ranks=tuple(ranks),
        transfer=transfer,
        skew=skew,
        source=source,
    )
