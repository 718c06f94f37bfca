"""Does the script that measures a GPU work, as far as a CPU can show it?"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import torch

from bench.alone import record, timed
from bench.kernels import Work, device
from bench.timing import HostTimer
from commsim.errors import LackError
from commsim.shipped import ROOT
from tests.bench.started import records

if TYPE_CHECKING:
    from pathlib import Path


def test_every_kind_is_measured_with_its_origin(tmp_path: Path) -> None:
    out = tmp_path / "cpu.jsonl"
    command = [sys.executable, "-m", "bench.gpu", "--device", "cpu", "--out", str(out), "--seconds", "0"]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    run, *found = records(out)
    assert (run["record"], run["origin"]["status"], run["origin"]["program"]) == ("run", "measured", "bench/gpu.py")
    assert run["versions"]["torch"] == torch.__version__
    assert {one["kind"] for one in found} == {"copy", "matmul", "attention", "launch", "all_reduce"}
    assert {one["precision"] for one in found if one["kind"] == "matmul"} == {"bf16", "fp16", "fp32"}
    assert all(min(one["samples_s"][0]) > 0 and len(one["samples_s"][0]) >= 5 for one in found)
    square = next(one for one in found if one["kind"] == "matmul")
    assert square["flop_per_s"] == pytest.approx(2 * 32**3 / square["time_s"])


def test_what_is_short_is_repeated_and_counted_once() -> None:
    calls: list[None] = []
    samples = timed(Work("nothing", {}, lambda: calls.append(None), flop=6.0, times=3), HostTimer(), 0)
    assert len(samples) == 5
    assert len(calls) > 3 + 5 * 50
    written = record(Work("nothing", {}, lambda: None, flop=6.0), [2.0, 3.0, 4.0])
    assert (written["time_s"], written["flop_per_s"]) == (3.0, 2.0)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_says_so() -> None:
    with pytest.raises(LackError, match="no GPU"):
        device("cuda")


WITHOUT_TORCH = "import sys; sys.modules['torch'] = None; import runpy; runpy.run_module({!r}, run_name='__main__')"


@pytest.mark.parametrize(
    ("module", "arguments"),
    [("bench.gpu", ["--device", "cpu"]), ("bench.worker", ["--cases", "cases.json"])],
)
def test_without_torch_it_says_so_in_one_line(tmp_path: Path, module: str, arguments: list[str]) -> None:
    (tmp_path / "cases.json").write_text('[{"op": "all_reduce", "size_bytes": 1024}]', encoding="utf-8")
    there = os.environ | {"PYTHONPATH": str(ROOT), "RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}
    command = [sys.executable, "-c", WITHOUT_TORCH.format(module), *arguments, "--out", "run.jsonl"]
    done = subprocess.run(command, cwd=tmp_path, env=there, check=False, capture_output=True, text=True)
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1
    assert "needs torch, which is not installed here: `pip install 'commsim[bench]'`" in done.stderr
    assert not (tmp_path / "run.jsonl").exists()
