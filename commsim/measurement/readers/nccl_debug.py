"""What did NCCL itself expect? The tables that it prints with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=TUNING.

A cell is its own model's latency (us) and algorithm bandwidth (GB/s) of one algorithm and protocol; zero bandwidth
means that it is not used. New versions print three algorithms a block, old ones all in one row.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from commsim.errors import InputError
from commsim.measurement.identify import named
from commsim.measurement.lines import opened

if TYPE_CHECKING:
    from pathlib import Path

    from commsim.units import BytesPerSecond, Seconds

_GB, _US = 1e9, 1e-6
_LINE = re.compile(r"(\S+:\d+:\d+ \[-?\d+\]) NCCL INFO\s+([A-Za-z][A-Za-z ]*?)\s*\|(.*)")
_CELL = re.compile(r"\s*(\d{1,9}(?:\.\d{1,6})?)\s*/\s*(\d{1,9}(?:\.\d{1,6})?)\s*")


@dataclass(frozen=True)
class Expected:
    """What NCCL's own model gives for one operation, algorithm and protocol."""

    latency: Seconds
    algbw: BytesPerSecond


Table = dict[str, dict[str, Expected]]
"""By operation, then by `Ring/LL`; only what is used."""


@dataclass
class _Printing:
    """What one rank is printing."""

    columns: list[str] = field(default_factory=list)
    algorithms: list[str] = field(default_factory=list)
    table: Table = field(default_factory=dict)

    def take(self, label: str, cells: list[str], where: str) -> None:
        if label == "Algorithm":
            self.algorithms = cells
        elif label == "Protocol":
            per = 3  # protocols of each algorithm; a last block may print more headings than it has algorithms
            self.columns = [f"{name}/{cells[n]}" for name in self.algorithms for n in range(min(per, len(cells)))]
        elif kind := named(label):
            self.table.setdefault(kind.name, {}).update(self._row(cells, where))

    def _row(self, cells: list[str], where: str) -> dict[str, Expected]:
        found = [_CELL.fullmatch(cell) for cell in cells]
        if len(found) != len(self.columns) or None in found:
            raise InputError(
                where, " | ".join(cells), f"{len(self.columns)} pairs of latency and bandwidth belong here"
            )
        pairs = [(float(one[1]) * _US, float(one[2]) * _GB) for one in found if one]
        return {name: Expected(*pair) for name, pair in zip(self.columns, pairs) if pair[1]}


def tuning_tables(path: str | Path) -> list[Table]:
    """Return the tables of a log, or of standard input for `-`, each once however many ranks print it.

    InputError when there is none and for a row that is cut.
    """
    printing: dict[str, _Printing] = {}
    with opened(path) as source:
        for number, line in enumerate(source.lines(), 1):
            if found := _LINE.search(line):
                cells = [cell.strip() for cell in found[3].rstrip().rstrip("|").split("|")]
                where = f"{source.name} line {number}"
                printing.setdefault(found[1], _Printing()).take(found[2], cells, where)
        tables = [one.table for one in printing.values() if one.table]
        if not tables:
            raise InputError(source.name, "no table", "a log with NCCL_DEBUG_SUBSYS=TUNING belongs here")
    return [table for n, table in enumerate(tables) if table not in tables[:n]]
