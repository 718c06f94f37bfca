"""Do replays of events, of durations and of dumps name the one that is late, and say so when nobody can tell?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.measurement.traces.events import UNNUMBERED, EventTrace, Rows, assembled
from commsim.stragglers.replay.events import replay_events
from commsim.stragglers.replay.replay import replay
from commsim.stragglers.replay.result import COMMUNICATION, NO_CAUSE, ONE_WORKER, UNKNOWN

if TYPE_CHECKING:
    from pathlib import Path

    from commsim.measurement.traces.steps import Floats

HEAD = "rank,step,op,start,duration"
REDUCE_SCATTER_US = (71832, 49876, 31408, 39134, 11663, 26204, 54121, 52210)
"""Means by rank of an 8-GPU run, Llama 70B with FSDP on MI300X (AMD-AGI/TraceLens pull request 599)."""
RANKS, STEPS = 4, 6


def events(work: Floats, transfer: Floats, *, off: Floats | None = None) -> EventTrace:
    """Return the trace of ranks that work [step, part, rank] and meet [step, part] after each part."""
    rows: list[tuple[Any, ...]] = []
    clock = np.zeros(work.shape[2]) if off is None else off
    now = 0.0
    for step, parts in enumerate(work):
        for part, own in enumerate(parts):
            end = now + own.max() + transfer[step, part]
            for rank, seconds in enumerate(own):
                arrives = now + seconds
                rows.append((rank, step, f"part {part}", "", UNNUMBERED, now + clock[rank], seconds))
                rows.append((rank, step, "all_reduce", "all", UNNUMBERED, arrives + clock[rank], end - arrives))
            now = end
    return assembled(Rows(*(np.array(column) for column in zip(*rows))), "made up")


def even() -> Floats:
    return np.tile(np.array([1.0, 2.0])[None, :, None], (STEPS, 1, RANKS))


def test_nobody_late() -> None:
    found = replay_events(events(even(), np.full((STEPS, 2), 0.1)))
    assert found.actual == pytest.approx(3.2)
    assert found.slowdown == pytest.approx(1.0)
    assert found.finding.cause == NO_CAUSE


@given(st.integers(0, 2**32 - 1))
def test_the_replay_of_everything_is_the_trace(seed: int) -> None:
    rng = np.random.default_rng(seed)
    work, transfer = rng.uniform(0.5, 2.0, (STEPS, 2, RANKS)), rng.uniform(0.01, 0.1, (STEPS, 2))
    found = replay_events(events(work, transfer))
    assert found.actual == pytest.approx(float((work.max(axis=2) + transfer).sum()) / STEPS)
    assert found.measured == pytest.approx(found.actual)


@pytest.mark.parametrize("off", [None, np.array([0.0, 50.0, -3.0, 1.0])])
def test_a_slow_rank_on_clocks_that_agree_or_not(off: Floats | None) -> None:
    """Ideally its half second is a quarter of that, for the mean counts it: 3.5 over 3.125 without transfers."""
    work = even()
    work[:, 1, 2] += 0.5
    found = replay_events(events(work, np.full((STEPS, 2), 0.1), off=off))
    assert found.finding.cause == ONE_WORKER
    assert [one.rank for one in found.worst] == [2]
    assert found.slowdown == pytest.approx(3.7 / 3.325, rel=1e-4)
    assert found.by_op["part 1"] == pytest.approx(found.slowdown, rel=1e-4)
    assert found.by_op["part 0"] == pytest.approx(1.0, rel=1e-4)
    assert found.transfers == pytest.approx({"all_reduce": 0.1}, rel=1e-4)
    late = next(one for one in found.waiting if one.rank == 2)
    assert late.waits == pytest.approx(0.0, abs=1e-6)


def test_transfers_that_vary() -> None:
    transfer = np.full((STEPS, 2), 0.1)
    transfer[2] = 3.0
    assert replay_events(events(even(), transfer)).finding.cause == COMMUNICATION


def test_nobody_is_blamed_for_jitter() -> None:
    work = even() * np.random.default_rng(0).lognormal(0.0, 0.2, (STEPS, 2, RANKS))
    found = replay_events(events(work, np.full((STEPS, 2), 0.1)))
    assert found.finding.cause == UNKNOWN


def test_one_rank_alone_tells_nothing() -> None:
    found = replay_events(events(even()[..., :1], np.full((STEPS, 2), 0.1)))
    assert (found.finding.cause, found.slowdown) == (UNKNOWN, None)


def written(path: Path, rows: list[str], head: str = HEAD) -> Path:
    path.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("start", ["", "0,"])
def test_who_waits_least_is_last(tmp_path: Path, start: str) -> None:
    """Durations of one collective, with and without starts: rank 4 is last, and its 11.66 ms are the transfer."""
    rows = [f"{rank},reduce_scatter,{start}{us / 1e6}" for rank, us in enumerate(REDUCE_SCATTER_US)]
    head = "rank,op,start,duration" if start else "rank,op,duration"
    found = replay(written(tmp_path / "t.csv", rows, head))
    assert found.finding.cause == ONE_WORKER
    assert [one.rank for one in found.worst] == [4]
    assert found.transfers["reduce_scatter"] == pytest.approx(11.663e-3)


@pytest.mark.data
def test_tracelens_summaries(data: Path) -> None:
    """AMD-AGI/TraceLens pull request 599: transfers of 11.66 and 6.04 ms, starts 60.2 ms apart, rank 4 is last."""
    found = replay(data / "formats/traces/tracelens_mi300_llama70b_fsdp_nccl_summary_")
    assert [one.rank for one in found.worst] == [4]
    assert found.transfers["reduce_scatter of 855654400 elements"] == pytest.approx(11.66e-3, abs=5e-6)
    assert found.transfers["all_gather of 106956800 elements"] == pytest.approx(6.04e-3, abs=5e-6)
    assert "60.2 ms apart" in " ".join(found.finding.evidence)


def test_wall_time_of_a_backward_pass_tells_nobody(tmp_path: Path) -> None:
    """200 ms were added to rank 1, and every rank shows it (traceml issue 252)."""
    times = (293.0, 292.2, 293.0, 293.1)
    rows = [f"{rank},{step},backward,{step},{ms / 1e3}" for step in range(3) for rank, ms in enumerate(times)]
    found = replay(written(tmp_path / "t.csv", rows))
    assert found.finding.cause == UNKNOWN
    assert "wall time" in " ".join(found.finding.evidence)
    assert found.worst == ()


def test_time_before_the_collective_does(tmp_path: Path) -> None:
    """The same run with 150 ms more in rank 2's data loader: 199.7 against 10.4 ms (traceml issue 252)."""
    rows = []
    for rank in range(4):
        loads = 0.1997 if rank == 2 else 0.0104
        rows += [f"{rank},0,dataloader,0,{loads}", f"{rank},0,backward,{loads},{0.4 - loads}"]
    found = replay(written(tmp_path / "t.csv", rows))
    assert [one.rank for one in found.worst] == [2]
    assert "dataloader" in " ".join(found.finding.evidence)


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "cause", "ranks"),
    [
        ("missing", "rank 3 missing at seq 6", [3]),
        ("mismatch", "rank 1 mismatched op at seq 6", [1]),
        ("gloo_ok", NO_CAUSE, []),
    ],
)
@pytest.mark.parametrize("kind", ["pkl", "json"])
def test_dumps_that_hang(data: Path, name: str, cause: str, ranks: list[int], kind: str) -> None:
    """Rank 3 stopped after 5 collectives; rank 1 called barrier where the others gather."""
    found = replay(*sorted((data / "formats/flight_recorder").glob(f"fr_{name}_rank*.{kind}")))
    assert found.finding.cause == cause
    assert [one.rank for one in found.worst] == ranks


