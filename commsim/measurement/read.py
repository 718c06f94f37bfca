"""Which measurements does a file hold, whichever tool wrote it?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from commsim.collectives.kinds import collective
from commsim.errors import InputError
from commsim.measurement.lines import opened
from commsim.measurement.readers import (
    collectives,
    ds_bench,
    inspector,
    json_lines,
    nccl_tests_json,
    osu,
    param,
    torch_bench,
    trials,
)
from commsim.measurement.readers.documents import documents, is_json
from commsim.measurement.readers.nccl_tests.read import Reader as NcclTests

if TYPE_CHECKING:
    from pathlib import Path

    from commsim.measurement.lines import Source
    from commsim.measurement.records import Measurement

JSON_FORMATS = {
    "our JSON lines": json_lines,
    "nccl-tests JSON": nccl_tests_json,
    "NCCL Inspector": inspector,
    "a published table": collectives,
}
TEXT_FORMATS = ("nccl-tests", "PARAM", "ds_bench", "all_reduce_bench.py", "OSU")


class TextReader(Protocol):
    """What reads one tool's tables from a log that may hold anything else besides."""

    def line(self, number: int, text: str) -> None:
        """Read a line."""

    def measurements(self, source: str) -> list[Measurement]:
        """Return what was read; nothing when the log holds no table of this tool."""


def measurements(path: str | Path, *, op: str | None = None, ranks: int | None = None) -> list[Measurement]:
    """Return every table of a file, or of standard input for `-`, in its order.

    `op` and `ranks` say what a table leaves open, and must not contradict it. InputError when the file holds no table
    of a known tool, when its figures are placeholders, and for a file that is too large.
    """
    kind = None if op is None else collective(op)
    if ranks is not None and ranks < 1:
        raise InputError("ranks", ranks, "at least one rank belongs here")
    with opened(path) as source:
        read = _json if is_json(source.beginning) else _text
        found = read(source, ranks)
        is_screening = trials.recognises(source.beginning)
    if not found and is_screening:
        raise InputError(source.name, "runs of nodes and pairs", "`commsim check --pairs` screens them")
    if not found:
        known = ", ".join((*TEXT_FORMATS, *JSON_FORMATS))
        raise InputError(source.name, "no table", f"measurements of {known} belong here")
    return [one.narrowed(kind, ranks) for one in found]


def _text(source: Source, ranks: int | None) -> list[Measurement]:
    """Let every reader see every line: one log may hold tables of several tools."""
    readers: list[TextReader] = [NcclTests(), param.Reader(), ds_bench.Reader(), torch_bench.Reader()]
    readers.append(osu.Reader(ranks))
    for number, line in enumerate(source.lines(), 1):
        for reader in readers:
            reader.line(number, line)
    return [one for reader in readers for one in reader.measurements(source.name)]


def _json(source: Source, _: int | None) -> list[Measurement]:
    """Give each object to the format that recognises it; InputError for one that none does."""
    found, is_cut = documents(source.text(), source.name)
    owners = [next((name for name, room in JSON_FORMATS.items() if room.recognises(one)), None) for one in found]
    if None in owners:
        keys = ", ".join(sorted(map(str, found[owners.index(None)]))[:8])
        raise InputError(
            source.name, f"an object with the keys {keys}", f"one of {', '.join(JSON_FORMATS)} belongs here"
        )
    return [
        one
        for name, room in JSON_FORMATS.items()
        for one in room.read([each for each, owner in zip(found, owners) if owner == name], source.name, is_cut=is_cut)
    ]
