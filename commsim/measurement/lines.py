"""What does a file, or standard input, hold? Its lines as they come, never more of them than a machine can bear."""

from __future__ import annotations

import re
import sys
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING

from commsim.errors import InputError, reason

if TYPE_CHECKING:
    from collections.abc import Iterator

LARGEST, LARGEST_DOCUMENT, LONGEST_LINE = 256 * 2**20, 64 * 2**20, 2**16
"""Bytes of a log, of a JSON text, and of one line of a log."""
_CHUNK = LONGEST_LINE
_OTHERS = {
    b"\x1f\x8b": ("packed by gzip", "unpack it first, as in `zcat FILE | commsim check -`"),
    b"PK\x03\x04": ("packed by zip", "unpack it first"),
    b"\xff\xfe": ("text in UTF-16", "text in UTF-8 belongs here, as `iconv -f UTF-16 -t UTF-8` makes it"),
    b"\xfe\xff": ("text in UTF-16", "text in UTF-8 belongs here, as `iconv -f UTF-16 -t UTF-8` makes it"),
}
"""What is no log, by its first bytes: what it is, and what to do."""
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
"""What terminals and log viewers put around words."""


class Source:
    """A log or a JSON text that is read once, from its beginning; `name` stands in messages and holds no folder."""

    def __init__(self, stream: IO[bytes], name: str) -> None:
        """Read the beginning; InputError for what is packed, and for text that is not in UTF-8."""
        self.name = name
        self._stream = stream
        self._beginning = stream.read(_CHUNK)
        for first, (given, expected) in _OTHERS.items():
            if self._beginning.startswith(first):
                raise InputError(name, given, expected)

    @property
    def beginning(self) -> str:
        """Return the first characters."""
        return self._beginning.decode("utf-8", errors="replace")

    def lines(self) -> Iterator[str]:
        """Yield the lines without their ends and their colours; InputError for a line or a log that is too long."""
        left = b""
        for chunk in self._chunks(LARGEST):
            *whole, left = (left + chunk).split(b"\n")
            yield from map(self._line, whole)
            self._line(left)
        if left:
            yield self._line(left)

    def _line(self, line: bytes) -> str:
        if len(line) > LONGEST_LINE:
            raise InputError(
                self.name, f"a line of more than {LONGEST_LINE} B", "a log with shorter lines belongs here"
            )
        text = line.decode("utf-8", errors="replace").rstrip("\r")
        return _COLOUR.sub("", text) if "\x1b" in text else text

    def text(self) -> str:
        """Return the whole text; InputError for one that is too large."""
        return b"".join(self._chunks(LARGEST_DOCUMENT)).decode("utf-8", errors="replace")

    def _chunks(self, most: int) -> Iterator[bytes]:
        read = 0
        for chunk in chain([self._beginning], iter(lambda: self._stream.read(_CHUNK), b"")):
            read += len(chunk)
            if read > most:
                raise InputError(self.name, f"more than {most} B", "a shorter file belongs here")
            yield chunk


@contextmanager
def opened(path: str | Path) -> Iterator[Source]:
    """Give the source at a path, or standard input for `-`; InputError for what cannot be opened."""
    if str(path) == "-":
        yield Source(sys.stdin.buffer, "stdin")
        return
    try:
        with Path(path).open("rb") as stream:
            yield Source(stream, Path(path).name)
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            "measurements", str(path), f"a file that can be read belongs here ({reason(error)})"
        ) from error
