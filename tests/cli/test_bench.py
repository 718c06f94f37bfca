"""Does `commsim bench` measure, go on, and end clearly whatever happens to a rank, the port, the disk or the user?"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch

import commsim as cs
from commsim.measurement.launch import crew
from commsim.shipped import ROOT
from tests.bench.started import LOOPBACK, free_port, records

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.cli.conftest import Answer

QUICK = ("--iterations", 3, "--warmup", 1, "--backend", "gloo")
TIMES = {"samples_s", "arrival_s", "clock_uncertainty_s"}


def test_a_sweep(commsim: Callable[..., Answer], tmp_path: Path) -> None:
    out = tmp_path / "run.jsonl"
    asked = ("bench", "all_reduce,barrier", "--ranks", 2, "--sizes", "0,1K,1000", *QUICK, "--out", out)
    answer = commsim(*asked)
    assert (answer.code, answer.err) == (0, "")
    assert [line.split()[0] for line in answer.out.splitlines()[1:]] == ["all_reduce"] * 3 + ["barrier"]
    again = commsim(*asked, "--json")
    assert again.code == 0
    assert again.err == "note: 4 of 4 cases are in run.jsonl already\n"
    rows = again.document
    assert [(row["op"], row["size_bytes"]) for row in rows] == [
        ("all_reduce", 0), ("all_reduce", 1024), ("all_reduce", 1000), ("barrier", 0),
    ]  # fmt: skip
    assert all(row["right"] and row["time_s"] > 0 and row["skew_s"] >= 0 for row in rows)
    assert rows[1]["busbw_bytes_per_s"] == pytest.approx(1024 / rows[1]["time_s"])
    assert len(cs.measurements(out)[0].rows) == 3


def test_the_same_records_as_under_torchrun(commsim: Callable[..., Answer], tmp_path: Path) -> None:
    cases = [{"op": "all_reduce", "size_bytes": 4096, "iterations": 3, "warmup": 1}, {"op": "barrier", "iterations": 2}]
    (tmp_path / "cases.json").write_text(json.dumps(cases), encoding="utf-8")
    files = ["--cases", str(tmp_path / "cases.json"), "--out", str(tmp_path / "torchrun.jsonl")]
    place = ["--nproc-per-node", "2", "--master-port", str(free_port())]
    command = [sys.executable, "-m", "torch.distributed.run", *place, "-m", "bench.worker", *files]
    settings = {"GLOO_SOCKET_IFNAME": LOOPBACK, "OMP_NUM_THREADS": "1"}
    subprocess.run(command, cwd=ROOT, env=os.environ | settings, check=True, capture_output=True, timeout=120)
    here = ("--ranks", 2, "--backend", "gloo", "--out", tmp_path / "commsim.jsonl")
    assert commsim("bench", "all_reduce", "--cases", tmp_path / "cases.json", *here).code == 0
    found = [records(tmp_path / f"{name}.jsonl") for name in ("torchrun", "commsim")]
    shapes = [
        [{key: [len(rank) for rank in one[key]] for key in ("samples_s", "arrival_s")} for one in run[1:]]
        for run in found
    ]
    assert shapes[0] == shapes[1]
    same = [[{key: value for key, value in one.items() if key not in TIMES} for one in run] for run in found]
    assert same[0] == same[1]


@contextmanager
def running(tmp_path: Path, *more: str) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """A run that has finished its first case and would go on for long, and its ranks' process numbers; all end here."""
    cases = [
        {"op": "broadcast", "size_bytes": 8, "iterations": 2},
        {"op": "broadcast", "size_bytes": 4096, "iterations": 10**6},
    ]
    (tmp_path / "cases.json").write_text(json.dumps(cases), encoding="utf-8")
    out = tmp_path / "run.jsonl"
    program = "import sys; from commsim.cli import main; main()"
    given = ["--cases", str(tmp_path / "cases.json"), "--ranks", "3", "--backend", "gloo", "--out", str(out), *more]
    command = [sys.executable, "-c", program, "bench", "broadcast", *given]
    started = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        while not (out.exists() and out.read_bytes().count(b"\n") == 2):
            assert started.poll() is None
            time.sleep(0.05)
        time.sleep(0.5)
        yield started, children(started.pid)
    finally:
        started.kill()
        started.communicate()


