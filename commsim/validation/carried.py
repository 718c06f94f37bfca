"""Which measured collectives does commsim carry, with their sources?"""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, Any

from commsim.errors import InputError
from commsim.shipped import folder
from commsim.validation.measured import judged

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from commsim.validation.measured import Measured

_TEXTS = ("id", "group", "health", "health_reason", "op", "dtype", "system", "library", "library_version")
_COUNTS = ("nodes", "gpus_per_node", "ranks")
_SETTINGS = ("algorithm", "protocol", "nvls", "as_stated")
_MICROSECOND = 1e-6


def carried(file: Path | None = None) -> list[Measured]:
    """Return the tables of bench/published/collectives.csv, or of a file like it. InputError for what is none."""
    path = file or folder("bench") / "published" / "collectives.csv"
    with path.open(newline="", encoding="utf-8") as source:
        rows = [*csv.DictReader(source)]
    return [judged(_entry(row, f"{path.name}: {row.get('id')}"), path.name) for row in rows]


def _entry(row: Mapping[str, str], where: str) -> dict[str, Any]:
    """A row of the file as the table that it is short for: blank cells say nothing."""
    try:
        said: dict[str, Any] = {name: row[name] for name in _TEXTS if row[name]} | {"source": row["source"]}
        said |= {name: int(row[name]) for name in _COUNTS if row[name]}
        nics = {"per_node": row["nics_per_node"], "gbit_per_s": row["nic_gbit_per_s"], "fabric": row["fabric"]}
        stated = {name: row[name] for name in _SETTINGS if row[name]}
        times = [_row(cell) for cell in row["us_by_bytes"].split()]
    except (KeyError, ValueError, AttributeError):
        raise InputError(where, dict(row), "a row as bench/published/collectives.csv has them belongs here") from None
    known = {name: value if name == "fabric" else float(value) for name, value in nics.items() if value}
    return {**said, "nics": known or None, "settings": stated, "hardware_as_stated": {"gpu": row["gpu"]}, "rows": times}


def _row(cell: str) -> dict[str, float]:
    """One size: `bytes=us`, or `bytes=us/us` with the time in place behind."""
    size, _, times = cell.partition("=")
    outside, _, inside = times.partition("/")
    found = {"time_s": outside, "in_place_time_s": inside}
    return {"size_bytes": int(size), **{name: float(us) * _MICROSECOND for name, us in found.items() if us}}
