"""Which measurements does one printed table hold, and what speaks against it?"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from commsim.measurement.doubts import Doubts
from commsim.measurement.identify import Columns, named
from commsim.measurement.readers.nccl_tests.rows import Layout, OpenRow
from commsim.measurement.records import Candidate, Measurement, Row
from commsim.measurement.rounding import contradictions

if TYPE_CHECKING:
    from commsim.collectives.kinds import Collective
    from commsim.measurement.readers.nccl_tests.run import Run

_STEP = re.compile(r"(\d+)\((factor|bytes)\)")


@dataclass
class Table:
    """The rows under one heading, as they come."""

    run: Run
    layout: Layout = field(default_factory=Layout)
    rows: dict[tuple[str, str, int], list[Row]] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)
    repaired: list[str] = field(default_factory=list)
    average: float | None = None
    wrong: str = ""
    is_closed: bool = False
    _open: OpenRow | None = None

    def start(self, row: OpenRow) -> None:
        """Begin a row; the one before is over."""
        self.finish()
        self._open = row
        if row.is_full:
            self.finish()

    @property
    def open_row(self) -> OpenRow | None:
        """Return the row that waits for more figures."""
        return self._open

    def finish(self) -> None:
        """Take the open row as it is."""
        row, self._open = self._open, None
        value = row.value() if row else ""
        if row and isinstance(value, Row):
            self.rows.setdefault(row.key, []).append(value)
            if row.pieces > 1:
                self.repaired.append(f"line {row.line}: row of {row.head[0]} B put together from {row.pieces} pieces")
        elif isinstance(value, str) and value:
            self.broken.append(value)

    def measurements(self, source: str) -> list[Measurement]:
        """Return one measurement for each type, reduction and root; one without rows when there are none."""
        self.finish()
        parts = self.rows or {("", "none", -1): []}
        return [self._measurement(key, rows, source) for key, rows in parts.items()]

    def _measurement(self, key: tuple[str, str, int], rows: list[Row], source: str) -> Measurement:
        run, (dtype, redop, root) = self.run, key
        doubts = Doubts()
        candidates = self._candidates(Columns(rows, dtype, redop, root, run.ranks, self.layout.heads), source, doubts)
        self._doubt(rows, candidates, doubts)
        return Measurement(
            candidates=candidates,
            rows=tuple(rows),
            dtype=dtype,
            redop=redop,
            root=root,
            nodes=len(run.hosts) or None,
            hosts=run.hosts,
            accelerators=run.accelerators,
            library=run.maker,
            version=run.version,
            tool="nccl-tests",
            tool_version=run.tool_version,
            settings=dict(run.settings),
            source=source,
            notes=tuple(doubts.notes),
            problems=tuple(doubts.problems),
        )

    def _candidates(self, columns: Columns, source: str, doubts: Doubts) -> tuple[Candidate, ...]:
        """What the run was, by its own word, else by NCCL's messages, the columns and last the name of the file."""
        if self.run.name:
            said = named(self.run.name)
            if said:
                return self._said(columns, said, doubts)
            doubts.problem(f"{self.run.name} runs no operation that commsim knows")
            return ()
        found = columns.candidates() or columns.candidates(trusting=False)
        for where, said in (("NCCL's messages", self._messages()), ("the name of the file", named(source))):
            if len(found) > 1 and said in {kind for kind, _ in found}:
                found = tuple(one for one in found if one[0] is said)
                doubts.note(f"the operation is known from {where}")
        if not found and columns.rows:
            doubts.problem("no operation that commsim knows prints such columns")
        if len(found) == 1 and not self.run.ranks and found[0][1]:
            doubts.note(f"{found[0][1]} ranks, by the figures: no list of devices")
        return found

    def _said(self, columns: Columns, said: Collective, doubts: Doubts) -> tuple[Candidate, ...]:
        """The operation by the run's own word; the ranks by its list of devices, else by the figures."""
        found = columns.ranks_of(said)
        if columns.rows and not found:
            doubts.problem(f"the figures are not those of {self.run.name} on {self.run.ranks or '?'} ranks")
        return ((said, found[0] if len(found) == 1 and columns.rows else self.run.ranks),)

    def _messages(self) -> Collective | None:
        return named(next(iter(self.run.ops))) if len(self.run.ops) == 1 else None

    def _doubt(self, rows: list[Row], candidates: tuple[Candidate, ...], doubts: Doubts) -> None:
        """Say everything that makes the rows doubtful."""
        kind, ranks = candidates[0] if len(candidates) == 1 else (None, None)
        doubts.many(self.broken)
        doubts.notes += self.repaired
        doubts.many([said for row in rows for said in contradictions(row, kind, ranks)])
        doubts.many(self.run.failures)
        doubts.many(self._lost(rows))
        wrong = sum(bool(side.wrong) for row in rows for side in (row.out_of_place, row.in_place) if side)
        if wrong or "FAILED" in self.wrong:
            doubts.problem(f"wrong results in {wrong or 'some'} of the figures' rows")
        if self.layout.is_host_time:
            doubts.problem("the times are those of the host (-C): they end when an operation is launched")
        if self.run.groups > 1:
            doubts.note(f"{self.run.groups} groups of {self.run.ranks} ranks act at the same time")
        if any(row.out_of_place is None for row in rows):
            doubts.note("rows without a time out of place: the one in place stands for it")

    def _lost(self, rows: list[Row]) -> list[str]:
        """What the preamble and the footer say of rows that are not here."""
        due, count = self._due(), len(rows)
        if not count:
            return [f"the run ended before its first row ({due} sizes were to come)"] if due else ["no row"]
        said = [f"{count} rows of the {due} sizes that were to be measured"] if due and count != due else []
        if due and not self.is_closed:
            said.append(f"the run ended at {rows[-1].size} B without its closing lines")
        return said + self._off_average()

    def _due(self) -> int | None:
        """How many sizes the preamble announces."""
        settings = self.run.settings
        step = _STEP.fullmatch(settings.get("step", ""))
        if step is None or not settings.keys() >= {"min_bytes", "max_bytes"}:
            return None
        low, high, by = int(settings["min_bytes"]), int(settings["max_bytes"]), int(step[1])
        if step[2] == "bytes":
            return (high - low) // by + 1 if by and low <= high else None
        return math.floor(math.log(high / low, by) + 1e-9) + 1 if by > 1 and 0 < low <= high else None

    def _off_average(self) -> list[str]:
        """Whether the printed average is not that of all rows: then one is missing or misread."""
        sides = [side for rows in self.rows.values() for row in rows for side in (row.out_of_place, row.in_place)]
        found = [side.busbw for side in sides if side and side.busbw is not None]
        if self.average is None or not found:
            return []
        mean = sum(found) / len(found) / 1e9
        if abs(mean - self.average) <= 0.0051 + 1e-4 * self.average:  # rounded to 2 decimals, and printed in 6 digits
            return []
        return [f"the rows' bus bandwidths average {mean:.6g} GB/s, printed {self.average:.6g}: rows lost or misread"]
