"""Which tests run side by side, and which has the machine to itself?

pytest-xdist runs tests in several processes; a lock between them is a file.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Turns:
    """The turns of the tests that one user runs on this machine: shared ones, until a test asks to be alone.

    Whoever waits to be alone stands in the door, so that those who share cannot pass it for ever.
    """

    def __init__(self, folder: Path) -> None:
        self._door, self._room = (
            os.open(folder / f"commsim-tests-{os.getuid()}-{what}", os.O_CREAT | os.O_RDWR) for what in ("door", "room")
        )

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Run beside others."""
        with _held(self._door, fcntl.LOCK_EX):
            fcntl.flock(self._room, fcntl.LOCK_SH)
        try:
            yield
        finally:
            fcntl.flock(self._room, fcntl.LOCK_UN)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Wait until all others have ended, and hold them back; to be asked within a shared turn, which it gives up."""
        fcntl.flock(self._room, fcntl.LOCK_UN)
        with _held(self._door, fcntl.LOCK_EX):
            fcntl.flock(self._room, fcntl.LOCK_EX)
            yield


@contextmanager
def _held(door: int, how: int) -> Iterator[None]:
    fcntl.flock(door, how)
    try:
        yield
    finally:
        fcntl.flock(door, fcntl.LOCK_UN)
