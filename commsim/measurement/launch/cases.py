"""Which operation is to be measured, how large, by whom, and under what conditions?

A file of cases is a JSON list of objects with the keys of `Case.document`; whoever starts ranks writes it, every rank
reads it, and the cases are run in its order.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from commsim.collectives.kinds import COLLECTIVES, collective
from commsim.errors import InputError
from commsim.measurement.dtypes import ITEM_BYTES, dtype
from commsim.measurement.fields import entries, is_figure, text, whole

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from commsim.measurement.fields import Entry
    from commsim.units import Seconds

BARRIER = "barrier"
OPS = (*COLLECTIVES, BARRIER)
_LONGEST = 10**6
Groups = tuple[tuple[int, ...], ...]
Matrix = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Case:
    """One operation of one size, measured so many times.

    `size` counts as nccl-tests counts (see `commsim.collectives.kinds`). `groups` are disjoint groups of equal size
    that all act at once; none means one group of all. `in_place` is as torch has the operation where it is None.
    `matmul` is the dimension of square products that each rank multiplies meanwhile (0: none). `matrix` says what each
    rank of an all-to-all sends to each, in bytes. `late` ranks sleep so long before every iteration; `jitter` is a law
    of `commsim.stragglers.laws` from which every rank draws a delay for every iteration: `{"law", "parameters",
    "seed", "how": "sleep" | "spin"}`. `wait_for` is a token: nothing begins before the file OUT.TOKEN is there.
    """

    op: str
    size: int = 0
    dtype: str = "float"
    groups: Groups = ()
    iterations: int = 20
    warmup: int = 5
    in_place: bool | None = None
    matmul: int = 0
    graph: bool = False
    matrix: Matrix = ()
    late: Mapping[int, Seconds] = field(default_factory=dict)
    jitter: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""
    wait_for: str = ""

    @property
    def digest(self) -> str:
        """What tells this case from every other one: 16 hexadecimal digits."""
        return hashlib.sha256(json.dumps(self.document, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def document(self) -> dict[str, Any]:
        """This as an object of JSON, without what is as it is by default."""
        written: dict[str, Any] = {
            "op": self.op,
            "size_bytes": self.size,
            "dtype": self.dtype,
            "iterations": self.iterations,
            "warmup": self.warmup,
        }
        optional = {
            "group": [list(one) for one in self.groups],
            "matmul": self.matmul,
            "graph": self.graph,
            "matrix": [list(row) for row in self.matrix],
            "late": {str(rank): seconds for rank, seconds in self.late.items()},
            "jitter": dict(self.jitter),
            "label": self.label,
            "wait_for": self.wait_for,
        }
        placed = {} if self.in_place is None else {"in_place": self.in_place}
        return written | placed | {key: value for key, value in optional.items() if value}

    @property
    def conditions(self) -> dict[str, Any]:
        """What sets the figures of this case apart from those of the bare operation."""
        return {key: value for key, value in self.document.items() if key in CONDITIONS}


CONDITIONS = ("group", "matmul", "graph", "matrix", "late", "jitter", "label")
"""Keys of a case that set its figures apart."""
KEYS = (*Case("barrier").document, "in_place", *CONDITIONS, "wait_for")
"""Every key that a case may have."""


def read_cases(path: Path) -> list[Case]:
    """Return the cases of a file; InputError says which case, which key, and what belongs there."""
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError("file of cases", path.name, f"a JSON list of cases belongs here ({error})") from None
    found = [_case(one, f"{path.name}: case {number}") for number, one in enumerate(entries(given, path.name), 1)]
    if not found:
        raise InputError(path.name, given, "at least one case belongs here")
    return found


def write_cases(cases: list[Case], path: Path) -> None:
    """Write a file of cases."""
    path.write_text(json.dumps([case.document for case in cases], indent=1), encoding="utf-8")


def _case(of: Entry, where: str) -> Case:
    for key in of:
        if key not in KEYS:
            raise InputError(where, key, "no such key", among=KEYS)
    matrix = _grid(of.get("matrix"), f"{where}: matrix")
    return Case(
        op=operation(text(of, "op", where)),
        size=whole(of, "size_bytes", where) if "size_bytes" in of else max(map(sum, matrix), default=0),
        dtype=element(text(of, "dtype", where, "float"), f"{where}: dtype"),
        groups=_groups(of.get("group"), f"{where}: group"),
        iterations=_times(of, "iterations", where, Case.iterations, least=1),
        warmup=_times(of, "warmup", where, Case.warmup, least=0),
        in_place=_switch(of, "in_place", where),
        matmul=whole(of, "matmul", where) if "matmul" in of else 0,
        graph=bool(_switch(of, "graph", where)),
        matrix=matrix,
        late=_late(of.get("late") or {}, f"{where}: late"),
        jitter=dict(of.get("jitter") or {}),
        label=text(of, "label", where, ""),
        wait_for=_token(text(of, "wait_for", where, ""), where),
    )


def operation(name: str) -> str:
    """Return the name of an operation that can be measured, by that name or an alias; InputError."""
    return BARRIER if name == BARRIER else collective(name).name


def element(name: str, where: str) -> str:
    """Return what nccl-tests calls a type of elements; InputError."""
    found = dtype(name)
    if found not in ITEM_BYTES:
        raise InputError(where, name, "no such type of elements", among=ITEM_BYTES)
    return found


def _times(of: Entry, key: str, where: str, default: int, *, least: int) -> int:
    found = whole(of, key, where) if key in of else default
    if not least <= found <= _LONGEST:
        raise InputError(f"{where}: {key}", found, f"a number from {least} to {_LONGEST} belongs here")
    return found


def _switch(of: Entry, key: str, where: str) -> bool | None:
    given = of.get(key)
    if given is not None and not isinstance(given, bool):
        raise InputError(f"{where}: {key}", given, "true or false belongs here")
    return given


def _grid(given: object, where: str) -> Matrix:
    """Bytes from each rank to each; as many columns as rows."""
    rows = _listed(given)
    if not all(isinstance(row, list) and len(row) == len(rows) for row in rows):
        raise InputError(where, given, "as many rows of as many whole numbers of bytes belong here")
    return tuple(tuple(whole({"bytes": one}, "bytes", where) for one in row) for row in rows)


def _groups(given: object, where: str) -> Groups:
    """One list of ranks, or several such lists that share no rank and are equally long."""
    listed = _listed(given)
    groups = listed if all(isinstance(one, list) for one in listed) else [listed]
    ranks = [rank for group in groups for rank in group]
    if not all(is_figure(rank) and isinstance(rank, int) for rank in ranks):
        raise InputError(where, given, "a list of ranks, or several such lists, belong here")
    if len(set(ranks)) != len(ranks) or len({len(group) for group in groups}) > 1:
        raise InputError(where, given, "groups that act at once are equally large and share no rank")
    return tuple(tuple(group) for group in groups if group)


def _listed(given: object) -> list[Any]:
    """A list as it is, nothing as an empty one, anything else as a list of itself."""
    return given if isinstance(given, list) else [] if given is None else [given]


def _late(given: object, where: str) -> dict[int, Seconds]:
    if not isinstance(given, dict):
        raise InputError(where, given, 'seconds by rank, such as {"3": 0.05}, belong here')
    for rank, seconds in given.items():
        if not str(rank).isdecimal() or not is_figure(seconds):
            raise InputError(where, {rank: seconds}, 'seconds by rank, such as {"3": 0.05}, belong here')
    return {int(rank): float(seconds) for rank, seconds in given.items()}


def _token(given: str, where: str) -> str:
    if given and not given.replace("-", "").replace("_", "").isalnum():
        raise InputError(f"{where}: wait_for", given, "letters, digits, - and _ belong here")
    return given
