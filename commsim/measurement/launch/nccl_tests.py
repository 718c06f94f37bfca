"""What do NVIDIA's own benchmarks say, where they are installed?"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from itertools import groupby, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from commsim.collectives.kinds import ALL_TO_ALL, SEND_RECV
from commsim.errors import InputError, LackError, PartialError
from commsim.measurement.launch.cases import BARRIER
from commsim.measurement.launch.scratch import scratch
from commsim.measurement.read import measurements
from commsim.measurement.writers.json_lines import write_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commsim.measurement.launch.cases import Case
    from commsim.measurement.launch.crew import Order
    from commsim.measurement.records import Measurement
    from commsim.units import Seconds

_PROGRAMS = {ALL_TO_ALL.name: "alltoall", SEND_RECV.name: "sendrecv"}


def commands(order: Order) -> list[list[str]]:
    """Return the command of each operation and type: its sizes, doubled or as they follow each other.

    InputError for conditions that nccl-tests does not have.
    """
    return [_command(list(cases), order) for _, cases in groupby(order.cases, lambda case: (case.op, case.dtype))]


def measure_with_nccl_tests(order: Order) -> None:
    """Run nccl-tests and write what it says, as JSON lines; its log, which names hosts, is not kept.

    LackError when a program is missing, PartialError when one fails: what it printed before is written.
    """
    if order.out.exists():
        raise InputError("--out", order.out.name, "nccl-tests cannot go on with a file that is there: choose another")
    found: list[Measurement] = []
    try:
        for command in commands(order):
            found += _run(command, order.timeout * len(order.cases))
    except _EndedError as error:
        found += error.found
        raise
    finally:
        if found:
            order.out.write_text(write_lines(found), encoding="utf-8")


def _command(cases: list[Case], order: Order) -> list[str]:
    first = cases[0]
    if first.op == BARRIER or set(first.conditions) - {"graph"}:
        raise InputError("nccl-tests", first.document, "it measures collectives alone: no barrier, and no conditions")
    name = f"{_PROGRAMS.get(first.op, first.op)}_perf"
    program = shutil.which(name)
    if program is None:
        raise LackError(f"{name} of nccl-tests is not on the PATH of this machine")
    sizes = [case.size for case in cases]
    options = {"-g": order.ranks, "-d": first.dtype, "-n": first.iterations, "-w": first.warmup, "-G": int(first.graph)}
    return [program, *_span(sizes), *(str(part) for pair in options.items() for part in pair), "-c", "1"]


def _span(sizes: list[int]) -> Iterator[str]:
    """From where to where, and by which factor; InputError where there is no such factor."""
    factors = {after // before for before, after in pairwise(sizes)} or {2}
    whole = all(after % before == 0 for before, after in pairwise(sizes))
    if len(factors) > 1 or not whole:
        raise InputError("sizes", sizes, "nccl-tests takes sizes with one whole factor between them, such as 8..1G")
    yield from ("-b", str(sizes[0]), "-e", str(sizes[-1]), "-f", str(max(2, *factors)))


def _run(command: list[str], timeout: Seconds) -> list[Measurement]:
    """What one program measured, without the name of the file that held its output for a moment."""
    with scratch() as folder:
        log = folder / "nccl-tests.log"
        code = _logged(command, log, timeout)
        try:
            found = [replace(one, source="nccl-tests") for one in measurements(log)]
        except InputError:
            found = []
    if code or not found:
        name = Path(command[0]).name
        rows = sum(len(one.rows) for one in found)
        raise _EndedError(
            f"{name} {'took too long' if code is None else f'ended with {code}'} after {rows} rows", found
        )
    return found


def _logged(command: list[str], log: Path, timeout: Seconds) -> int | None:
    """The exit code of the program, None when it took too long."""
    with log.open("wb") as file:
        try:
            return subprocess.run(
                command, stdout=file, stderr=subprocess.STDOUT, timeout=timeout, check=False
            ).returncode
        except subprocess.TimeoutExpired:
            return None


class _EndedError(PartialError):
    """A program that ended early, and what it measured before."""

    def __init__(self, why: str, found: list[Measurement]) -> None:
        super().__init__(why)
        self.found = found