def children(of: int) -> list[int]:
    """The processes that a process started, in their order."""
    tasks = Path(f"/proc/{of}/task").glob("*/children")
    return sorted(int(one) for task in tasks for one in task.read_text(encoding="ascii").split())


def gone(processes: list[int]) -> bool:
    """Whether none of them is left within a few seconds; a zombie is gone."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        if not any(_is_alive(one) for one in processes):
            return True
        time.sleep(0.05)
    return False


def _is_alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in {"Z", "X"}


needs_proc = pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs /proc")


@needs_proc
@pytest.mark.parametrize(
    ("blow", "said"),
    [(signal.SIGKILL, "rank 1 was killed: SIGKILL"), (signal.SIGSTOP, "rank 1 hangs, ")],
)
def test_a_rank_that_dies_or_hangs(blow: signal.Signals, said: str, tmp_path: Path) -> None:
    with running(tmp_path, "--timeout", "15 s") as (started, ranks):
        assert len(ranks) == 3
        os.kill(ranks[1], blow)
        _, err = started.communicate(timeout=60)
    assert started.returncode == 4
    lines = err.splitlines()
    assert lines[-1].startswith(f"commsim: {said}")
    assert lines[-2] == "note: 1 of 2 cases are kept in run.jsonl; the same command goes on from there"
    assert lines[0].split() == ["rank", "case", "iteration", "was", "for", "ended"]
    assert [line.split()[:3] for line in lines[1:] if line.split()[0] in "012"] == [
        [str(rank), "2:", "broadcast"] for rank in range(3)
    ]
    assert gone(ranks)
    assert [one["record"] for one in records(tmp_path / "run.jsonl")] == ["run", "op"]


@needs_proc
def test_the_user_interrupts(tmp_path: Path) -> None:
    with running(tmp_path) as (started, ranks):
        started.send_signal(signal.SIGINT)
        _, err = started.communicate(timeout=60)
    assert started.returncode == 4
    assert err.splitlines()[-1] == "commsim: interrupted"
    assert "1 of 2 cases are kept" in err
    assert gone(ranks)


@needs_proc
def test_a_second_run_into_the_same_file_is_refused_and_killing_the_first_leaves_nothing(tmp_path: Path) -> None:
    with running(tmp_path) as (started, ranks):
        before = (tmp_path / "run.jsonl").read_bytes()
        second = [sys.executable, "-c", "from commsim.cli import main; main()", "bench", "barrier", "--ranks", "1"]
        files = ["--backend", "gloo", "--out", str(tmp_path / "run.jsonl")]
        refused = subprocess.run([*second, *files], cwd=ROOT, capture_output=True, text=True, check=False)
        assert refused.returncode == 2
        assert "another run is writing this file" in refused.stderr
        assert (tmp_path / "run.jsonl").read_bytes() == before
        environment = Path(f"/proc/{ranks[0]}/environ").read_bytes().decode().split("\0")
        states = Path(next(one for one in environment if one.startswith("COMMSIM_STATES=")).partition("=")[2])
        assert states.is_dir()
        started.kill()  # as kill -9: nobody is left to clean up but the ranks themselves
        assert gone(ranks)
        assert not states.exists()


def test_a_port_that_is_taken(commsim: Callable[..., Answer], tmp_path: Path) -> None:
    import socket

    with closing(socket.socket()) as listens:
        listens.bind(("127.0.0.1", 0))
        listens.listen()
        port = listens.getsockname()[1]
        answer = commsim("bench", "barrier", "--ranks", 1, *QUICK, "--port", port, "--out", tmp_path / "run.jsonl")
    assert answer.code == 2
    assert answer.err == f"commsim: rank 0: MASTER_PORT: {port}; this port is taken; choose another\n"


def test_an_interface_that_is_missing(commsim: Callable[..., Answer], tmp_path: Path) -> None:
    given = ("--interface", "nonesuch0", "--out", tmp_path / "run.jsonl")
    answer = commsim("bench", "barrier", "--ranks", 1, *QUICK, *given)
    assert answer.code == 2
    assert answer.err.startswith("commsim: rank 0: GLOO_SOCKET_IFNAME: 'nonesuch0'; this machine has no such interface")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_nccl_without_a_gpu(commsim: Callable[..., Answer], tmp_path: Path) -> None:
    answer = commsim("bench", "all_reduce", "--ranks", 1, "--sizes", 8, "--out", tmp_path / "run.jsonl")
    assert answer.code == 3
    assert answer.err.count("\n") == 1
    assert "nccl needs NVIDIA GPUs" in answer.err


def test_without_torch(commsim: Callable[..., Answer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crew, "find_spec", lambda _: None)
    answer = commsim("bench", "all_reduce", "--ranks", 1, *QUICK, "--sizes", 8, "--out", tmp_path / "run.jsonl")
    assert answer.code == 3
    assert "pip install 'commsim[bench]'" in answer.err


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("all_rduce", "--ranks", 2), "did you mean 'all_reduce'"),
        (("all_reduce", "--ranks", 0), "1 to 1024 belong here"),
        (("all_reduce", "--ranks", 99_999), "1 to 1024 belong here"),
        (("all_reduce", "--ranks", 2, "--port", 99_999), "port: 99999; a port from 1 to 65535"),
        (("all_reduce", "--ranks", 2, "--sizes", "8..x"), "a size such as"),
        (("all_reduce", "--ranks", 2, "--dtype", "flaot"), "did you mean 'float'"),
        (("all_reduce", "--ranks", 2, "--iterations", 0), "from 1 on"),
        (("all_reduce", "--ranks", 2, "--timeout", "5"), "write a number with its unit"),
        (("all_reduce", "--ranks", 2, "--timeout", "0 s"), "above 0"),
        (("all_reduce", "--ranks", 2, "--late", "0"), "RANK=TIME"),
        (("all_reduce", "--ranks", 2, "--jitter", "normal: sd=x"), "LAW: NAME=NUMBER"),
    ],
)
def test_mistakes(given: tuple[Any, ...], said: str, commsim: Callable[..., Answer], tmp_path: Path) -> None:
    answer = commsim("bench", *given, "--backend", "gloo", "--out", tmp_path / "run.jsonl", "--dry-run")
    assert answer.code == 2
    assert said in answer.err
    assert answer.err.count("\n") == 1


def test_out_is_no_folder(commsim: Callable[..., Answer], tmp_path: Path) -> None:
    answer = commsim("bench", "barrier", "--ranks", 1, *QUICK, "--out", tmp_path)
    assert (answer.code, answer.err.count("\n")) == (2, 1)
    assert "this is a folder" in answer.err


def test_out_lies_in_a_folder(commsim: Callable[..., Answer], tmp_path: Path) -> None:
    answer = commsim("bench", "barrier", "--ranks", 1, *QUICK, "--out", tmp_path / "none" / "run.jsonl")
    assert answer.code == 2
    assert "its folder is not there" in answer.err


def test_dry_run(commsim: Callable[..., Answer], tmp_path: Path) -> None:
    asked = ("bench", "all_reduce", "--ranks", 2, *QUICK, "--sizes", "1K..4K", "--matmul", 64, "--dry-run")
    answer = commsim(*asked, "--out", tmp_path / "run.jsonl")
    assert answer.code == 0
    assert "2 ranks on gloo, 6 of 6 cases left" in answer.out
    assert f"GLOO_SOCKET_IFNAME={LOOPBACK} \\\n" in answer.out
    told = commsim(*asked, "--out", tmp_path / "run.jsonl", "--json").document
    assert [case["size_bytes"] for case in told["cases"]] == [1024, 1024, 2048, 2048, 4096, 4096]
    assert told["commands"][0][1:3] == ["-m", "bench.worker"]
    assert told["environment"]["WORLD_SIZE"] == "2"
    assert list(tmp_path.iterdir()) == []
