"""Is a lab gone whatever happens, and does it end in one clear line?"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from commsim.cli import run as commsim
from commsim.shipped import ROOT
from tests.lab.networks import needs_root

if TYPE_CHECKING:
    from collections.abc import Callable

MARK = "COMMSIM_TEST_MARK"
NETWORK = str(ROOT / "topologies" / "labs" / "one-switch.yaml")
ENDLESS = ["--iterations", "1000"]
LONG = 60.0


def lab(mark: str, folder: Path, *more: str) -> subprocess.Popen[str]:
    """Start the command; everything that it starts bears the mark in its environment."""
    code = "from commsim.cli import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", code, "lab", NETWORK, "all_reduce", *more],
        env={**os.environ, MARK: mark, "TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def marked(mark: str) -> dict[int, str]:
    """The processes that bear the mark, with the network namespace that each is in."""
    found = {}
    for folder_ in Path("/proc").iterdir():
        try:
            if folder_.name.isdigit() and f"{MARK}={mark}".encode() in (folder_ / "environ").read_bytes():
                found[int(folder_.name)] = str((folder_ / "ns" / "net").readlink())
        except OSError:
            continue  # it has just ended
    return found


def until(true: Callable[[], bool]) -> None:
    """Wait until it is so; fail when it takes too long."""
    end = time.monotonic() + LONG
    while not true():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.05)


def ranks(mark: str) -> list[int]:
    """The ranks that run: whoever is in a network namespace of its own."""
    spaces = list(marked(mark).values())
    return [process for process, space in marked(mark).items() if spaces.count(space) == 1]


def gone(mark: str, spaces: set[str]) -> bool:
    """Whether no process bears the mark, and the namespaces of those that did are no process's."""
    left = {_target(one) for one in Path("/proc").glob("[0-9]*/ns/net")}
    return not marked(mark) and not spaces & left


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except OSError:
        return ""  # the process has just ended


@needs_root
@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize(
    ("what", "sent", "code", "said"),
    [
        ("rank", signal.SIGKILL, 4, "was ended by signal 9; what was measured until then is kept"),
        ("command", signal.SIGINT, 130, ""),
        ("command", signal.SIGKILL, -9, ""),
    ],
)
def test_nothing_is_left(tmp_path: Path, what: str, sent: int, code: int, said: str) -> None:
    mark, out = f"{os.getpid()}-{what}-{sent}", tmp_path / "run.jsonl"
    started = lab(mark, tmp_path, *ENDLESS, "--out", str(out))
    until(lambda: len(ranks(mark)) >= 8 and out.exists() and out.stat().st_size > 0)
    own = _target(Path("/proc/self/ns/net"))
    spaces = set(marked(mark).values()) - {own}
    assert len(spaces) > 8, "a namespace for every rank, and that of the lab"
    os.kill(ranks(mark)[3] if what == "rank" else started.pid, sent)
    _, errors = started.communicate(timeout=LONG)
    assert started.returncode == code
    assert said in errors
    assert len(errors.splitlines()) <= 1
    until(lambda: gone(mark, spaces))
    assert json.loads(out.read_text().splitlines()[0])["record"] == "run"


@needs_root
@pytest.mark.usefixtures("alone")
def test_two_at_once_do_not_see_each_other(tmp_path: Path) -> None:
    marks = [f"{os.getpid()}-{number}" for number in range(2)]
    started = [lab(mark, tmp_path, "--iterations", "2", "--json") for mark in marks]
    for one in started:
        answer, errors = one.communicate(timeout=2 * LONG)
        assert one.returncode == 0, errors
        assert [row["checked"] for row in json.loads(answer)] == [True]
    assert all(gone(mark, set()) for mark in marks)


def test_without_root(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert commsim(["lab", NETWORK, "all_reduce"]) == 3
    assert "needs root" in capsys.readouterr().err


def test_without_torch(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "torch" else name)
    assert commsim(["lab", NETWORK, "all_reduce"]) == 3
    assert "torch is not installed" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["all_redcue"], "did you mean 'all_reduce'"),
        (["all_reduce", "--fault", "slow-link: link=gpu9,switch0 factor=2"], "no link joins these two"),
        (["all_reduce", "--fault", "late-rank: rank=8 by=1s"], "0 to 7 belong here"),
        (["all_reduce", "--groups", "0,1,x"], "ranks such as"),
        (["all_reduce", "--groups", "0,1 2,5"], "groups such as"),
        (["all_reduce", "--sizes", "0"], "1 B or more"),
    ],
)
def test_mistakes(capsys: pytest.CaptureFixture[str], arguments: list[str], said: str) -> None:
    assert commsim(["lab", NETWORK, *arguments]) == 2
    assert said in capsys.readouterr().err


@needs_root
def test_a_file_that_is_there_is_not_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    there = tmp_path / "run.jsonl"
    there.write_text("kept")
    assert commsim(["lab", NETWORK, "all_reduce", "--out", str(there)]) == 2
    assert "not there yet" in capsys.readouterr().err
    assert there.read_text() == "kept"
