"""Measured tables as they are published, written small: what a test changes stands in its call."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

MIB = 2**20


def published(**changes: object) -> dict[str, Any]:
    """Return a published table: an all-reduce of one 8-GPU H100 box."""
    rows = [{"size_bytes": size, "time_s": size / 2e11 + 3e-5} for size in (MIB // 2, MIB, 64 * MIB, 1024 * MIB)]
    return {
        "id": "a",
        "op": "all_reduce",
        "dtype": "float",
        "system": "hgx-h100",
        "nodes": 1,
        "ranks": 8,
        "nics": None,
        "library": "nccl",
        "settings": {},
        "health": "healthy",
        "group": "a",
        "rows": rows,
    } | changes


def write(folder: Path, **changes: object) -> Path:
    """Write a published table into a folder, named by its id."""
    of = published(**changes)
    path = folder / f"{of['id']}.json"
    path.write_text(json.dumps(of))
    return path
