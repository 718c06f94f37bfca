"""Which JSON objects does a text hold: one, a list, one a line, or one after another, the last perhaps cut off?"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NoReturn

from commsim.errors import InputError, reason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commsim.measurement.fields import Entry

_START = re.compile(r"\s*(?:\{|\[\s*\{)")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]', re.DOTALL)
_BLANKS = re.compile(r"[\s,]*")
_PAIRS = {"{": "}", "[": "]"}
_WHOLE_PART = 2  # an object, and a list in it: whatever is closed there is whole


def is_json(beginning: str) -> bool:
    """Whether a text begins as JSON does (and not as a launcher's `[1,0]<stdout>:` does)."""
    return _START.match(beginning.lstrip("\ufeff")) is not None


def documents(text: str, where: str) -> tuple[list[Entry], bool]:
    """Return the objects of a text and whether it ends early; of a cut object everything that was closed is kept.

    InputError for what is no JSON, for NaN and infinity, and for nesting that no benchmark writes.
    """
    found: list[Entry] = []
    plain = text.lstrip("\ufeff")
    at = _gap(plain, 0)
    while at < len(plain):
        try:
            value, end = _DECODER.raw_decode(plain, at)
        except json.JSONDecodeError as error:
            return found + _cut(plain[at:], error, where, is_first=not found), True
        except (ValueError, RecursionError) as error:
            raise InputError(where, reason(error), "plain JSON belongs here") from error
        found += _objects(value, where)
        at = _gap(plain, end)
    return found, False


def _gap(text: str, at: int) -> int:
    """Where the next value begins, behind blanks and commas."""
    found = _BLANKS.match(text, at)
    return found.end() if found else at


def _objects(value: object, where: str) -> Iterator[Entry]:
    for one in value if isinstance(value, list) else [value]:
        if not isinstance(one, dict):
            raise InputError(where, one, "JSON objects belong here")
        yield one


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def _cut(text: str, error: json.JSONDecodeError, where: str, *, is_first: bool) -> list[Entry]:
    """What is whole of an object that ends early: nothing of a later one; InputError when it errs before its end."""
    whole, closers, is_open = _whole_part(text)
    wrong = InputError(f"{where} line {error.lineno}", error.msg, "JSON belongs here")
    if not is_open:
        raise wrong from error
    if not is_first:
        return []
    try:
        value: Any = _DECODER.decode(text[:whole] + closers)
    except (ValueError, RecursionError):
        raise wrong from error
    return list(_objects(value, where))


def _whole_part(text: str) -> tuple[int, str, bool]:
    """How far a text holds whole things, what closes it there, and whether it is open at its end."""
    opened: list[str] = []
    whole, closers = 0, ""
    for token in _TOKEN.finditer(text):
        mark = token[0]
        if mark in _PAIRS:
            opened.append(_PAIRS[mark])
        elif mark in _PAIRS.values():
            if not opened or opened.pop() != mark:
                return whole, closers, False
            if 0 < len(opened) <= _WHOLE_PART:
                whole, closers = token.end(), "".join(reversed(opened))
    return whole, closers, bool(opened)
