"""What do the cells of a row of results say, as the fields of a dataclass?"""

from __future__ import annotations

import math
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any

from commsim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MOST = 10**9
"""The largest whole number that is read: whoever writes more made a mistake."""


def values(kind: type, where: str, row: Mapping[str, str], *, blank: bool = False) -> dict[str, Any]:
    """Return the fields of a dataclass that a row says, read by their annotations.

    What is blank keeps its default, unless the `blank` ones are asked for; a number is then 0, or None where that is
    allowed, as one without a default is. InputError for a cell that is no such value.
    """
    found: dict[str, Any] = {}
    for item in fields(kind):
        text = row.get(item.name, "").strip()
        name, _, optional = str(item.type).partition(" | ")
        if text or blank or item.default is MISSING:
            value = _READ[name](f"{where}: {item.name}", text)
            found[item.name] = 0 if value is None and not optional else value
    return found


def _whole(where: str, text: str) -> int | None:
    number = _number(where, text)
    if number is not None and (number != int(number) or number > MOST):
        raise InputError(where, text, f"a whole number, {MOST} at most, belongs here")
    return None if number is None else int(number)


def _number(where: str, text: str) -> float | None:
    if not text:
        return None
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise InputError(where, text, "a number that is finite and not negative belongs here")
    return number


def _flag(where: str, text: str) -> bool | None:
    if text not in {"", "0", "1"}:
        raise InputError(where, text, "1, 0 or nothing belongs here")
    return None if not text else text == "1"


def _text(_: str, text: str) -> str:
    return text


_READ: Mapping[str, Callable[[str, str], Any]] = {"int": _whole, "float": _number, "bool": _flag, "str": _text}
