"""How are ranks started on this machine, and how are they gone again whatever happens?"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from commsim.errors import InputError, LackError
from commsim.measurement.launch.cases import write_cases
from commsim.measurement.launch.scratch import scratch
from commsim.measurement.launch.whereabouts import Whereabouts, prepare, whereabouts
from commsim.shipped import ROOT, folder

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from commsim.measurement.launch.cases import Case
    from commsim.units import Seconds

MOST_RANKS, LAST_PORT = 1024, 65535
_SAID = 4096
"""Bytes of what a rank said last that are looked at."""


@dataclass(frozen=True)
class Order:
    """What is to be measured, by how many ranks of this machine, on which backend, into which file.

    A rank waits `timeout` for the others. Without `port` a free one is taken; `interface` is what gloo speaks over.
    """

    cases: tuple[Case, ...]
    ranks: int
    backend: str
    out: Path
    timeout: Seconds = 300.0
    port: int | None = None
    interface: str | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be; InputError."""
        if not 1 <= self.ranks <= MOST_RANKS:
            raise InputError("ranks", self.ranks, f"1 to {MOST_RANKS} belong here: all of them run on this machine")
        if self.port is not None and not 1 <= self.port <= LAST_PORT:
            raise InputError("port", self.port, f"a port from 1 to {LAST_PORT} belongs here")
        if not self.timeout > 0:
            raise InputError("timeout", self.timeout, "a time above 0 belongs here")
        if not self.out.parent.is_dir():
            raise InputError("--out", str(self.out), "its folder is not there")
        if self.out.is_dir():
            raise InputError("--out", str(self.out), "a file belongs here, this is a folder")

    def command(self, cases: Path) -> list[str]:
        """What each rank is started with."""
        where = ["--cases", str(cases), "--out", str(self.out.absolute())]
        how = ["--backend", self.backend, "--timeout", f"{self.timeout:g}"]
        return [sys.executable, "-m", "bench.worker", *where, *how]

    def environment(self, rank: int, port: int) -> dict[str, str]:
        """What each rank finds in its environment besides what was there: the names that torchrun uses."""
        found = {
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": str(self.ranks),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
        }
        spoken = self.interface or os.environ.get("GLOO_SOCKET_IFNAME") or _loopback()
        return found | ({"GLOO_SOCKET_IFNAME": spoken} if self.backend == "gloo" else {})


@dataclass
class Crew:
    """Ranks that run, as processes of this one: none of them outlives it."""

    order: Order
    _processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    _stack: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    _folder: Path = Path()

    def __enter__(self) -> Self:
        """Start them; LackError when torch is not installed."""
        need_torch()
        folder("bench")
        self._folder = self._stack.enter_context(scratch())
        cases = self._folder / "cases.json"
        write_cases(list(self.order.cases), cases)
        port = self.order.port or free_port()
        try:
            for rank in range(self.order.ranks):
                self._start(rank, cases, port)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End those that still run, and what they started."""
        self.end()
        self._stack.close()

    def _start(self, rank: int, cases: Path, port: int) -> None:
        prepare(self._folder / str(rank))
        watched = {"COMMSIM_STATES": str(self._folder), "COMMSIM_WATCHED": "1"}
        with (self._folder / f"{rank}.said").open("wb") as said:
            process = subprocess.Popen(
                self.order.command(cases),
                cwd=ROOT,
                env=os.environ | self.order.environment(rank, port) | watched,
                stdin=subprocess.PIPE,  # closed by the system when this process is gone, which ends the rank
                stdout=said,
                stderr=said,
                start_new_session=True,
            )
        self._processes.append(process)

    def end(self) -> None:
        """Kill what still runs, stopped processes too, and wait until it is gone."""
        for process in self._processes:
            if process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        for process in self._processes:
            process.wait()
            if process.stdin:
                process.stdin.close()

    def codes(self) -> list[int | None]:
        """Return the exit code of each rank, None while it runs; the negative number of a signal."""
        return [process.poll() for process in self._processes]

    def where(self) -> list[Whereabouts]:
        """Return what each rank marked last."""
        return [whereabouts(self._folder / str(rank)) for rank in range(self.order.ranks)]

    def said(self, rank: int) -> str:
        """Return the last line that a rank said."""
        text = (self._folder / f"{rank}.said").read_bytes()[-_SAID:].decode(errors="replace")
        lines = [line for line in text.splitlines() if line.strip()]
        return lines[-1].strip() if lines else ""


def need_torch() -> None:
    """Refuse to start ranks that would not find torch; LackError."""
    if find_spec("torch") is None:
        raise LackError("measuring needs torch, which is not installed here: `pip install 'commsim[bench]'` brings it")


def free_port() -> int:
    """Return a port of this machine that nobody listens at just now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def _loopback() -> str:
    names = [name for _, name in socket.if_nameindex()]
    return next((name for name in names if name.startswith("lo")), names[0])
