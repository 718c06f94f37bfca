"""Which trace does a file hold, or a file for each rank, whichever tool wrote it?"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from commsim.errors import InputError
from commsim.measurement.readers.documents import is_json
from commsim.measurement.traces import columns as table
from commsim.measurement.traces import flight_recorder, inspector, kineto, npz, operations, plain, summary

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from commsim.measurement.traces.calls import CallTrace
    from commsim.measurement.traces.dumps import DumpTrace
    from commsim.measurement.traces.events import EventTrace
    from commsim.measurement.traces.steps import StepTrace

    Trace = StepTrace | EventTrace | CallTrace | DumpTrace

FORMATS = (
    "npz of operations",
    "CSV or Parquet of operations (StragglerAnalysis)",
    "CSV or JSON lines of rank, step, op, start, duration",
    "Kineto",
    "PyTorch flight recorder",
    "NCCL Inspector",
    "TraceLens summary",
)
_ARCHIVE = b"PK"
_BEGINNING = 2**16


def trace(given: Iterable[str | Path]) -> Trace:
    """Return what files hold: one of any format, or one for each rank; a folder or a beginning of names stands for all.

    InputError for files of several formats, of none, or that cannot be read.
    """
    paths = _found([Path(one) for one in given])
    source = paths[0].name if len(paths) == 1 else f"{paths[0].name} and {len(paths) - 1} more"
    formats = {_format(path) for path in paths}
    if len(formats) > 1:
        raise InputError("trace", " and ".join(sorted(formats)), "files of one format belong together")
    return _read(formats.pop(), paths, source)


def _read(name: str, paths: Sequence[Path], source: str) -> Trace:
    together = {"Kineto": kineto.read, "NCCL Inspector": inspector.read, "plain": plain.read, "summary": summary.read}
    if name in together:
        return together[name](paths, source)
    if name == "PyTorch flight recorder":
        return flight_recorder.read(paths)
    if len(paths) > 1:
        raise InputError("trace", f"{len(paths)} files", "one file holds all the ranks in this format")
    return npz.read(paths[0]) if name == "npz" else operations.read(paths[0])


def _found(given: Sequence[Path]) -> list[Path]:
    """The files that are meant: themselves, those of a folder, or those whose names begin so (as dumps are named)."""
    if not given:
        raise InputError("trace", [], "a file, or one for each rank, belongs here")
    paths: list[Path] = []
    for one in given:
        if os.path.isdir(one):  # noqa: PTH112 - it answers for impossible names as well
            inside = sorted(path for path in one.iterdir() if path.is_file() and not path.name.startswith("."))
            if not inside:
                raise InputError("trace", str(one), "no file lies in this folder")
        elif os.path.isfile(one):  # noqa: PTH113 - as above
            inside = [one]
        else:
            begin = [path for path in one.parent.glob(f"{_plain(one.name)}*") if path.is_file()] if one.name else []
            inside = sorted(begin)
        if not inside:
            raise InputError("trace", str(one), "a file, a folder, or the beginning of names of files belongs here")
        paths += inside
    return _once(paths)


def _plain(name: str) -> str:
    """A name in which no letter stands for others."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)


def _once(paths: Sequence[Path]) -> list[Path]:
    """Each dump once, where it is there as a pickle and as JSON."""
    found: dict[Path, Path] = {}
    for path in paths:
        twin = path.with_suffix("") if path.suffix in {".pkl", ".pickle", ".json"} else path
        found.setdefault(twin if twin.with_suffix(".pkl").is_file() else path, path)
    return list(found.values())


def _format(path: Path) -> str:
    """The format of a file by what it holds, whatever its name; InputError for none that is known."""
    beginning = table.beginning(path, _BEGINNING)
    if beginning.startswith(_ARCHIVE):
        return "npz"
    if flight_recorder.is_pickle(beginning):
        return "PyTorch flight recorder"
    if table.is_parquet(path):
        return "operations"
    text = beginning.decode("utf-8", errors="replace")
    if is_json(text):
        return _json(text, path)
    names = table.header(path)
    if {"dp_rank", "optype"} <= set(names):
        return "operations"
    for name, room in (("summary", summary), ("plain", plain)):
        if room.recognises(names):
            return name
    raise InputError(path.name, text[:60], f"one of {'; '.join(FORMATS)} belongs here")


def _json(text: str, path: Path) -> str:
    if inspector.recognises(text):
        return "NCCL Inspector"
    if kineto.recognises(text):
        return "Kineto"
    if '"rank"' in text and '"op"' in text and '"duration"' in text:
        return "plain"
    if '"entries"' in text or '"pg_config"' in text or '"pg_status"' in text:
        return "PyTorch flight recorder"
    raise InputError(path.name, text[:60], f"JSON of {', '.join(FORMATS[3:6])} belongs here")
