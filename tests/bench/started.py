"""How do tests start real ranks? As processes of their own, few and for a short while."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING, Any

from commsim.shipped import ROOT

if TYPE_CHECKING:
    from pathlib import Path

LOOPBACK = next(name for _, name in socket.if_nameindex() if name.startswith("lo"))
QUICK = {"iterations": 3, "warmup": 1}


def free_port() -> int:
    with closing(socket.socket()) as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def start(cases: list[dict[str, Any]], folder: Path, ranks: int, *more: str) -> list[subprocess.Popen[str]]:
    """Start a worker for each rank, as somebody's own launcher would; the results go to `run.jsonl`."""
    (folder / "cases.json").write_text(json.dumps(cases), encoding="utf-8")
    files = ["--cases", str(folder / "cases.json"), "--out", str(folder / "run.jsonl")]
    place = {"WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    settings = {"GLOO_SOCKET_IFNAME": LOOPBACK, "OMP_NUM_THREADS": "1"}
    return [
        subprocess.Popen(
            [sys.executable, "-m", "bench.worker", *files, *more],
            cwd=ROOT,
            env=os.environ | place | settings | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(ranks)
    ]


def finish(started: list[subprocess.Popen[str]]) -> list[tuple[int, str]]:
    """Return the exit code of each rank and what it said; whatever happens, none is left."""
    try:
        said = [process.communicate(timeout=120)[1] for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()
    return [(process.returncode, text) for process, text in zip(started, said)]


def records(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
