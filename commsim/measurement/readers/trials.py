"""Which bandwidth did each node, or pair of nodes, reach? A CSV with a row a run.

Two columns name the nodes (`node_a`, `node_b`), or one has both, or one alone (`nodes`, as Slurm writes lists:
`n[001,004]`). A third has the bus bandwidth; its name says the unit, GB/s where it does not. Empty means that the run
failed. `test` and the columns `N` and `G` tell runs of different kinds apart.
"""

from __future__ import annotations

import csv
import io
import math
import re
from typing import TYPE_CHECKING

from commsim.errors import InputError
from commsim.measurement.check.screening import Trial
from commsim.measurement.lines import opened

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

NODES = (("node_a", "node_b"), ("a", "b"), ("node1", "node2"), ("src", "dst"))
BUSBW = {
    "busbw_bytes_per_s": 1.0,
    "peak_busbw_gbs": 1e9,
    "busbw_gb_per_s": 1e9,
    "busbw_gbs": 1e9,
    "busbw": 1e9,
    "avg_bus_bw_gbs": 1e9,
}
"""The columns that hold a bus bandwidth, the first that is there, and what one of it is in B/s."""
PAIR = 2
KINDS = {"test": "", "op": "", "n": "N=", "g": "G="}
"""The columns that tell kinds of runs apart, and what is written before each: `alltoall_perf N=2 G=8`."""
_NAME = re.compile(r"[^\[\]]+")
_PART = r"\s*\d{1,9}(?:-\d{1,9})?\s*"
_LIST = re.compile(rf"(?P<stem>[\w.-]*?)\[(?P<inside>{_PART}(?:,{_PART})*)\]")


def read(path: str | Path) -> list[Trial]:
    """Return the runs of a file; InputError where it has no such columns, and for a row that is none."""
    with opened(path) as source:
        try:
            return list(
                _trials(csv.DictReader(io.StringIO(source.text(), newline=None), skipinitialspace=True), source.name)
            )
        except csv.Error as error:
            raise InputError(source.name, str(error), "a CSV with a row a run belongs here") from None


def recognises(beginning: str) -> bool:
    """Tell whether a text begins as a CSV of such runs does."""
    columns = {name.strip().lower() for name in beginning.partition("\n")[0].split(",")}
    return not columns.isdisjoint(BUSBW) and any(columns.issuperset(names) for names in (*NODES, ("nodes",)))


def _trials(rows: csv.DictReader[str], where: str) -> Iterator[Trial]:
    columns = {name.strip().lower(): name for name in rows.fieldnames or () if name}
    speed = _speed(columns, where)
    for number, row in enumerate(rows, 1):
        yield _pair(row, columns, speed, f"{where}: row {number}")


def _speed(columns: Mapping[str, str], where: str) -> str:
    found = next((name for name in BUSBW if name in columns), None)
    if found is None:
        raise InputError(where, ", ".join(columns) or None, f"a column {' or '.join(BUSBW)} belongs here")
    return found


def _pair(row: Mapping[str, str], columns: Mapping[str, str], speed: str, where: str) -> Trial:
    text = (row[columns[speed]] or "").strip()
    kind = " ".join(f"{label}{row[columns[name]] or ''}" for name, label in KINDS.items() if name in columns)
    try:
        value = float(text) * BUSBW[speed] if text else None
    except ValueError:
        raise InputError(f"{where}: {speed}", text, "a number, or nothing where the run failed, belongs here") from None
    if value is not None and not 0 <= value < math.inf:
        raise InputError(f"{where}: {speed}", text, "a finite bandwidth belongs here")
    return Trial(_nodes(row, columns, where), value or None, kind)


def _nodes(row: Mapping[str, str], columns: Mapping[str, str], where: str) -> tuple[str, ...]:
    two = next((both for both in NODES if all(name in columns for name in both)), None)
    listed = row[columns["nodes"]] if "nodes" in columns else ""
    names = [(name or "").strip() for name in ([row[columns[name]] for name in two] if two else expanded(listed))]
    if not 1 <= len(names) <= PAIR or not all(map(_NAME.fullmatch, names)) or len(set(names)) < len(names):
        raise InputError(f"{where}: nodes", " and ".join(names) or None, "the names of one or two nodes belong here")
    return tuple(names)


def expanded(text: str) -> Sequence[str]:
    """Return the hosts of a list as Slurm writes it, `n[001-003,007]`, or separated by commas or blanks."""
    found = _LIST.fullmatch((text or "").strip())
    if found is None:
        return re.split(r"[,;\s]+", (text or "").strip())
    hosts: list[str] = []
    for part in found["inside"].replace(" ", "").split(","):
        first, _, last = part.partition("-")
        hosts += [f"{found['stem']}{number:0{len(first)}d}" for number in _range(first, last or first)]
    return hosts


def _range(first: str, last: str) -> range:
    low, high = int(first), int(last)
    return range(low, min(high, low + 2) + 1)