def test_rare_operations_are_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the longest operations are told apart; what is left is still late."""
    monkeypatch.setattr("commsim.stragglers.replay.work._MOST_PARTS", 1)
    work = even()
    work[:, 0, 2] += 0.5
    found = replay_events(events(work, np.full((STEPS, 2), 0.1)))
    assert set(found.by_op) == {"part 1", "work", "all_reduce"}
    assert found.by_op["work"] == pytest.approx(found.slowdown)


def test_ranks_that_meet_in_another_order(tmp_path: Path) -> None:
    """Rank 0 has group a first, rank 1 group b, as streams may: no time is lost in the replay."""
    rows = ["0,0,all_reduce,0,1,a", "0,0,all_gather,1,1,b", "1,0,all_gather,0,2,b", "1,0,all_reduce,3,1,a"]
    found = replay(written(tmp_path / "t.csv", rows, f"{HEAD},group"))
    assert found.actual == pytest.approx(4.0, abs=0.7)


def test_who_begins_late_is_late(tmp_path: Path) -> None:
    """Rank 1 works as long as the others, but begins 5 s later than they do: nobody recorded what it did before."""
    rows = [f"{rank},0,forward,{5.0 * (rank == 1)},1" for rank in range(3)]
    rows += [f"{rank},0,all_reduce,{1 + 5.0 * (rank == 1)},{5.5 - 5.0 * (rank == 1)}" for rank in range(3)]
    found = replay(written(tmp_path / "t.csv", rows))
    assert found.actual == pytest.approx(6.5)
    assert [one.rank for one in found.worst] == [1]
    assert next(iter(found.by_op)) == "work"


def test_groups_of_a_step_do_the_same_thing(tmp_path: Path) -> None:
    """Group b takes 1.5 s where a takes 1; ideally both take 1.25, though b meets second in every step."""
    rows, now = [f"{rank},0,forward,0,0.1,all" for rank in range(4)], 0.0
    for number in range(4):
        for rank in range(4):
            works = 1.5 if rank > 1 else 1.0
            rows.append(f"{rank},{number},all_reduce,{now + works},0.01,{'ab'[rank // 2]}")
            rows.append(f"{rank},{number},all_gather,{now + works + 0.01},{1.51 - works},all")
        now += 1.52
    found = replay(written(tmp_path / "t.csv", rows, f"{HEAD},group"))
    assert found.slowdown == pytest.approx(1.52 / 1.27)


def test_what_takes_no_time_is_not_before_itself(tmp_path: Path) -> None:
    rows = [f"{rank},{step},barrier,{step + 1 + rank},{1 - rank}" for step in (0, 2, 4) for rank in range(2)]
    found = replay(written(tmp_path / "t.csv", rows))
    assert found.actual == pytest.approx(5 / 3)  # from 1 s, when the first of them comes, to 6 s
    assert [one.rank for one in found.worst] == [1]


def test_a_rank_that_meets_nobody(tmp_path: Path) -> None:
    rows = ["0,0,all_reduce,1,1", "1,0,all_reduce,1.5,0.5", "2,0,forward,0,3"]
    found = replay(written(tmp_path / "t.csv", rows))
    assert found.actual == pytest.approx(3.0)


@pytest.mark.parametrize(("slow", "named"), [((1,), [1]), ((1, 5), [1, 5]), ((1, 3, 5), [])])
def test_few_may_stand_out_and_not_many(tmp_path: Path, slow: tuple[int, ...], named: list[int]) -> None:
    rows = [f"{rank},load,{0.2 if rank in slow else 0.01}" for rank in range(8)]
    found = replay(written(tmp_path / "t.csv", rows, "rank,op,duration"))
    assert [one.rank for one in found.worst] == named


def test_the_pass_that_others_wait_in(tmp_path: Path) -> None:
    """Rank 1 takes less time in what holds everybody's waiting: it is there last."""
    rows = [f"{rank},backward,{0.1 if rank == 1 else 0.3}" for rank in range(4)]
    found = replay(written(tmp_path / "t.csv", rows, "rank,op,duration"))
    assert [one.rank for one in found.worst] == [1]
    assert "waits least" in found.finding.evidence[0]
