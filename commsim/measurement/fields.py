"""Which value does an entry of somebody's JSON hold? Checked as it is taken, so that nothing is misread in silence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

from commsim.errors import InputError

Entry = Mapping[str, Any]
_MOST = 10**18


def entry(given: object, where: str) -> Entry:
    """Return an object of JSON; InputError for anything else."""
    if not isinstance(given, Mapping):
        raise InputError(where, given, "a JSON object belongs here")
    return given


def entries(given: object, where: str) -> list[Entry]:
    """Return a list of objects of JSON; an absent one is empty."""
    if given is None:
        return []
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise InputError(where, given, "a list of JSON objects belongs here")
    return [entry(one, where) for one in given]


def is_figure(given: object) -> TypeGuard[float]:
    """Whether a value is a finite number >= 0 (and no boolean, which Python counts as one)."""
    return isinstance(given, int | float) and not isinstance(given, bool) and 0 <= given <= _MOST


def number(of: Entry, key: str, where: str) -> float:
    """Return a finite number >= 0 under a key; InputError for anything else."""
    given = of.get(key)
    if not is_figure(given):
        raise InputError(f"{where}: {key}", given, "a finite number >= 0 belongs here")
    return float(given)


def whole(of: Entry, key: str, where: str) -> int:
    """Return a whole number >= 0 under a key; InputError for anything else."""
    found = number(of, key, where)
    if not found.is_integer():
        raise InputError(f"{where}: {key}", of.get(key), "a whole number belongs here")
    return int(of[key])


def ranks(of: Entry, key: str, where: str) -> int:
    """Return a number of ranks under a key; InputError for anything else."""
    found = whole(of, key, where)
    if not found:
        raise InputError(f"{where}: {key}", found, "at least one rank belongs here")
    return found


def text(of: Entry, key: str, where: str, default: str | None = None) -> str:
    """Return a text under a key, or the default where there is none; InputError for anything else."""
    given = of.get(key)
    if given is None and default is not None:
        return default
    if not isinstance(given, str):
        raise InputError(f"{where}: {key}", given, "a text belongs here")
    return given


def texts(of: Entry, key: str) -> list[str]:
    """Return the texts of a list under a key, nothing else that stands there."""
    given = of.get(key)
    return [one for one in given if isinstance(one, str)] if isinstance(given, list) else []


def part(of: Entry, key: str) -> Entry:
    """Return an object under a key, an empty one where there is none."""
    given = of.get(key)
    return given if isinstance(given, Mapping) else {}


def samples(given: object, where: str) -> tuple[tuple[float, ...], ...]:
    """Return seconds by [rank][iteration]; every rank has as many iterations."""
    if not isinstance(given, list) or not given or not all(isinstance(rank, list) and rank for rank in given):
        raise InputError(where, given, "seconds by [rank][iteration] belong here")
    found = tuple(tuple(number({"s": one}, "s", where) for one in rank) for rank in given)
    if len({len(rank) for rank in found}) > 1:
        raise InputError(where, [len(rank) for rank in found], "every rank has as many iterations")
    return found
