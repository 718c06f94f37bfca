"""Where do files lie that nobody needs once this process is gone?

Whoever is killed cannot clean up. So each folder is locked by the process that made it, and the next one removes those
that nobody holds: a lock ends with its process, whatever ends that; a process id may by then be another's, or that of
another container on the same disk.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_PREFIX = "commsim-scratch."
_OURS = re.compile(rf"{re.escape(_PREFIX)}[a-z0-9_]{{8}}")


@contextmanager
def scratch() -> Iterator[Path]:
    """Yield a new folder that is removed at the end of the block, or by the next process that takes one."""
    _sweep()
    place, lock = _taken()
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
        os.close(lock)


def _taken() -> tuple[Path, int]:
    """A new folder, and the lock on it; another one where a sweep was quicker than the lock."""
    while True:
        place = Path(tempfile.mkdtemp(prefix=_PREFIX))
        lock = _locked(place)
        if lock is not None:
            if place.exists():
                return place, lock
            os.close(lock)


def _sweep() -> None:
    """Remove the folders of this user whose processes are gone."""
    for place in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        lock = _locked(place) if _OURS.fullmatch(place.name) else None
        if lock is not None:
            shutil.rmtree(place, ignore_errors=True)
            os.close(lock)


def _locked(place: Path) -> int | None:
    """The lock on a folder of this user, to be closed; None where it is held, or the folder gone, or another's."""
    import fcntl  # not on every system on which the rest runs

    with suppress(OSError):
        folder = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        with suppress(OSError):
            if os.fstat(folder).st_uid == os.geteuid():
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return folder
        os.close(folder)
    return None
