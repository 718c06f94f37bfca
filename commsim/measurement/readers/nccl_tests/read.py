"""How is an nccl-tests log read, line by line, whoever launched it and whatever else was printed between?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from commsim.errors import InputError
from commsim.measurement.readers.nccl_tests.lines import ROW, figures, kind_of, untagged
from commsim.measurement.readers.nccl_tests.rows import Layout, OpenRow
from commsim.measurement.readers.nccl_tests.run import Run
from commsim.measurement.readers.nccl_tests.table import Table

if TYPE_CHECKING:
    import re

    from commsim.measurement.records import Measurement

_PREAMBLE = ("tool", "name", "header")
_LONGEST_NUMBER = 18


@dataclass
class Stream:
    """What one process printed: runs one after another, each with its tables."""

    run: Run = field(default_factory=Run)
    tables: list[Table] = field(default_factory=list)
    _seen: set[str] = field(default_factory=set)

    def take(self, number: int, text: str) -> None:
        """Read one line without its tag."""
        row = None if text.lstrip().startswith("#") else ROW.search(text)
        if row:
            self._row(number, row)
        elif found := kind_of(text):
            self._line(*found)
        elif self.tables:
            self._more(text)

    def _row(self, number: int, found: re.Match[str]) -> None:
        table = self._table()
        size, count = found[1], found[2]
        if max(len(size), len(count)) > _LONGEST_NUMBER:
            table.broken.append(f"line {number}: a size of {len(size)} digits")
            return
        row = OpenRow(number, (int(size), int(count), found[3], found[4] or ""), table.layout)
        row.take(figures(found[5]))
        table.start(row)

    def _more(self, text: str) -> None:
        """Give a line of nothing but figures to the row that waits for them."""
        row = self.tables[-1].open_row
        more = figures(" " + text) if row else None
        if row and more and more.is_whole_line:
            row.take(more)
            if row.is_full:
                self.tables[-1].finish()

    def _line(self, kind: str, found: re.Match[str]) -> None:
        if kind in _PREAMBLE:
            self._begin(kind)
        if kind == "heading":
            self._finish()
            self.tables.append(Table(self.run, Layout.of(found[1])))
        elif kind in {"wrong", "average", "end"}:
            self._footer(kind, found)
        else:
            self.run.take(kind, found)

    def _begin(self, kind: str) -> None:
        """Start a new run where a preamble comes again, or comes after a table."""
        if kind in self._seen or any(table.run is self.run for table in self.tables):
            self._finish()
            self.run, self._seen = Run(), set()
        self._seen.add(kind)

    def _footer(self, kind: str, found: re.Match[str]) -> None:
        self._finish()
        if not self.tables:
            return
        table = self.tables[-1]
        table.is_closed = True
        if kind == "wrong":
            table.wrong = found[2] or ""
        elif kind == "average":
            table.average = _number(found[1])

    def _table(self) -> Table:
        """The table that a row belongs to; a log without a heading has one all the same."""
        if not self.tables or self.tables[-1].is_closed:
            self.tables.append(Table(self.run, self.tables[-1].layout if self.tables else Layout()))
        return self.tables[-1]

    def _finish(self) -> None:
        if self.tables:
            self.tables[-1].finish()


class Reader:
    """Reads a log of nccl-tests or rccl-tests; of several processes' tables it keeps those of the lowest rank."""

    def __init__(self) -> None:
        """Begin with nothing read."""
        self._streams: dict[int | None, Stream] = {}

    def line(self, number: int, text: str) -> None:
        """Read a line."""
        rank, plain = untagged(text)
        self._streams.setdefault(rank, Stream()).take(number, plain)

    def measurements(self, source: str) -> list[Measurement]:
        """Return what was read; InputError when the rows of all tables hold no figures (placeholders)."""
        ranked = sorted((rank, one) for rank, one in self._streams.items() if rank is not None and one.tables)
        chosen = [self._streams[None]] if None in self._streams else []
        tables = [table for stream in chosen + [one for _, one in ranked[:1]] for table in stream.tables]
        failures = [said for rank, one in self._streams.items() for said in one.run.failures]
        found = [one for table in tables for one in self._with_failures(table, failures).measurements(source)]
        unread = [said for table in tables for said in table.broken]
        if unread and not any(one.rows for one in found):
            raise InputError(source, unread[0], "measured times belong there: no row of this table has any")
        return found

    def _with_failures(self, table: Table, failures: list[str]) -> Table:
        """The last run of all gets what other ranks' streams say about its end."""
        if table.run.failures or not failures:
            return table
        if not table.is_closed:
            table.run.failures += failures
        return table


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
