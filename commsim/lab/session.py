"""How does one speak to a lab from outside?"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self, cast

from commsim.errors import LackError, PartialError
from commsim.lab.isolation import need_lab
from commsim.shipped import ROOT

if TYPE_CHECKING:
    from types import TracebackType

    from commsim.lab.blueprint import Blueprint
    from commsim.units import BytesPerSecond

_PATIENCE = 20.0
"""Seconds that a lab has to be laid out, and to be gone."""
_PORT = "29500"
"""Where ranks meet: every lab has all ports for itself."""


class Session:
    """A lab that stands, with its ranks, until the end of the `with` block."""

    def __init__(self, plan: Blueprint, folder: Path, arguments: list[str], timeout: float) -> None:
        """Describe it: ranks that run the worker with these arguments and leave what they say in the folder."""
        need_lab()
        self.plan = plan
        self._folder = folder
        self._told = {"blueprint": asdict(plan), "ranks": self._ranks(arguments, timeout)}
        self._laid, self._lock = threading.Event(), threading.Lock()
        self._failed = ""

    def __enter__(self) -> Self:
        """Lay it out and start the ranks; LackError when this machine cannot."""
        with (self._folder / "lab.log").open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "commsim.lab.inside", str(os.getpid())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=self._environment(),
                start_new_session=True,  # Ctrl-C is for whoever asked for the lab, which then ends it
                text=True,
            )
        self._listening = threading.Thread(target=self._listen, daemon=True)
        self._listening.start()
        try:
            self._order(**self._told)
            self._need_laid(self._laid.wait(_PATIENCE))
        except BaseException:
            self.close()
            raise
        return self

    def _need_laid(self, laid: bool) -> None:  # noqa: FBT001 - what an event says
        if self._failed or not laid:
            raise LackError(f"lab: the network could not be laid out ({self._failed or 'it took too long'})")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Have it gone."""
        self.close()

    def close(self) -> None:
        """End it: its first process ends when its input does, and takes everything along."""
        with suppress(BrokenPipeError):  # it is gone already
            cast("IO[str]", self._process.stdin).close()
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._listening.join()
        cast("IO[str]", self._process.stdout).close()

    def shape(self, cable: int, rate: BytesPerSecond) -> None:
        """Give both directions of a cable a bandwidth."""
        self._order(cable=cable, rate=rate)

    def signal(self, rank: int, number: int) -> None:
        """Send a rank a signal."""
        self._order(rank=rank, signal=int(number))

    def check(self) -> None:
        """Raise PartialError when a rank, or the lab, has ended before its time."""
        if self._failed:
            raise PartialError(f"lab: {self._failed}; what was measured until then is kept")

    def _order(self, **what: object) -> None:
        with self._lock:
            try:
                told = cast("IO[str]", self._process.stdin)
                told.write(json.dumps(what) + "\n")
                told.flush()
            except BrokenPipeError:
                self._failed = self._failed or "it ended unexpectedly"

    def _listen(self) -> None:
        for line in cast("IO[str]", self._process.stdout):  # closed by whoever ends the lab
            told = json.loads(line)
            if told.get("code"):
                self._failed = (
                    self._failed or f"rank {told['rank']} {_ended(told['code'])}{self._last_words(told['rank'])}"
                )
            self._failed = self._failed or told.get("failed", "")
            if "laid" in told or "failed" in told:
                self._laid.set()
        self._failed = self._failed or "it ended unexpectedly"
        self._laid.set()

    def _last_words(self, rank: int) -> str:
        """What a rank said last."""
        path = self._folder / f"rank{rank}.log"
        said = path.read_text(errors="replace").split("\n") if path.exists() else []
        words = [line for line in said if line.startswith("rank ")]
        return f" ({words[-1]})" if words else ""

    def _ranks(self, arguments: list[str], timeout: float) -> dict[str, Any]:
        meet = {"MASTER_ADDR": self.plan.address(self.plan.ranks[0]), "MASTER_PORT": _PORT}
        shared = {**meet, "WORLD_SIZE": str(len(self.plan.ranks)), "GLOO_SOCKET_IFNAME": "eth0"}
        each = [
            {
                "environment": {**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)},
                "arguments": [*arguments, "--timeout", str(timeout)],
                "log": str(self._folder / f"rank{rank}.log"),
            }
            for rank in range(len(self.plan.ranks))
        ]
        command = [sys.executable, "-m", "bench.forked"]
        return {"command": command, "folder": str(ROOT), "environment": self._environment(), "each": each}

    def _environment(self) -> dict[str, str]:
        """The environment of everything in the lab: this commsim is the one that is imported, one thread computes."""
        known = {key: value for key, value in os.environ.items() if not key.startswith(_OF_LAUNCHERS)}
        paths = [str(ROOT), str(Path(__file__).parents[2]), known.get("PYTHONPATH", "")]
        return {**known, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "OMP_NUM_THREADS": "1"}


_OF_LAUNCHERS = ("SLURM_", "OMPI_", "PMI_", "PMIX_", "TORCHELASTIC_", "GLOO_", "RANK", "WORLD_SIZE", "LOCAL_RANK")
"""What launchers leave in the environment: the ranks of a lab are nobody else's."""


def _ended(code: int) -> str:
    return f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
