"""Is a folder for a while gone afterwards, also when its process was killed?"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING

import pytest

from commsim.measurement.launch.scratch import _sweep, scratch

if TYPE_CHECKING:
    from pathlib import Path

HOLDS = """
import sys
from commsim.measurement.launch.scratch import scratch
with scratch() as place:
    (place / "kept").touch()
    print(place, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder for temporary files of this process and of those that it starts."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def holder() -> subprocess.Popen[str]:
    """Start a process that holds a folder until it is told to end."""
    started = subprocess.Popen([sys.executable, "-c", HOLDS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert started.stdout
    assert started.stdout.readline()
    return started


def test_gone_at_the_end(disk: Path) -> None:
    with scratch() as place:
        (place / "file").touch()
        assert [one.parent for one in disk.iterdir()] == [disk]
    assert list(disk.iterdir()) == []


def test_what_a_killed_process_leaves_is_removed_by_the_next(disk: Path) -> None:
    with holder() as killed, holder() as alive:
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        assert len(list(disk.iterdir())) == 2
        with scratch():
            left = [one for one in disk.iterdir() if (one / "kept").exists()]
            assert len(left) == 1, "that of the process that runs stays"
        alive.communicate()
    assert list(disk.iterdir()) == []


def test_what_another_user_left_stays(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (disk / "commsim-scratch.abcdefgh").mkdir()
    somebody = os.geteuid() + 1
    with monkeypatch.context() as other:
        other.setattr(os, "geteuid", lambda: somebody)
        _sweep()
    assert [one.name for one in disk.iterdir()] == ["commsim-scratch.abcdefgh"]
    _sweep()
    assert list(disk.iterdir()) == []


def test_what_is_somebody_elses_stays(disk: Path) -> None:
    names = (
        "commsim-scratch.notes",
        "commsim-results",
        "other",
        "commsim-scratch.ABCDEFGH",
        "commsim-scratch.abcdefgh.old",
    )
    for name in names:
        (disk / name).mkdir()
    (disk / "elsewhere").mkdir()
    (disk / "commsim-scratch.link4567").symlink_to(disk / "elsewhere")
    with scratch():
        assert {*names, "elsewhere", "commsim-scratch.link4567"} <= {one.name for one in disk.iterdir()}
