"""How is the table by which NCCL chooses shown: ours, or one that NCCL itself printed?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from rich.table import Table

from commsim.cli.output import display, document, number, table
from commsim.libraries.nccl.constants import ALGORITHMS, PROTOCOLS
from commsim.measurement.readers.nccl_debug import tuning_tables
from commsim.tables.records import Record
from commsim.units import BytesPerSecond, Seconds, counted


class Entry(Protocol):
    """What NCCL expects of one algorithm and protocol."""

    @property
    def latency(self) -> Seconds:
        """Before the first byte."""
        ...

    @property
    def algbw(self) -> BytesPerSecond:
        """Once they flow."""
        ...


Entries = Mapping[str, Mapping[str, Entry]]
"""By operation, then by `Ring/LL`."""


def logged(file: str, *, as_json: bool) -> None:
    """Print the tables of a log; InputError for one that has none."""
    tables = tuning_tables(file)
    if as_json:
        return document([{"table": entries_document(one)} for one in tables])
    return display(f"[bold]what NCCL expected[/]: {counted(len(tables), 'table')}", *_each(tables))


def _each(tables: list[Any]) -> Iterator[Table | str]:
    for one in tables:
        yield from ("", entries_shown(one))


def entries_document(entries: Entries) -> Record:
    """Return the table as a program is told it."""
    return {
        op: {pair: {"latency_s": one.latency, "algbw_bytes_per_s": one.algbw} for pair, one in pairs.items()}
        for op, pairs in entries.items()
    }


def entries_shown(entries: Entries) -> Table:
    """Return latency and bandwidth of every way; collectives with the same entries share a column."""
    groups: dict[tuple[tuple[str, Any], ...], list[str]] = {}
    for op, pairs in entries.items():
        groups.setdefault(tuple(pairs.items()), []).append(op)
    listed = table("us, GB/s", *(">" + "\n".join(ops) for ops in groups.values()))
    known = {pair for pairs in groups for pair, _ in pairs}
    for pair in (pair for name in ALGORITHMS for pair in (f"{name}/{one}" for one in PROTOCOLS) if pair in known):
        cells = (dict(pairs).get(pair) for pairs in groups)
        listed.add_row(pair, *(one and f"{number(one.latency * 1e6)}, {number(one.algbw / 1e9)}" for one in cells))
    return listed
