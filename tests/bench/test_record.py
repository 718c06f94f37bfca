"""Does a recorder write what happened in a training loop, and wait for what was only issued?"""

from __future__ import annotations

import csv
import json
import threading
import time
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

import commsim as cs
from bench.record import COLUMNS, Recorder

if TYPE_CHECKING:
    from pathlib import Path

LONG = 0.05


class Slow:
    """An operation that is done a while after it was issued, as R24 saw it: issue 25 us, wait 11 ms."""

    def wait(self) -> None:
        time.sleep(LONG)


def train(recorder: Recorder) -> None:
    for _ in range(2):
        with recorder.step():
            with recorder.operation("forward"):
                pass
            with recorder.operation("all_reduce") as timed:
                timed.wait(Slow())
    with recorder.step(10), recorder.operation('odd, "name"'):
        pass


EXPECTED = [(0, "forward"), (0, "all_reduce"), (1, "forward"), (1, "all_reduce"), (10, 'odd, "name"')]


def test_csv(tmp_path: Path) -> None:
    before = time.time()
    with Recorder(tmp_path / "steps.csv", rank=3) as recorder:
        train(recorder)
    with (tmp_path / "steps.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS == ("rank", "step", "op", "start", "duration")
    assert [(int(row["step"]), row["op"]) for row in rows] == EXPECTED
    assert {row["rank"] for row in rows} == {"3"}
    starts = [float(row["start"]) for row in rows]
    assert starts == sorted(starts)
    assert before - 0.01 <= starts[0] <= starts[-1] <= time.time() + 0.01
    assert all((float(row["duration"]) >= LONG) == (row["op"] == "all_reduce") for row in rows)


def test_json_lines(tmp_path: Path) -> None:
    with Recorder(tmp_path / "steps.jsonl") as recorder:
        train(recorder)
    rows = [json.loads(line) for line in (tmp_path / "steps.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [(row["step"], row["op"]) for row in rows] == EXPECTED
    assert all(tuple(row) == COLUMNS for row in rows)


def test_what_was_recorded_before_an_error_is_kept(tmp_path: Path) -> None:
    def fails() -> None:
        with Recorder(tmp_path / "steps.csv") as recorder, recorder.step():
            with recorder.operation("forward"):
                pass
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fails()
    assert len((tmp_path / "steps.csv").read_text(encoding="utf-8").splitlines()) == 2


def test_only_files_that_replay_reads(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"\.csv or \.jsonl"):
        Recorder(tmp_path / "steps.txt")


class Cuda:
    """A device whose events happen when a clock of the test says so."""

    now = 100.0

    class Event:
        def __init__(self, *, enable_timing: bool) -> None:
            assert enable_timing

        def record(self) -> None:
            self.at = Cuda.now

        def query(self) -> bool:
            return self.at <= Cuda.now - 1

        def elapsed_time(self, later: Cuda.Event) -> float:
            return (later.at - self.at) * 1e3

    @staticmethod
    def synchronize() -> None: ...


def test_on_a_gpu_its_own_clock_counts_and_nothing_waits_for_it(tmp_path: Path) -> None:
    with Recorder(tmp_path / "steps.csv", cuda=Cuda) as recorder:
        for _ in range(3):
            with recorder.step(), recorder.operation("backward"):
                Cuda.now += 0.25
            lines = (tmp_path / "steps.csv").read_text(encoding="utf-8")
        assert "backward" not in lines  # no event is a second old yet
        Cuda.now += 5
    with (tmp_path / "steps.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    starts = [float(row["start"]) for row in rows]
    assert [float(row["duration"]) for row in rows] == [0.25] * 3
    assert [later - first for first, later in pairwise(starts)] == pytest.approx([0.25, 0.25])


def test_replay_reads_it_and_finds_the_slow_rank(tmp_path: Path) -> None:
    met = threading.Barrier(3)

    def loop(rank: int) -> None:
        with Recorder(tmp_path / f"steps.{rank}.csv", rank) as recorder:
            for _ in range(6):
                with recorder.step():
                    with recorder.operation("forward"):
                        time.sleep(0.1 if rank == 2 else 0.005)
                    with recorder.operation("all_reduce"):
                        met.wait()

    ranks = [threading.Thread(target=loop, args=(rank,)) for rank in range(3)]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join()
    found = cs.replay(*(tmp_path / f"steps.{rank}.csv" for rank in range(3)))
    assert found.finding.cause == "one worker"
    assert [one.rank for one in found.worst] == [2]
