"""Is what a matmul and a collective cost each other read from a run?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from commsim.measurement.launch.overlap import overlaps

if TYPE_CHECKING:
    from pathlib import Path

BARE = {"record": "op", "op": "all_reduce", "dtype": "float", "size_bytes": 8, "ranks": 2, "in_place": True}


def write(file: Path, *ops: dict[str, Any]) -> Path:
    file.write_text("".join(f"{json.dumps(one)}\n" for one in ({"record": "run", "schema": 1}, *ops)), encoding="utf-8")
    return file


def op(samples: list[list[float]], matmul: int = 0, **more: object) -> dict[str, Any]:
    arrived = [[0.0] * len(rank) for rank in samples]
    conditions = {"conditions": {"matmul": matmul}} if matmul else {}
    return {**BARE, "samples_s": samples, "arrival_s": arrived, **conditions, **more}


def test_each_side(tmp_path: Path) -> None:
    bare = op([[1.0, 1.0], [2.0, 2.0]])
    beside = op([[3.0, 3.0], [1.0, 1.0]], 64, matmul_s=[[0.2, 0.2], [0.6, 0.4]], matmul_alone_s=[0.1, 0.25])
    (found,) = overlaps(write(tmp_path / "run.jsonl", bare, beside))
    assert (found.dimension, found.alone, found.beside) == (64, 2.0, 3.0)
    assert found.slowdown == 1.5
    assert found.product_slowdown == pytest.approx(2.0)


def test_what_has_no_counterpart_says_nothing(tmp_path: Path) -> None:
    beside = op([[3.0]], 64, matmul_s=[[0.2]], matmul_alone_s=[0.1])
    assert overlaps(write(tmp_path / "run.jsonl", beside, op([[1.0]], size_bytes=16))) == []
