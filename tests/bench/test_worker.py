"""Do real ranks measure what they are asked, keep every sample, and go on where they were?"""

from __future__ import annotations

import resource
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import commsim as cs
from tests.bench.started import QUICK, finish, records, start

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KIB = 1024
LATE_S = 0.1
JITTER = {"law": "uniform", "parameters": {"low": 0.01, "high": 0.03}, "seed": 7}
OPS: list[dict[str, Any]] = [
    {"op": "all_reduce", "size_bytes": 64 * KIB},
    {"op": "all_reduce", "size_bytes": 64 * KIB, "in_place": False, "dtype": "bfloat16"},
    {"op": "all_gather", "size_bytes": 100_003},
    {"op": "all_gather", "size_bytes": 96 * KIB, "in_place": True},
    {"op": "reduce_scatter", "size_bytes": 96 * KIB, "dtype": "int32"},
    {"op": "reduce_scatter", "size_bytes": 96 * KIB, "in_place": True},
    {"op": "broadcast", "size_bytes": 300_000},
    {"op": "reduce", "size_bytes": 300_000, "dtype": "half"},
    {"op": "all_to_all", "size_bytes": 96 * KIB},
    {"op": "all_to_all", "matrix": [[0, 400, 80_000], [4, 8, 12], [0, 0, 40]]},
    {"op": "send_recv", "size_bytes": 300_000, "dtype": "uint8"},
    {"op": "barrier"},
    {"op": "all_reduce", "size_bytes": 0},
    {"op": "all_reduce", "size_bytes": 64 * KIB, "group": [2, 0]},
    {"op": "all_reduce", "size_bytes": 64 * KIB, "group": [[0], [1], [2]], "label": "alone"},
    {"op": "all_reduce", "size_bytes": 64 * KIB, "matmul": 64},
    {"op": "all_reduce", "size_bytes": 64 * KIB, "late": {"1": LATE_S}},
    {"op": "barrier", "jitter": JITTER},
    {"op": "barrier", "jitter": JITTER, "label": "again"},
    {"op": "barrier", "jitter": {**JITTER, "how": "spin"}},
]


def test_every_operation_is_measured_checked_and_kept(tmp_path: Path) -> None:
    assert finish(start([one | QUICK for one in OPS], tmp_path, 3)) == [(0, "")] * 3
    run, *found = records(tmp_path / "run.jsonl")
    assert run["schema"] == 1
    assert run["machine"]["hosts"] == [{"ranks": [0, 1, 2], "accelerator": ""}]
    assert run["settings"]["interface"] == "loopback"
    assert [one["op"] for one in found] == [one["op"] for one in OPS]
    assert all(one["checked"] for one in found)
    assert all(one["timed"] == "wait" for one in found)
    for one in found:
        shapes = {tuple(len(rank) for rank in one[key]) for key in ("samples_s", "arrival_s")}
        members = sum(map(len, one["conditions"]["group"])) if "group" in one.get("conditions", {}) else 3
        assert shapes == {(QUICK["iterations"],) * members}
        assert [min(turn) for turn in zip(*one["arrival_s"])] == [0.0] * QUICK["iterations"]
    _holds_what_each_case_is_about(dict(enumerate(found)))
    _is_read_back(tmp_path / "run.jsonl")


def _holds_what_each_case_is_about(found: dict[int, dict[str, Any]]) -> None:
    assert (found[2]["size_bytes"], found[2]["asked_bytes"]) == (99_996, 100_003)  # 8333 floats of each of 3 ranks
    assert [found[n]["in_place"] for n in (0, 1, 2, 3)] == [True, False, False, True]
    assert (found[9]["size_bytes"], found[13]["ranks"]) == (80_400, 2)
    assert len(found[15]["matmul_s"]) == 3
    assert all(alone > 0 for alone in found[15]["matmul_alone_s"])
    _is_drawn_anew_and_again_the_same([found[n]["delay_s"] for n in (17, 18, 19)])
    late = found[16]
    doubt = late["clock_uncertainty_s"]
    for turn, took in zip(zip(*late["arrival_s"]), zip(*late["samples_s"])):
        assert turn.index(max(turn)) == 1
        assert max(turn) > LATE_S - doubt - 0.05
        assert min(took[0], took[2]) > took[1]  # the others wait for it: the late rank's own time is the transfer's


