"""How do tests write what a profiler, an inspector or a training loop would have written?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

HEAD = "rank,step,op,start,duration"
"""Columns of a plain table of operations."""


def kernel(start: float, duration: float, **arguments: object) -> dict[str, Any]:
    name = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
    about = {"Collective name": "allreduce", "Process Group Name": "0", "In msg nelems": 64, "dtype": "BFloat16"}
    return {"ph": "X", "cat": "kernel", "name": name, "ts": start, "dur": duration, "args": about | arguments}


def profile(path: Path, rank: int | None, events: list[dict[str, Any]], *, world: int = 2) -> Path:
    told = {} if rank is None else {"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": world}}
    path.write_text(json.dumps({"schemaVersion": 1, **told, "traceEvents": events}), encoding="utf-8")
    return path


def step(number: int, start: float) -> dict[str, Any]:
    return {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{number}", "ts": start, "dur": 1e4, "args": {}}


def table(path: Path, *rows: str, head: str = HEAD) -> Path:
    path.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    return path
