"""What does DeepSpeed's communication benchmark (ds_bench) print?

Sizes are rounded text, exact bytes are elements times bytes each in the second column; gather types count all ranks;
the throughput of all_reduce is twice its algorithm bandwidth.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from commsim.collectives.kinds import ALL_GATHER, ALL_REDUCE, REDUCE_SCATTER, Collective
from commsim.measurement.doubts import Doubts
from commsim.measurement.identify import named
from commsim.measurement.records import Measurement, Row, Timing
from commsim.measurement.rounding import contradictions

_TITLE = re.compile(r"---- Performance of (\w+) on ([1-9]\d{0,8}) devices")
_UNITS = re.compile(r"Throughput \((Gbps|GBps)\)")
_ROW = re.compile(
    r"^\s*\S+(?: [KMGT]?B)?\s+(\d{1,15})x(\d{1,3})\s+(\d{1,15}(?:\.\d{1,9})?) (us|ms|s)\s+"
    r"(\d{1,9}(?:\.\d{1,9})?)\s+(\d{1,9}(?:\.\d{1,9})?)\s*$"
)
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
_BANDWIDTH = {"Gbps": 1e9 / 8, "GBps": 1e9}


@dataclass
class _Table:
    """The rows under one title."""

    op: str
    ranks: int
    unit: float = _BANDWIDTH["Gbps"]
    rows: list[Row] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    @property
    def kind(self) -> Collective | None:
        return named(self.op)

    def take(self, found: re.Match[str]) -> None:
        """Add a row; `algbw` is size / time, as nccl-tests has it."""
        count, seconds = int(found[1]), float(found[3]) * _SECONDS[found[4]]
        times = self.ranks if self.kind in {ALL_GATHER, REDUCE_SCATTER} else 1
        half = 2 if self.kind is ALL_REDUCE else 1
        algbw, busbw = float(found[5]) * self.unit / half, float(found[6]) * self.unit
        self.rows.append(Row(count * int(found[2]) * times, count, Timing(seconds, algbw=algbw, busbw=busbw)))


class Reader:
    """Reads the tables of ds_bench."""

    def __init__(self) -> None:
        """Begin with nothing read."""
        self._tables: list[_Table] = []

    def line(self, number: int, text: str) -> None:
        """Read a line; other output between rows is passed over."""
        if found := _TITLE.search(text):
            self._tables.append(_Table(found[1], int(found[2])))
        elif self._tables and (found := _UNITS.search(text)):
            self._tables[-1].unit = _BANDWIDTH[found[1]]
        elif self._tables:
            self._row(number, text)

    def _row(self, number: int, text: str) -> None:
        found, table = _ROW.match(text), self._tables[-1]
        if found and float(found[3]):
            table.take(found)
        elif found or re.search(r"\s\d+x\d+\s", text):
            table.broken.append(f"line {number}: {' '.join(text.split())[:60]!r} is no row of this table")

    def measurements(self, source: str) -> list[Measurement]:
        """Return a measurement for each table."""
        return [_measurement(table, source) for table in self._tables]


def _measurement(table: _Table, source: str) -> Measurement:
    doubts = Doubts()
    if table.kind is None:
        doubts.problem(f"{table.op} is no operation that commsim knows")
    if not table.rows:
        doubts.problem("the run ended before its first row")
    doubts.many(table.broken)
    doubts.many([said for row in table.rows for said in contradictions(row, table.kind, table.ranks)])
    return Measurement(
        candidates=((table.kind, table.ranks),) if table.kind else (),
        rows=tuple(table.rows),
        tool="ds_bench",
        source=source,
        notes=tuple(doubts.notes),
        problems=tuple(doubts.problems),
    )