def _is_drawn_anew_and_again_the_same(delays: list[list[list[float]]]) -> None:
    assert delays[0] == delays[1] == delays[2]
    assert len({delay for rank in delays[0] for delay in rank}) == 3 * QUICK["iterations"]
    assert all(0.01 <= delay <= 0.03 for rank in delays[0] for delay in rank)


def _is_read_back(file: Path) -> None:
    read = cs.measurements(file)
    assert sum(len(one.rows) for one in read) == len(OPS)
    assert [one.library for one in read] == ["gloo"] * len(read)
    assert not any(one.problems for one in read)
    late = next(one for one in read if "late" in one.settings)
    assert late.seconds[0] < LATE_S / 2  # waiting for the late rank is not counted as communication


def test_a_run_goes_on_where_it_was_and_only_with_the_same_ranks(tmp_path: Path) -> None:
    cases = [{"op": "broadcast", "size_bytes": 4, **QUICK}, {"op": "broadcast", "size_bytes": 8, **QUICK}]
    assert finish(start(cases[:1], tmp_path, 1)) == [(0, "")]
    begun = (tmp_path / "run.jsonl").read_bytes()
    with (tmp_path / "run.jsonl").open("ab") as file:
        file.write(b'{"record": "op", "op": "broad')  # as a crash leaves it
    assert finish(start(cases, tmp_path, 1)) == [(0, "")]
    assert (tmp_path / "run.jsonl").read_bytes().startswith(begun)
    assert [one.get("size_bytes") for one in records(tmp_path / "run.jsonl")] == [None, 4, 8]
    code, said = finish(start(cases, tmp_path, 2))[0]
    assert code == 2
    assert "machine {'hosts': [{'ranks': [0]" in said
    assert "choose another file" in said


def test_ranks_wait_for_a_token_together(tmp_path: Path) -> None:
    cases = [{"op": "barrier", **QUICK}, {"op": "barrier", "wait_for": "faults-set", **QUICK}]
    started = start(cases, tmp_path, 2)
    file = tmp_path / "run.jsonl"
    while not (file.exists() and file.read_bytes().count(b"\n") == 2):
        assert all(process.poll() is None for process in started)
        time.sleep(0.05)
    (tmp_path / "run.jsonl.faults-set").touch()
    assert finish(started) == [(0, "")] * 2
    assert len(records(file)) == 3


def test_a_full_disk_ends_the_run_and_keeps_whole_records(tmp_path: Path) -> None:
    cases = [{"op": "broadcast", "size_bytes": 4 * n, "iterations": 20, "warmup": 0} for n in range(1, 9)]
    with limited(kib=2):  # more than two records, less than eight: stands for a disk of that size
        ((code, said),) = finish(start(cases, tmp_path, 1))
    assert code == 4, said
    assert "what was measured until then is kept" in said
    assert (tmp_path / "run.jsonl").read_bytes().endswith(b"}\n")
    assert 2 <= len(records(tmp_path / "run.jsonl")) < 9


@contextmanager
def limited(kib: int) -> Iterator[None]:
    """Let no file of this process, or of those that it starts, grow beyond so much."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (kib * KIB, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_what_cannot_be_measured_is_said_before_anything_is(tmp_path: Path) -> None:
    ((code, said),) = finish(start([{"op": "barrier"}, {"op": "all_reduce", "group": [0, 5]}], tmp_path, 1))
    assert code == 2
    assert said.splitlines() == ["rank 0: case 2, all_reduce: ranks: 5; ranks from 0 to 0 belong here"]
    assert not (tmp_path / "run.jsonl").exists()


def test_ranks_that_wait_for_a_token_end_when_the_first_is_gone(tmp_path: Path) -> None:
    cases = [{"op": "barrier", **QUICK}, {"op": "barrier", "wait_for": "never", **QUICK}]
    first, second = started = start(cases, tmp_path, 2)
    file = tmp_path / "run.jsonl"
    while not (file.exists() and file.read_bytes().count(b"\n") == 2):
        assert all(process.poll() is None for process in started)
        time.sleep(0.05)
    first.kill()
    code, said = finish([second])[0]
    first.communicate()
    assert code == 4
    assert said.splitlines()[-1].startswith("rank 1: case 2, waiting for a token: ")
    assert len(records(file)) == 2
