"""What went wrong, and for whom?"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class CommsimError(Exception):
    """Anything that commsim refuses to do, said in one line; `exit_code` is what the command line returns."""

    exit_code = 1


class InputError(CommsimError, ValueError):
    """Input that cannot be used: where it stands, what was given, what belongs there."""

    exit_code = 2

    def __init__(self, where: str, given: object, expected: str, *, among: Iterable[str] = ()) -> None:
        """Say `where: given, expected`, and the nearest of the names `among` which one had to choose."""
        self.where, self.given, self.expected = where, given, expected
        super().__init__(f"{where}: {_shown(given)}; {expected}{_nearest(given, list(among))}")


class LackError(CommsimError):
    """This machine lacks something that the work needs (a GPU, root, torch)."""

    exit_code = 3


class PartialError(CommsimError):
    """The work ended early; what was done until then is kept."""

    exit_code = 4


def reason(error: Exception) -> str:
    """What went wrong with a file, in words, without the number and the name that the operating system puts around."""
    if isinstance(error, UnicodeDecodeError):
        return f"no text in UTF-8: byte {error.object[error.start]:#04x} at {error.start}"
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


_LONGEST = 80


def _shown(given: object) -> str:
    """What was given, as a person would recognise it, on one line and never longer than a line; quotes are closed."""
    text = "nothing" if given is None else " ".join(repr(given).split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 4]}...{text[-1]}"


def _nearest(given: object, names: list[str]) -> str:
    """`; did you mean X?` for a near miss, else the names when they are few enough to read."""
    near = difflib.get_close_matches(str(given).lower(), [name.lower() for name in names], n=1, cutoff=0.6)
    if near:
        return f"; did you mean {next(name for name in names if name.lower() == near[0])!r}?"
    few = 20
    return f" (one of: {', '.join(names)})" if 0 < len(names) <= few else ""
