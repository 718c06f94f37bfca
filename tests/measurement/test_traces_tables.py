"""Are plain tables of operations read, and clocks that are apart set?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from bench.record import Recorder
from commsim.errors import InputError
from commsim.measurement.traces.events import ALONE, EventTrace
from commsim.measurement.traces.read import trace

if TYPE_CHECKING:
    from pathlib import Path
from tests.measurement.traced import HEAD, table


def test_plain_tables_meet_in_collectives(tmp_path: Path) -> None:
    rows = ("0,0,forward,0.0,1.0", "0,0,all_reduce,1.0,1.5", "1,0,forward,0.0,2.0", "1,0,all_reduce,2.0,0.5")
    found = trace([table(tmp_path / "t.csv", *rows)])
    assert isinstance(found, EventTrace)
    assert found.names == ("all_reduce", "forward")
    assert np.count_nonzero(found.meeting == 0) == 2


def test_plain_tables_of_two_groups(tmp_path: Path) -> None:
    rows = [f"{rank},0,all_reduce,1.0,1.0,{rank // 2}" for rank in range(4)]
    found = trace([table(tmp_path / "t.csv", *rows, head=f"{HEAD},group")])
    assert isinstance(found, EventTrace)
    assert found.meeting.max() == 1


def test_plain_tables_one_a_rank(tmp_path: Path) -> None:
    for rank in range(2):
        table(tmp_path / f"rank{rank}.csv", f"{rank},0,all_reduce,1.0,1.0")
    found = trace([tmp_path])
    assert isinstance(found, EventTrace)
    assert found.ranks == (0, 1)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ((), "rows with rank"),
        (("0,0,backward,0.0,nan",), "duration, row 1: nan"),
        (("0,0,backward,0.0,-1",), "at least 0"),
        (("0,0,backward,soon,1",), "start: 'soon'"),
        (("-1,0,backward,0,1",), "rank, row 1"),
    ],
)
def test_plain_tables_that_are_none(tmp_path: Path, rows: tuple[str, ...], said: str) -> None:
    with pytest.raises(InputError, match=said):
        trace([table(tmp_path / "t.csv", *rows)])


def test_clocks_apart_are_set_by_the_ends_of_collectives(tmp_path: Path) -> None:
    """Rank 1's clock is 60 s ahead; groups of two overlap, so that rank 0 and rank 3 never meet."""
    rows = []
    for number in range(5):
        for group, members in (("a", (0, 1)), ("b", (1, 2)), ("c", (2, 3))):
            end = number * 10.0 + "abc".index(group) + 1.0
            for rank in members:
                start = end - 0.1 * (1 + rank)
                rows.append(f"{rank},{number},all_reduce,{start + 60.0 * (rank == 1)!r},{end - start!r},{group}")
    found = trace([table(tmp_path / "t.csv", *rows, head=f"{HEAD},group")])
    assert isinstance(found, EventTrace)
    for meeting in range(int(found.meeting.max()) + 1):
        assert np.ptp(found.end[found.meeting == meeting]) < 1e-3
    assert any("clocks up to 60 s apart" in said for said in found.repairs)


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_what_a_training_loop_recorded(tmp_path: Path, kind: str) -> None:
    for rank in range(2):
        with Recorder(tmp_path / f"steps.{rank}.{kind}", rank) as recorder:
            for _ in range(3):
                with recorder.step():
                    for name in ("forward", "all_reduce, of a bucket"):
                        with recorder.operation(name):
                            pass
    found = trace([tmp_path / "steps."])
    assert isinstance(found, EventTrace)
    assert (found.ranks, found.steps, found.repairs) == ((0, 1), (0, 1, 2), ())
    assert np.count_nonzero(found.meeting != ALONE) == 6


def test_json_lines_that_are_damaged(tmp_path: Path) -> None:
    good = [json.dumps({"rank": rank, "op": "all_reduce", "start": 0.0, "duration": 1.0}) for rank in range(2)]
    (tmp_path / "t.jsonl").write_text("\n".join([*good, "[]", '{"rank": 2}', good[0][:20]]))
    found = trace([tmp_path / "t.jsonl"])
    assert isinstance(found, EventTrace)
    assert any("3 rows with missing fields" in said for said in found.repairs)


def test_clocks_a_little_apart_are_set_where_they_contradict(tmp_path: Path) -> None:
    """Rank 0 would leave 4 ms before rank 1 comes."""
    rows = [f"{rank},{number},all_reduce,{number + 0.005 * rank},0.001" for rank in range(2) for number in range(9)]
    found = trace([table(tmp_path / "t.csv", *rows)])
    assert isinstance(found, EventTrace)
    assert np.ptp(found.start[found.meeting == 3]) < 1e-6
    assert any("0.005 s apart" in said for said in found.repairs)


def test_a_lost_collective_spoils_its_step_alone(tmp_path: Path) -> None:
    """Rank 1 lacks the first of two in step 0: without numbers the second is taken for it, but step 1 is right."""
    rows = [f"{rank},{step},all_reduce,{10 * step + at},0.5" for rank in (0, 1) for step in (0, 1) for at in (1, 2)]
    found = trace([table(tmp_path / "t.csv", *(row for row in rows if row != "1,0,all_reduce,1,0.5"))])
    assert isinstance(found, EventTrace)
    later = found.step == 1
    assert [np.ptp(found.start[later & (found.meeting == one)]) for one in set(found.meeting[later].tolist())] == [0, 0]
