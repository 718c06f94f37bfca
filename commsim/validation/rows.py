"""Which rows does a table of results hold: each whole, named, and read as the fields of a dataclass?"""

from __future__ import annotations

import csv
from dataclasses import MISSING, dataclass, fields
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from commsim.errors import InputError, reason
from commsim.validation.cells import values

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

T = TypeVar("T")
MOST_ROWS = 100_000
"""Rows that are read at most: whoever writes more made a mistake."""


@dataclass(frozen=True)
class Skipped:
    """A row that is not compared, and why."""

    row_id: str
    reason: str


def read_rows(path: Path, kind: type[T], *, blank: bool = False) -> list[T]:
    """Return the rows of a table as values of a dataclass, which has a `row_id`; `blank` cells are as in `values`.

    InputError when it is no such table, for a row without a name of its own, for a cell that cannot be read.
    """
    rows = rows_of(path)
    _check_columns(path, kind, list(rows[0]) if rows else [])
    for number, row in enumerate(rows, start=2):
        _check_cells(f"{path}: line {number}", row)
    _check_names(path, [row["row_id"].strip() for row in rows])
    return [kind(**values(kind, f"{path}: {row['row_id'].strip()}", row, blank=blank)) for row in rows]


def rows_of(path: Path) -> list[dict[str, str]]:
    """Return the rows of a table, text by column. InputError for what is no table, or is too long."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(islice(csv.DictReader(file), MOST_ROWS + 1))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(str(path), reason(error), "a readable CSV file belongs here") from None
    if len(rows) > MOST_ROWS:
        raise InputError(str(path), f"more than {MOST_ROWS} rows", f"at most {MOST_ROWS} results are read")
    return rows


def _check_columns(path: Path, kind: Any, columns: list[str]) -> None:  # noqa: ANN401 - a dataclass
    missing = [item.name for item in fields(kind) if item.default is MISSING and item.name not in columns]
    if missing:
        expected = f"{'columns are' if missing[1:] else 'a column is'} missing: {', '.join(missing)}"
        raise InputError(str(path), columns or None, expected)


def _check_cells(where: str, row: Mapping[Any, Any]) -> None:
    if None in row or None in row.values():
        raise InputError(where, list(row.values()), "as many cells as columns belong here")


def _check_names(path: Path, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if not name or name in seen:
            raise InputError(f"{path}: row_id", name, "a name of its own belongs in every row")
        seen.add(name)
