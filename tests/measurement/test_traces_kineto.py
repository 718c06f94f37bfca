"""Are profiles of Kineto read, their collectives joined over ranks, and told where they are damaged?"""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from commsim.errors import InputError
from commsim.measurement.traces import kineto
from commsim.measurement.traces.events import ALONE, EventTrace
from commsim.measurement.traces.read import trace

if TYPE_CHECKING:
    from pathlib import Path
from tests.measurement.traced import kernel, profile, step


def test_kineto_of_two_ranks(tmp_path: Path) -> None:
    """Rank 1 begins 3 ms later, and both end together; its second file is gzipped."""
    one = profile(tmp_path / "a.json", 0, [step(7, 0.0), kernel(1000.0, 4000.0)])
    other = profile(tmp_path / "b.json", 1, [step(7, 0.0), kernel(4000.0, 1000.0)])
    (tmp_path / "b.json.gz").write_bytes(gzip.compress(other.read_bytes()))
    found = trace([one, tmp_path / "b.json.gz"])
    assert isinstance(found, EventTrace)
    assert found.steps == (7,)
    assert found.names == ("all_reduce",)
    assert np.array_equal(found.meeting, [0, 0])
    assert found.start == pytest.approx([0.001, 0.004])
    assert found.seconds == pytest.approx([0.004, 0.001])


def test_kineto_numbers_what_order_does_not_tell(tmp_path: Path) -> None:
    """Rank 1's profiler began late: its first collective is the second of the group."""
    profile(tmp_path / "r_0.json", 0, [kernel(1.0, 1.0, Seq=1), kernel(5.0, 1.0, Seq=2)])
    profile(tmp_path / "r_1.json", 1, [kernel(5.0, 1.0, Seq=2)])
    found = trace([tmp_path])
    assert isinstance(found, EventTrace)
    assert sorted(found.meeting.tolist()) == [ALONE, 0, 0]
    assert any("only one rank has" in said for said in found.repairs)


def test_kineto_says_where_collectives_ran(tmp_path: Path) -> None:
    on_cpu = kernel(1.0, 1.0) | {"cat": "cpu_op", "name": "gloo:all_reduce"}
    for name, event, expected in (("cpu", on_cpu, True), ("gpu", kernel(1.0, 1.0), False)):
        (tmp_path / name).mkdir()
        for rank in (0, 1):
            profile(tmp_path / name / f"r_{rank}.json", rank, [event])
        assert any("(gloo)" in said for said in trace([tmp_path / name]).repairs) == expected


def test_kineto_groups_are_apart(tmp_path: Path) -> None:
    names = {"Process Group Name": "tp"}
    profile(tmp_path / "r_0.json", 0, [kernel(1.0, 1.0), kernel(3.0, 1.0, **names)])
    profile(tmp_path / "r_1.json", 1, [kernel(1.0, 1.0, **names), kernel(3.0, 1.0)])
    found = trace([tmp_path / "r_"])
    assert isinstance(found, EventTrace)
    assert {tuple(sorted(found.start[found.meeting == one])) for one in (0, 1)} == {(1e-6, 3e-6)}


def test_kineto_without_metadata_goes_by_the_name_of_the_file(tmp_path: Path) -> None:
    plain = kernel(1.0, 1.0)
    plain["args"] = {}
    for rank in (0, 3):
        profile(tmp_path / f"trace_rank{rank}.json", None, [plain])
    found = trace([tmp_path])
    assert isinstance(found, EventTrace)
    assert found.ranks == (0, 3)
    assert any("matched by their order" in said for said in found.repairs)


def test_kineto_cut_short_keeps_what_is_there(tmp_path: Path) -> None:
    path = profile(tmp_path / "r_0.json", 0, [kernel(float(start), 1.0) for start in range(100)])
    path.write_text(path.read_text()[:-5000])
    found = trace([path])
    assert isinstance(found, EventTrace)
    assert 60 < found.start.size < 100
    assert any("ends early" in said for said in found.repairs)


def test_kineto_that_holds_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kineto, "MOST_EVENTS", 3)
    with pytest.raises(InputError, match="more than 3 events"):
        trace([profile(tmp_path / "r_0.json", 0, [kernel(1.0, 1.0)] * 5)])


def test_kineto_of_one_rank_twice_and_of_none(tmp_path: Path) -> None:
    for name in ("a", "b"):
        profile(tmp_path / f"{name}.json", 0, [kernel(1.0, 1.0)])
    with pytest.raises(InputError, match="rank 0 a second time"):
        trace([tmp_path])
    with pytest.raises(InputError, match="no collective"):
        trace([profile(tmp_path / "c.json", 0, [step(1, 0.0)])])


def test_messages_meet_if_they_tell_their_peer(tmp_path: Path) -> None:
    def message(start: float, **arguments: object) -> dict[str, Any]:
        return kernel(start, 2.0, **arguments) | {"name": "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"}

    profile(tmp_path / "r_0.json", 0, [message(1.0, **{"Collective name": "send", "Src Rank": 0, "Dst Rank": 1})])
    profile(tmp_path / "r_1.json", 1, [message(1.5, **{"Collective name": "recv", "Src Rank": 0, "Dst Rank": 1})])
    profile(tmp_path / "r_2.json", 2, [message(1.5, **{"Collective name": "recv"})])
    found = trace([tmp_path / "r_"])
    assert isinstance(found, EventTrace)
    assert [found.ranks[one] for one in found.rank[found.meeting == 0]] == [0, 1]
    assert any("1 sends and receives, whose peers are not told" in said for said in found.repairs)


def test_kernels_belong_to_the_step_that_launched_them(tmp_path: Path) -> None:
    """The CPU of rank 0 is a step ahead of its GPU, that of rank 1 is not; without links the GPU's own steps tell."""
    late = [step(1, 0.0), step(2, 100.0), kernel(150.0, 10.0, **{"External id": 5}), kernel(250.0, 10.0)]
    launch = {
        "ph": "X",
        "cat": "cpu_op",
        "name": "record_param_comms",
        "ts": 50.0,
        "dur": 1.0,
        "args": {"External id": 5},
    }
    on_gpu = [step(1, 140.0) | {"cat": "gpu_user_annotation"}, step(2, 240.0) | {"cat": "gpu_user_annotation"}]
    profile(tmp_path / "r_0.json", 0, [launch, *late, *on_gpu])
    profile(tmp_path / "r_1.json", 1, [step(1, 0.0), step(2, 200.0), kernel(150.0, 10.0), kernel(250.0, 10.0)])
    found = trace([tmp_path / "r_"])
    assert isinstance(found, EventTrace)
    assert [found.steps[one] for one in found.step] == [1, 1, 2, 2]
    assert sorted(found.meeting.tolist()) == [0, 0, 1, 1]


def test_collectives_before_the_first_step_are_left_out(tmp_path: Path) -> None:
    found = trace([profile(tmp_path / "r_0.json", 0, [kernel(1.0, 1.0), step(4, 5.0), kernel(6.0, 1.0)])])
    assert isinstance(found, EventTrace)
    assert found.steps == (4,)
    assert any("1 collectives before the first step" in said for said in found.repairs)
