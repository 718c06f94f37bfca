"""When did ranks meet, by NCCL Inspector? One JSON object for each operation of each rank, joined by group and number.

With the verbose form the times of the kernels are there; without it only how long they ran.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commsim.errors import InputError
from commsim.measurement import fields
from commsim.measurement.readers.documents import documents
from commsim.measurement.traces.calls import CallTrace
from commsim.measurement.traces.columns import unpacked
from commsim.measurement.traces.events import EventTrace, Rows, assembled
from commsim.measurement.traces.names import collective_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from commsim.measurement.fields import Entry

MOST = 256 * 2**20
"""Bytes of a file; an operation takes 200 to 500."""
_US = 1e-6


def recognises(beginning: str) -> bool:
    """Whether a file begins as Inspector's do."""
    return '"header"' in beginning and (
        '"coll_perf"' in beginning or '"p2p_perf"' in beginning or '"n_ranks"' in beginning
    )


def read(paths: Iterable[Path], source: str) -> EventTrace | CallTrace:
    """Return the operations of all files, by the clock if every one has its times."""
    found, repairs = [], []
    for path in paths:
        given, is_cut = documents(_text(path), path.name)
        repairs += [f"{path.name}: the JSON ends early: read up to there"] * is_cut
        found += [(one, f"{path.name}: object {number}") for number, one in enumerate(given, 1) if "coll_perf" in one]
        messages = sum("coll_perf" not in one for one in given)
        repairs += [f"{path.name}: {messages} point-to-point operations: left out"] * bool(messages)
    if not found:
        raise InputError(source, "no collective", "operations with coll_perf belong here")
    calls = [_Call(one, where) for one, where in found]
    timed = all(call.times for call in calls)
    return _events(calls, source, repairs) if timed else _calls(calls, source, repairs)


def _text(path: Path) -> str:
    with unpacked(path) as stream:
        content = stream.read(MOST + 1)
    if len(content) > MOST:
        raise InputError(path.name, f"more than {MOST} B", "a shorter file belongs here")
    return content.decode("utf-8", errors="replace")


class _Call:
    """One operation of one rank."""

    def __init__(self, document: Entry, where: str) -> None:
        header, performed = (fields.entry(document.get(name), where) for name in ("header", "coll_perf"))
        self.group = fields.text(header, "id", where)
        self.rank = fields.whole(header, "rank", where)
        self.world = fields.ranks(header, "n_ranks", where)
        self.number = fields.whole(performed, "coll_sn", where)
        name = fields.text(performed, "coll", where)
        self.op = collective_of(name) or name
        self.seconds = fields.number(performed, "coll_exec_time_us", where) * _US
        self.times = _kernels(performed)


def _kernels(performed: Entry) -> tuple[float, float] | None:
    """When the first kernel of an operation began and the last ended, s."""
    given = fields.part(performed, "event_trace_ts").get("kernel_events")
    kernels = [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []
    times = [(one.get("kernel_start_ts"), one.get("kernel_stop_ts")) for one in kernels]
    starts = [begin for begin, _ in times if fields.is_figure(begin)]
    stops = [end for _, end in times if fields.is_figure(end)]
    return (min(starts) * _US, max(stops) * _US) if starts and stops and max(stops) >= min(starts) else None


def _events(calls: list[_Call], source: str, repairs: list[str]) -> EventTrace:
    times = np.array([call.times for call in calls])
    rows = Rows(
        rank=np.array([call.rank for call in calls]),
        step=np.zeros(len(calls), dtype=np.int64),
        name=np.array([call.op for call in calls]),
        group=np.array([call.group for call in calls]),
        number=np.array([call.number for call in calls]),
        start=times[:, 0],
        seconds=times[:, 1] - times[:, 0],
    )
    return assembled(rows, source, world=max(call.world for call in calls), repairs=tuple(repairs))


def _calls(calls: list[_Call], source: str, repairs: list[str]) -> CallTrace:
    ranks = sorted({call.rank for call in calls})
    keys = {key: place for place, key in enumerate(dict.fromkeys((call.group, call.number, call.op) for call in calls))}
    seconds = np.full((len(keys), len(ranks)), np.nan)
    for call in calls:
        seconds[keys[call.group, call.number, call.op], ranks.index(call.rank)] = call.seconds
    none = np.full(len(keys), np.nan)
    world = max(call.world for call in calls)
    missing = [f"{world - len(ranks)} of {world} ranks have no trace here: only the others are judged"]
    return CallTrace(
        op=tuple(op for _, _, op in keys),
        count=np.ones(len(keys), dtype=np.int64),
        seconds=seconds,
        meets=np.ones(len(keys), dtype=bool),
        ranks=tuple(ranks),
        transfer=none,
        skew=none,
        world=world,
        source=source,
        repairs=(*repairs, *missing[: world > len(ranks)]),
    )
