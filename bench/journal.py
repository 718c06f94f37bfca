"""What was measured already? Every finished case is in the file, on the disk, before the next begins."""

from __future__ import annotations

import fcntl
import json
import os
from collections import Counter
from typing import TYPE_CHECKING, Any

from commsim.errors import InputError, PartialError

if TYPE_CHECKING:
    from pathlib import Path

_FREE = ("clocks", "note")
"""What may differ between a run and its continuation."""


class Journal:
    """The file of a run: JSON lines, one writer at a time."""

    def __init__(self, path: Path) -> None:
        """Open the file, or begin it; InputError where it cannot be one, or where another run writes it."""
        self._path = path
        if path.exists() and not path.is_file():
            raise InputError("--out", path.name, "a file belongs here")
        try:
            self._file = path.open("a+b", buffering=0)
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError("--out", path.name, "another run is writing this file; choose another") from None
        except OSError as error:
            raise InputError("--out", path.name, f"this file cannot be written ({error.strerror})") from None
        self.done: Counter[str] = Counter()

    def begin(self, run: dict[str, Any]) -> None:
        """Write the record of the run, or hold it against the one that is there; InputError where they differ."""
        records = self._records()
        if not records:
            return self.write(run)
        for key, here in run.items():
            there = records[0].get(key)
            if key not in _FREE and there != here:
                old, new = _apart(there, here)
                what = f"the run in this file has {key} {old}, this one {new}; choose another file"
                raise InputError("--out", self._path.name, what)
        self.done = Counter(one["case"] for one in records if one.get("record") == "op" and "case" in one)
        return None

    def write(self, record: dict[str, Any]) -> None:
        """Put a record on the disk; PartialError when the disk is full, and the file then ends in whole records."""
        end = self._file.seek(0, os.SEEK_END)
        line = memoryview(f"{json.dumps(record, allow_nan=False)}\n".encode())
        try:
            while line:
                line = line[self._file.write(line) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            self._file.truncate(end)
            raise PartialError(f"{self._path.name}: {error.strerror}; what was measured until then is kept") from None

    def _records(self) -> list[dict[str, Any]]:
        """The records that are there; a last line that was cut off is dropped. InputError for any other file."""
        self._file.seek(0)
        text = self._file.read()
        whole, _, cut = text.rpartition(b"\n")
        if cut:
            self._file.truncate(len(text) - len(cut))
        try:
            found = [json.loads(line) for line in whole.splitlines()]
        except ValueError:
            found = [None]
        if not all(isinstance(one, dict) for one in found) or (found and found[0].get("record") != "run"):
            raise InputError("--out", self._path.name, "this file holds something else than a run; choose another")
        return found


def _apart(there: object, here: object) -> tuple[object, object]:
    """What differs of two values: of two objects, their parts that differ."""
    if not (isinstance(there, dict) and isinstance(here, dict)):
        return there, here
    keys = [key for key in {**there, **here} if there.get(key) != here.get(key)]
    return {key: there.get(key) for key in keys}, {key: here.get(key) for key in keys}
