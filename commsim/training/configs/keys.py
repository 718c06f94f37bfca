"""What does a key of somebody's config.json say, and is it a number that a model can have?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from commsim.errors import InputError, reason
from commsim.training.model import MOST

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

LARGEST_FILE = 4_000_000
"""Bytes of JSON that are read at most: a real config.json has a few thousand."""


class Config:
    """A table of a config.json whose keys are asked for by the kind of value that belongs there.

    A key may have several names in the wild; null counts as absent. Whatever does not fit raises InputError with the
    file, the key, what stood there and what belongs there.
    """

    def __init__(self, values: Mapping[str, Any], where: str) -> None:
        """Hold the table `values`; `where` names it in errors."""
        self.values = {key: value for key, value in values.items() if value is not None}
        self.where = where

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def count(self, *names: str, default: int | None = None, least: int = 1, most: int = MOST) -> int:
        """Return the whole number under the first of these names that is there, else the default."""
        name = next((name for name in names if name in self.values), None)
        if name is None:
            if default is not None:
                return default
            raise InputError(self.where, sorted(self.values)[:5], f"a model needs the key {names[0]!r}")
        return self._whole(name, self.values[name], least, most)

    def counts(self, name: str, least: int = 0, length: int | None = None) -> tuple[int, ...]:
        """Return the list of whole numbers under this name, `length` of them at least; empty when it is not there."""
        given = self.values.get(name, [])
        if not isinstance(given, list) or (name in self and length and len(given) < length):
            raise InputError(f"{self.where}: {name}", given, f"a list of {length or 'whole'} numbers belongs here")
        return tuple(self._whole(name, item, least, MOST) for item in given)

    def _whole(self, name: str, given: object, least: int, most: int) -> int:
        if not isinstance(given, int) or isinstance(given, bool) or not least <= given <= most:
            raise InputError(f"{self.where}: {name}", given, f"a whole number from {least} to {most} belongs here")
        return given

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Return the truth value under this name."""
        given = self.values.get(name, default)
        if not isinstance(given, bool):
            raise InputError(f"{self.where}: {name}", given, "true or false belongs here")
        return given

    def text(self, name: str) -> str:
        """Return the text under this name, empty when it is not there."""
        given = self.values.get(name, "")
        if not isinstance(given, str):
            raise InputError(f"{self.where}: {name}", given, "text belongs here")
        return given

    def texts(self, name: str, length: int) -> tuple[str, ...]:
        """Return the list of `length` texts under this name, empty when it is not there."""
        given = self.values.get(name, [])
        if not isinstance(given, list) or not all(isinstance(item, str) for item in given):
            raise InputError(f"{self.where}: {name}", given, "a list of texts belongs here")
        if name in self and len(given) != length:
            raise InputError(f"{self.where}: {name}", f"{len(given)} entries", f"one for each of {length} layers")
        return tuple(given)

    def table(self, name: str) -> Config:
        """Return the table under this name."""
        given = self.values.get(name)
        if not isinstance(given, dict):
            raise InputError(f"{self.where}: {name}", given, "a table belongs here")
        return Config(given, f"{self.where}: {name}")


def read_config(path: Path) -> Config:
    """Return the table that a JSON file holds. InputError when it is absent, too large, no JSON or no table."""
    where = str(path)
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise InputError(where, reason(error), "a readable configuration file belongs here") from None
    if len(content) > LARGEST_FILE:
        raise InputError(where, "a larger file", f"a model's configuration, {LARGEST_FILE} bytes at most")
    try:
        values = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(where, reason(error), "a model's configuration as JSON belongs here") from None
    if not isinstance(values, dict):
        raise InputError(where, values, "a table that describes a model belongs here")
    return Config(values, where)
