"""Is the command line what scripts expect: quiet, with stable exit codes, and one line for a mistake?"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import commsim as package
from commsim import cli
from commsim.errors import CommsimError, LackError, PartialError
from tests.house.source import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Answer

MAIN = [sys.executable, "-c", "from commsim.cli import main; main()"]


def test_version(commsim: Callable[..., Answer]) -> None:
    assert commsim("--version") == (0, f"commsim {package.__version__}\n", "")


def test_help_lists_every_command(commsim: Callable[..., Answer]) -> None:
    answer = commsim("--help")
    assert answer.code == 0
    assert [name for name in cli.COMMANDS if name not in answer.out] == []


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_every_command_explains_itself(commsim: Callable[..., Answer], command: str) -> None:
    answer = commsim(command, "--help")
    assert (answer.code, answer.err) == (0, "")
    assert "--json" in answer.out


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_help_fits_eighty_columns(
    commsim: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """Every option is named in full: a name that is cut off cannot be typed."""
    monkeypatch.setenv("COLUMNS", "80")
    answer = commsim(command, "--help")
    assert max(map(len, answer.out.splitlines())) <= 80
    assert "…" not in answer.out


def test_options_are_grouped(commsim: Callable[..., Answer]) -> None:
    answer = commsim("estimate", "--help")
    titles = [line for line in answer.out.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert titles == ["Arguments:", "Machine:", "Plan:", "Recipe:", "Library:", "Options:"]
    assert "--sequence-parallel / --no-sequence-parallel" in answer.out


@pytest.mark.parametrize("error", [CommsimError("low"), LackError("no GPU"), PartialError("half")])
def test_errors_are_one_line_with_their_exit_code(
    commsim: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch, error: CommsimError
) -> None:
    _make_fail(monkeypatch, error)
    assert commsim("systems") == (error.exit_code, "", f"commsim: {error}\n")


def test_our_own_mistake_is_told_in_full(commsim: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch) -> None:
    """A traceback, and an exit code that no script takes for a failed check."""
    _make_fail(monkeypatch, ZeroDivisionError("of ours"))
    answer = commsim("systems")
    assert answer.code == cli.OUR_MISTAKE
    assert "ZeroDivisionError: of ours" in answer.err


def test_too_little_memory_is_a_lack(commsim: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch) -> None:
    _make_fail(monkeypatch, MemoryError())
    answer = commsim("systems")
    assert (answer.code, answer.err.count("\n")) == (LackError.exit_code, 1)


def test_interrupt_is_quiet(commsim: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch) -> None:
    _make_fail(monkeypatch, KeyboardInterrupt())
    assert commsim("systems") == (128 + signal.SIGINT, "", "")


def test_a_reader_that_leaves_is_no_error() -> None:
    """As `commsim systems | head -1`: the process ends without a word."""
    read, write = os.pipe()
    os.close(read)
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    run = subprocess.run(
        [*MAIN, "--help"], stdout=write, stderr=subprocess.PIPE, check=False, cwd=ROOT, env=environment
    )
    os.close(write)
    assert (run.returncode, run.stderr) == (-signal.SIGPIPE, b"")


@pytest.mark.skipif(sys.platform != "linux", reason="the device that is full is of Linux")
@pytest.mark.parametrize("arguments", [["systems"], ["systems", "--json"], ["--help"]])
def test_a_full_disk_is_one_line(arguments: list[str]) -> None:
    with open("/dev/full", "wb") as full:  # noqa: PTH123 - a device
        run = subprocess.run([*MAIN, *arguments], stdout=full, stderr=subprocess.PIPE, check=False, cwd=ROOT)
    assert run.returncode == LackError.exit_code
    assert run.stderr == b"commsim: the answer cannot be written: No space left on device\n"


@pytest.mark.parametrize(("closed", "arguments", "code"), [(1, "systems", 0), (0, "check -", 2)])
def test_what_is_closed_is_empty(closed: int, arguments: str, code: int) -> None:
    shell = f"exec {shlex.join(MAIN)} {arguments} {closed}>&-"
    run = subprocess.run(["/bin/sh", "-c", shell], stderr=subprocess.PIPE, check=False, cwd=ROOT)
    assert (run.returncode, b"Traceback" in run.stderr) == (code, False)


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "cp1252"])
def test_every_terminal_can_print_an_estimate(encoding: str) -> None:
    job = ["estimate", "llama3.1-8b", "hgx-h100", "--plan", "data=8", "--global-batch", "8"]
    environment = os.environ | {"PYTHONIOENCODING": encoding, "NO_COLOR": "1"}
    run = subprocess.run([*MAIN, *job], capture_output=True, check=True, cwd=ROOT, env=environment)
    assert ("█" if encoding == "utf-8" else "###") in run.stdout.decode(encoding)


def test_plain_output_has_no_colours_and_no_trailing_blanks(commsim: Callable[..., Answer]) -> None:
    lines = commsim("systems").out.splitlines()
    assert [line for line in lines if line != line.rstrip() or "\x1b" in line or len(line) > 80] == []


def _make_fail(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def fail(*_: Any) -> None:  # noqa: ANN401 - it takes anything
        raise error

    monkeypatch.setattr("commsim.cli.systems.names", fail)
