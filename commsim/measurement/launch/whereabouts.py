"""Where is each rank just now? A few bytes that it writes and its watcher reads, even when it is dead or stopped."""

from __future__ import annotations

import mmap
import struct
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from commsim.units import Seconds

STATES = (
    "starting",
    "joining the others",
    "waiting for a token",
    "preparing",
    "warming up",
    "before the operation",
    "in the operation",
    "gathering samples",
    "done",
)
JOINING: Seconds = 60.0
"""How long ranks may at least take to find each other, whatever the time-out of operations: busy hosts start slowly."""
_LAYOUT = struct.Struct("<iiid")


@dataclass(frozen=True)
class Whereabouts:
    """What a rank did last: the case's number, the iteration's, the state, and when (on the clock `time.monotonic`)."""

    case: int = -1
    iteration: int = -1
    state: str = STATES[0]
    since: float = 0.0


class Trace:
    """A rank's own mark, kept in a file that its watcher sees; without a file it is kept for the rank alone."""

    def __init__(self, path: Path | None = None) -> None:
        """Begin at the start."""
        self._bytes: mmap.mmap | bytearray = bytearray(_LAYOUT.size)
        self.case = self.iteration = -1
        if path is not None:
            with path.open("r+b") as file:
                self._bytes = mmap.mmap(file.fileno(), _LAYOUT.size)
        self.at(STATES[0])

    def at(self, state: str, *, case: int | None = None, iteration: int | None = None) -> None:
        """Mark what begins now."""
        self.case = self.case if case is None else case
        self.iteration = -1 if iteration is None else iteration
        _LAYOUT.pack_into(self._bytes, 0, self.case, self.iteration, STATES.index(state), time.monotonic())

    @property
    def now(self) -> Whereabouts:
        """What was marked last."""
        return _unpacked(bytes(self._bytes))


def prepare(path: Path) -> None:
    """Make the file of a rank that is to be started."""
    path.write_bytes(_LAYOUT.pack(-1, -1, 0, time.monotonic()))


def whereabouts(path: Path) -> Whereabouts:
    """Return what the rank of this file marked last."""
    return _unpacked(path.read_bytes())


def _unpacked(mark: bytes) -> Whereabouts:
    case, iteration, state, since = _LAYOUT.unpack(mark)
    return Whereabouts(case, iteration, STATES[state], since)
