"""What does a key of somebody's trainer configuration say?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from commsim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

_TRUE, _FALSE = {"true", "yes", "on", "1"}, {"false", "no", "off", "0", "none", "null"}
MOST = 10**9


class Options:
    """A table of a trainer's options, asked for by the kind of value that belongs there.

    An option may be absent, null or the text "auto": all mean that its trainer chooses.
    """

    def __init__(self, values: Mapping[str, Any], where: str) -> None:
        """Hold the options; `where` names the file in errors."""
        self.values = {key: value for key, value in values.items() if value is not None and value != "auto"}
        self.where = where

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def count(self, name: str, default: int = 0, least: int = 0) -> int:
        """Return the whole number of that name; InputError for another value."""
        given = self.values.get(name)
        if given is None:
            return default
        number = int(given) if isinstance(given, str) and given.strip().isdecimal() else given
        if not isinstance(number, int) or isinstance(number, bool) or not least <= number <= MOST:
            raise InputError(f"{self.where}: {name}", given, f"a whole number of at least {least} belongs here")
        return number

    def counts(self, *names: str) -> tuple[int | None, ...]:
        """Return the whole numbers of these names, None for each that is absent; InputError for other values."""
        return tuple(self.count(name) if name in self else None for name in names)

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Return the truth value of that name; a flag without a value is true. InputError for another value."""
        given = self.values.get(name)
        if given is None:
            return default
        word = str(given).strip().lower()
        if isinstance(given, bool) or word in _TRUE | _FALSE:
            return word in _TRUE
        raise InputError(f"{self.where}: {name}", given, "true or false belongs here")

    def text(self, name: str, among: Iterable[str] = ()) -> str:
        """Return the text of that name, "" when it is absent; InputError when it is none of `among`."""
        given = self.values.get(name)
        word = "" if given is None else str(given).strip().lower()
        choices = tuple(among)
        if word and choices and word not in choices:
            raise InputError(f"{self.where}: {name}", given, "no such choice", among=choices)
        return word

    def inside(self, name: str) -> Options:
        """Return the options of the table of that name, none when it is absent; InputError for what is no table."""
        given = self.values.get(name)
        if not isinstance(given or {}, Mapping):
            raise InputError(f"{self.where}: {name}", given, "a table belongs here")
        return Options(given or {}, f"{self.where}: {name}")

    def words(self, name: str) -> tuple[str, ...]:
        """Return the words of a list, written as a list or as one text `[a b]` or `a,b`."""
        given = self.values.get(name)
        text = " ".join(map(str, given)) if isinstance(given, list) else str(given or "")
        return tuple(text.strip().strip("[]").replace(",", " ").replace("'", "").replace('"', "").split())
