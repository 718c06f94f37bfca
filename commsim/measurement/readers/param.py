"""What does the PARAM communication benchmark print? Its rows begin with COMMS-RES; a time is the median over ranks."""

from __future__ import annotations

import re
from collections import defaultdict

from commsim.measurement.doubts import Doubts
from commsim.measurement.dtypes import dtype
from commsim.measurement.identify import named
from commsim.measurement.records import Measurement, Row, Timing
from commsim.measurement.rounding import contradictions

_GB, _US = 1e9, 1e-6
_RANKS = re.compile(r"groupSize ([1-9]\d{0,8})|world_size'?: ([1-9]\d{0,8})")
_BACKEND = re.compile(r"backend: (\w+)")
_ROW = re.compile(r"COMMS-RES-([a-z_]+)-(\w+)(\S*)((?:\s+\d{1,18}(?:\.\d{1,9})?){10})\s*$")
_COLUMNS = ("size", "count", "p50", "p75", "p95", "min", "max", "algbw", "busbw", "total")


class Reader:
    """Reads what PARAM's comms.py prints."""

    def __init__(self) -> None:
        """Begin with nothing read."""
        self._ranks: int | None = None
        self._backend = ""
        self._rows: dict[tuple[str, str, int | None], list[Row]] = defaultdict(list)
        self._broken: list[str] = []

    def line(self, number: int, text: str) -> None:
        """Read a line."""
        if "COMMS-RES-" in text:
            self._row(number, text)
        elif found := _RANKS.search(text):
            self._ranks = int(found[1] or found[2])
        elif found := _BACKEND.search(text) if "backend:" in text and "nw-stack" in text else None:
            self._backend = found[1]

    def _row(self, number: int, text: str) -> None:
        found = _ROW.search(text)
        figures = dict(zip(_COLUMNS, (float(one) for one in found[4].split()))) if found else {}
        if found is None or not figures["p50"]:
            self._broken.append(f"line {number}: {' '.join(text.split())[:60]!r} has not the ten columns of a row")
            return
        time = Timing(figures["p50"] * _US, algbw=figures["algbw"] * _GB, busbw=figures["busbw"] * _GB)
        key = (found[1], dtype(found[2]), self._ranks)
        self._rows[key].append(Row(int(figures["size"]), int(figures["count"]), time))

    def measurements(self, source: str) -> list[Measurement]:
        """Return a measurement for each operation and type."""
        return [self._measurement(*key, rows, source) for key, rows in self._rows.items()]

    def _measurement(self, op: str, kind: str, ranks: int | None, rows: list[Row], source: str) -> Measurement:
        doubts, said = Doubts(), named(op)
        if said is None:
            doubts.problem(f"{op} is no operation that commsim knows")
        doubts.many(self._broken)
        doubts.many([one for row in rows for one in contradictions(row, said, ranks)])
        doubts.note("each time is the median over ranks, not over iterations")
        return Measurement(
            candidates=((said, ranks),) if said else (),
            rows=tuple(rows),
            dtype=kind,
            library=self._backend,
            tool="param",
            source=source,
            notes=tuple(doubts.notes),
            problems=tuple(doubts.problems),
        )
