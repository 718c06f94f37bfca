"""What do the OSU micro-benchmarks print? A title, `# Size  Avg Latency(us)`, and a size and a time a row.

They count what one rank sends: all_gather's size is that of one rank, all_to_all's that of one pair, so that the size
of nccl-tests is that times the ranks, which OSU never prints.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from commsim.collectives.kinds import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    BROADCAST,
    REDUCE,
    REDUCE_SCATTER,
    SEND_RECV,
    Collective,
)
from commsim.errors import InputError
from commsim.measurement.records import Measurement, Row, Timing

_US = 1e-6
_TITLE = re.compile(r"#\s*OSU (MPI|NCCL|RCCL|xCCL)(?:-\w+)?\s+(.*?)\s*(?:Test\s*)?(?:v([\d.]+))?\s*$")
_HEADING = re.compile(r"#\s*Size\s+(.*)")
_TYPE = re.compile(r"#\s*Datatype:\s*(\w+)")
_ROW = re.compile(r"^\s*(\d{1,15})((?:\s+\d{1,15}(?:\.\d{1,9})?)+)\s*$")
_OPS: dict[str, Collective] = {
    "allreduce": ALL_REDUCE,
    "allgather": ALL_GATHER,
    "alltoall": ALL_TO_ALL,
    "alltoallpersonalizedexchange": ALL_TO_ALL,
    "reducescatter": REDUCE_SCATTER,
    "broadcast": BROADCAST,
    "bcast": BROADCAST,
    "reduce": REDUCE,
    "": SEND_RECV,  # osu_latency: one way between two ranks
}
_PER_RANK = {ALL_GATHER, ALL_TO_ALL}


@dataclass
class _Table:
    """The rows under one title."""

    library: str
    title: str
    version: str
    dtype: str = ""
    column: int | None = None
    rows: list[tuple[int, float]] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    @property
    def kind(self) -> Collective | None:
        name = self.title.lower().removesuffix("latency")
        return _OPS.get("".join(letter for letter in name if letter.isalpha()))


class Reader:
    """Reads OSU's tables of latencies; `ranks` is what the reader was told."""

    def __init__(self, ranks: int | None = None) -> None:
        """Begin with nothing read."""
        self._ranks = ranks
        self._tables: list[_Table] = []

    def line(self, number: int, text: str) -> None:
        """Read a line."""
        if found := _TITLE.search(text) if "OSU" in text else None:
            self._tables.append(_Table(found[1].lower(), found[2], found[3] or ""))
        elif self._tables:
            self._more(number, text)

    def _more(self, number: int, text: str) -> None:
        table = self._tables[-1]
        if found := _HEADING.search(text):
            names = re.split(r"\s{2,}|\t", found[1].strip())
            table.column = next((n for n, name in enumerate(names) if re.search(r"Latency ?\(us\)", name)), None)
        elif found := _TYPE.search(text):
            table.dtype = found[1]
        elif (found := _ROW.match(text)) and table.column is not None:
            figures = [float(one) for one in found[2].split()]
            seconds = figures[table.column] * _US if table.column < len(figures) else 0.0
            if seconds:
                table.rows.append((int(found[1]), seconds))
            else:
                table.broken.append(f"line {number}: no latency stands there")

    def measurements(self, source: str) -> list[Measurement]:
        """Return a measurement for each table; InputError when the ranks are needed and were not told."""
        return [self._measurement(table, source) for table in self._tables]

    def _measurement(self, table: _Table, source: str) -> Measurement:
        kind, ranks = table.kind, 2 if table.kind is SEND_RECV else self._ranks
        if kind in _PER_RANK and ranks is None:
            raise InputError(
                source, f"OSU {table.title}", "sizes are those of one rank: say how many ranks (ranks=...)"
            )
        times = (ranks or 1) if kind in _PER_RANK else 1
        problems = list(table.broken)
        if kind is None:
            problems.append(f"OSU {table.title} is no operation that commsim knows")
        if not table.rows:
            problems.append("no latency was printed")
        return Measurement(
            candidates=((kind, ranks),) if kind else (),
            rows=tuple(Row(size * times, 0, Timing(seconds)) for size, seconds in table.rows),
            dtype=table.dtype.lower().removeprefix("mpi_"),
            library=table.library,
            tool="osu",
            tool_version=table.version,
            source=source,
            problems=tuple(problems),
        )
