"""Is what hangs found in dumps of any number of ranks and groups?"""

from __future__ import annotations

import pytest

from commsim.measurement.traces.dumps import DumpTrace, Entry, Group
from commsim.stragglers.replay.dumps import replay_dumps
from commsim.stragglers.replay.result import NO_CAUSE, ONE_WORKER


def group(last: int, *, first: int = 1, done: int = -1, seconds: float | None = None, **odd: str) -> Group:
    """Return all_reduces up to a number, the last of which may be odd."""
    usual = {"op": "nccl:all_reduce", "sizes": "[[8]]", "dtypes": "['Float']"}
    entries = {
        number: Entry(**usual | (odd if number == last else {}), state="completed", seconds=seconds)
        for number in range(first, last + 1)
    }
    return Group(entries, last, done)


def trace(**groups: list[Group]) -> DumpTrace:
    named = {name: dict(enumerate(ranks)) for name, ranks in groups.items()}
    return DumpTrace(named, {}, tuple(range(max(map(len, groups.values())))))


@pytest.mark.parametrize(
    ("ranks", "cause"),
    [
        ([group(9), group(9), group(5)], "rank 2 missing at seq 6"),
        ([group(9), group(5), group(5)], "rank 1, 2 missing at seq 6"),
        ([group(9, first=7), group(9), group(9, first=4)], NO_CAUSE),
        ([group(9), group(9, op="nccl:barrier"), group(9)], "rank 1 mismatched op at seq 9"),
        ([group(9), group(9, sizes="[[4]]"), group(9)], "rank 1 mismatched sizes at seq 9"),
        ([group(9), group(9), group(9, dtypes="['Half']")], "rank 2 mismatched dtype at seq 9"),
        ([group(9, op="all_to_all", sizes="[[4]]"), group(9, op="all_to_all")], NO_CAUSE),
        ([group(9, done=9), group(9, done=7)], NO_CAUSE),
        ([group(9, done=7), group(9, done=6)], "stuck at seq 8"),
    ],
)
def test_what_hangs(ranks: list[Group], cause: str) -> None:
    assert replay_dumps(trace(world=ranks)).finding.cause == cause


def test_enqueued_and_completed_tell_where_it_is_stuck() -> None:
    """4489 were enqueued and 4485 completed (verl issue 1158)."""
    found = replay_dumps(trace(world=[Group({}, 4489, 4485)] * 2))
    assert found.finding.cause == "stuck at seq 4486"


def test_the_first_problem_is_the_cause_and_others_are_told() -> None:
    found = replay_dumps(trace(world=[group(9), group(9), group(3)], tensor=[group(2), group(1)]))
    assert found.finding.cause == "rank 2 missing at seq 4"
    assert "rank 1 missing at seq 2" in found.finding.evidence


def test_a_member_that_has_begun_nothing_is_missing() -> None:
    made = DumpTrace({"tensor": {0: group(2)}}, {"tensor": (0, 1)}, (0, 1))
    assert replay_dumps(made).finding.cause == "rank 1 missing at seq 1"


def test_timed_dumps_tell_who_waits_least() -> None:
    found = replay_dumps(trace(world=[group(9, seconds=one) for one in (0.5, 0.1, 0.6)]))
    assert found.finding.cause == ONE_WORKER
    assert [one.rank for one in found.worst] == [1]
