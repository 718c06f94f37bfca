"""What does PyTorch's flight recorder say? A pickle or a JSON file for each rank, named by it.

The pickles of strangers can run code when they are loaded by pickle itself. Here they may hold nothing but numbers,
text, lists, tuples and dictionaries.
"""

from __future__ import annotations

import io
import json
import pickle
import re
from typing import TYPE_CHECKING, NoReturn

from commsim.errors import InputError
from commsim.measurement import fields
from commsim.measurement.traces.columns import unpacked
from commsim.measurement.traces.dumps import DumpTrace, Entry, Group

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

MOST = 256 * 2**20
"""Bytes of a dump; the buffer usually holds 2,000 collectives of 0.5 to 5 kB."""
_PICKLE = b"\x80"
_RANK = re.compile(r"(\d+)\D*$")
_MS = 1e-3


class _Plain(pickle.Unpickler):
    """An unpickler that knows no class and calls nothing."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"it asks for {module}.{name}, and a dump has nothing to call")

    def persistent_load(self, pid: object) -> NoReturn:
        raise pickle.UnpicklingError(f"it asks for {pid!r} from elsewhere")


def is_pickle(beginning: bytes) -> bool:
    """Whether a file begins as a pickle does."""
    return beginning[:1] == _PICKLE


def recognises(document: object) -> bool:
    """Whether a value is a dump of the flight recorder."""
    return isinstance(document, dict) and "entries" in document and "pg_config" in document


def load(path: Path) -> object:
    """Return what a dump holds; InputError for one that is cut off, too large, or holds anything that can act."""
    with unpacked(path) as stream:
        content = stream.read(MOST + 1)
    if len(content) > MOST:
        raise InputError(path.name, f"more than {MOST} B", "a dump of the flight recorder is shorter")
    try:
        return _Plain(io.BytesIO(content)).load() if is_pickle(content) else json.loads(content)
    except Exception as error:  # noqa: BLE001 - a damaged pickle may raise anything
        said = " ".join(str(error).split()) or type(error).__name__
        raise InputError(path.name, said, "a whole dump of PyTorch's flight recorder belongs here") from None


def read(paths: Iterable[Path]) -> DumpTrace:
    """Return the dumps of several ranks as one; InputError for two of one rank and for what is no dump."""
    found: dict[int, fields.Entry] = {}
    names, repairs = [], []
    for path in paths:
        document, rank = load(path), rank_of(path.name)
        if not recognises(document):
            raise InputError(
                path.name, type(document).__name__, "entries and pg_config of a flight recorder belong here"
            )
        if rank in found:
            raise InputError(path.name, f"rank {rank} a second time", "one dump of each rank belongs here")
        found[rank] = fields.entry(document, path.name)
        names.append(path.name)
    members = _members(found)
    absent = sorted({one for ranks in members.values() for one in ranks} - found.keys())
    if absent:
        repairs.append(f"no dump of rank {', '.join(map(str, absent))}: judged by the others")
    groups: dict[str, dict[int, Group]] = {}
    for rank, document in sorted(found.items()):
        for name, group in _groups(document, f"rank {rank}").items():
            groups.setdefault(name, {})[rank] = group
    return DumpTrace(groups, members, tuple(sorted(found)), _common(names), tuple(repairs))


def rank_of(name: str) -> int:
    """Return the last number in the name of a file; InputError where there is none."""
    number = _RANK.search(name.split(".", maxsplit=1)[0])
    if number is None:
        raise InputError(
            name, "no rank in the name", "a name that ends in the rank, as in nccl_trace_rank_3, belongs here"
        )
    return int(number[1])


def _common(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def _members(documents: Mapping[int, fields.Entry]) -> dict[str, tuple[int, ...]]:
    """The ranks of each group; gloo names its groups "" there, and "0" elsewhere."""
    found: dict[str, tuple[int, ...]] = {}
    for document in documents.values():
        for key, config in fields.part(document, "pg_config").items():
            ranks = str(fields.part({"of": config}, "of").get("ranks", ""))
            listed = tuple(int(one) for one in re.findall(r"\d+", ranks))
            found[str(key) or "0"] = max(listed, found.get(str(key) or "0", ()), key=len)
    return {name: ranks for name, ranks in found.items() if ranks}


def _groups(document: fields.Entry, where: str) -> dict[str, Group]:
    """The groups of a rank, by the name that entries give them."""
    entries: dict[str, dict[int, Entry]] = {}
    names: dict[str, str] = {}
    for number, given in enumerate(fields.entries(document.get("entries"), where)):
        if given.get("is_p2p"):
            continue
        at = f"{where}: entry {number}"
        name = _name(given.get("process_group"), given.get("pg_id"))
        names[str(given.get("pg_id"))] = name
        entries.setdefault(name, {})[fields.whole(given, "collective_seq_id", at)] = _entry(given, at)
    given_status = fields.part(document, "pg_status").items()
    status = {names.get(str(key), str(key)): fields.entry(one, where) for key, one in given_status}
    found = {}
    for name in dict.fromkeys((*entries, *status)):
        own, told = entries.get(name, {}), status.get(name, {})
        enqueued, completed = (_count(told.get(f"last_{what}_collective")) for what in ("enqueued", "completed"))
        found[name] = Group(own, enqueued, completed)
    return found


def _name(given: object, number: object) -> str:
    """The name of a group: gloo's and NCCL's entries hold (name, description)."""
    return str(given[0]) if isinstance(given, list | tuple) and given else str(number)


def _entry(given: fields.Entry, where: str) -> Entry:
    seconds = given.get("duration_ms")
    return Entry(
        op=fields.text(given, "profiling_name", where),
        sizes=repr(given.get("input_sizes")).replace("(", "[").replace(")", "]"),
        dtypes=repr(given.get("input_dtypes")),
        state=fields.text(given, "state", where, ""),
        seconds=seconds * _MS if fields.is_figure(seconds) else None,
    )


def _count(given: object) -> int:
    """A number of collectives, -1 where there is none; JSON holds them as text."""
    try:
        return int(given) if isinstance(given, int | str) else -1
    except ValueError:
        return -1
