"""Which tables of collectives were measured, and what do those who published them say about each run?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from commsim.errors import InputError
from commsim.measurement import fields
from commsim.measurement.lines import opened
from commsim.measurement.read import measurements
from commsim.measurement.readers import collectives
from commsim.measurement.readers.documents import documents, is_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from commsim.measurement.fields import Entry
    from commsim.measurement.records import Measurement

HEALTHY = "healthy"
HEALTHS = (HEALTHY, "degraded", "unknown")


@dataclass(frozen=True)
class Measured:
    """A measured table under its name, with the cluster that it belongs to and what its publisher says of the run.

    Only what is done with the comparison depends on `group`, `health` and `reason`; no prediction sees them.
    """

    id: str
    measurement: Measurement
    group: str
    health: str = HEALTHY
    reason: str = ""


@dataclass(frozen=True)
class Skipped:
    """A table, or a file of them, that is not compared, and why."""

    id: str
    reason: str


def read_measured(paths: Iterable[Path | str]) -> tuple[list[Measured], list[Skipped]]:
    """Return every table of files, and of the JSON files in folders, and which files hold none, with the reason.

    InputError when there is no table at all. A file that says nothing of its run is taken for a healthy one of a
    cluster of its own.
    """
    tables: list[Measured] = []
    skipped: list[Skipped] = []
    first: InputError | None = None
    for file in (file for path in paths for file in _files(Path(path))):
        try:
            tables += _tables(file)
        except InputError as error:
            first = first or error
            skipped.append(Skipped(file.stem, str(error)))
    if not tables:
        raise first or InputError("measurements", None, "at least one file with a measured table belongs here")
    return tables, skipped


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    found = sorted((*path.glob("*.json"), *path.glob("*.jsonl")))
    if not found:
        raise InputError("measurements", str(path), "a folder with .json files belongs here")
    return found


def _tables(path: Path) -> list[Measured]:
    """Every table of a file; a name is that of the file where the table has none."""
    published = _published(path)
    if published:
        return [
            judged(one, path.stem if len(published) == 1 else f"{path.stem}-{number}")
            for number, one in enumerate(published, 1)
        ]
    found = measurements(path)
    return [
        Measured(path.stem if len(found) == 1 else f"{path.stem}-{number}", one, path.stem)
        for number, one in enumerate(found, 1)
    ]


def _published(path: Path) -> list[Entry]:
    """The published tables of a file; nothing when it is of another format. Standard input is read but once: none."""
    if str(path) == "-":
        return []
    with opened(path) as source:
        if not is_json(source.beginning):
            return []
        found, is_cut = documents(source.text(), source.name)
    return [] if is_cut or not all(collectives.recognises(one) for one in found) else found


def judged(of: Entry, where: str) -> Measured:
    """Return a published table with what its publisher says of it. InputError for what is no such table."""
    (table,) = collectives.read([of], where, is_cut=False)
    name = fields.text(of, "id", where, where)
    health = fields.text(of, "health", where, HEALTHY)
    if health not in HEALTHS:
        raise InputError(f"{where}: health", health, "no such state", among=HEALTHS)
    return Measured(
        name, table, fields.text(of, "group", where, name), health, fields.text(of, "health_reason", where, "")
    )
