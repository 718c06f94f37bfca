"""Does what the documents tell a reader to do work?"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from commsim.collectives.algorithms import ALGORITHMS

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(document: str) -> list[tuple[str, str]]:
    return [(kind, text) for kind, text in _BLOCK.findall((ROOT / "docs" / document).read_text(encoding="utf-8"))]


@pytest.fixture
def _table() -> Iterator[None]:
    before = dict(ALGORITHMS)
    yield
    ALGORITHMS.clear()
    ALGORITHMS.update(before)


@pytest.mark.usefixtures("_table")
def test_everything_in_extending_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = []
    for kind, text in blocks("extending.md"):
        if kind == "yaml":
            Path(text.split("\n", 1)[0].removeprefix("# ")).write_text(text, encoding="utf-8")
        elif kind == "python":
            exec(compile(text, "extending.md", "exec", dont_inherit=True), {"__name__": "extending"})  # noqa: S102 - our own document
        else:
            for line in text.splitlines():
                run_line(line)
        done.append(kind)
    assert {"yaml", "python", "sh"} <= set(done)


def run_line(line: str) -> None:
    program, *arguments = shlex.split(line)
    assert program == "commsim"
    ran = subprocess.run(  # the command line of this very installation
        [sys.executable, "-c", "from commsim.cli import main; main()", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
    )
    assert ran.returncode == 0, f"{line}: {ran.stderr}"
    assert ran.stdout.strip()
