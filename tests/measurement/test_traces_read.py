"""Is every other format of traces told from the rest, read, and refused or mended where it is damaged?"""

from __future__ import annotations

import gzip
import json
import os
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from bench.record import Recorder
from commsim.errors import InputError
from commsim.measurement.traces import columns, flight_recorder, kineto
from commsim.measurement.traces.calls import CallTrace
from commsim.measurement.traces.dumps import DumpTrace
from commsim.measurement.traces.events import ALONE, EventTrace
from commsim.measurement.traces.names import collective_of
from commsim.measurement.traces.read import trace

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("_allgather_base", "all_gather"),
        ("allgather_into_tensor_coalesced", "all_gather"),
        ("_reduce_scatter_base", "reduce_scatter"),
        ("all_to_allv", "all_to_all"),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)", "all_reduce"),
        ("gloo:barrier", "barrier"),
        ("backward", None),
    ],
)
def test_names_of_collectives(name: str, meant: str | None) -> None:
    assert collective_of(name) == meant


def kernel(start: float, duration: float, **arguments: object) -> dict[str, Any]:
    name = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
    about = {"Collective name": "allreduce", "Process Group Name": "0", "In msg nelems": 64, "dtype": "BFloat16"}
    return {"ph": "X", "cat": "kernel", "name": name, "ts": start, "dur": duration, "args": about | arguments}


def profile(path: Path, rank: int | None, events: list[dict[str, Any]], *, world: int = 2) -> Path:
    told = {} if rank is None else {"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": world}}
    path.write_text(json.dumps({"schemaVersion": 1, **told, "traceEvents": events}), encoding="utf-8")
    return path


def step(number: int, start: float) -> dict[str, Any]:
    return {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{number}", "ts": start, "dur": 1e4, "args": {}}


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


def test_gzip_cut_short(tmp_path: Path) -> None:
    path = profile(tmp_path / "r_0.json", 0, [kernel(float(start), float(start % 7)) for start in range(9000)])
    (tmp_path / "r_0.json.gz").write_bytes(gzip.compress(path.read_bytes())[:9000])
    with pytest.raises(InputError, match="ends early"):
        trace([tmp_path / "r_0.json.gz"])


def test_unpacked_files_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "MOST_BYTES", 10_000)
    (tmp_path / "bomb.json.gz").write_bytes(gzip.compress(b" " * 100_000))
    with pytest.raises(InputError, match="more than 10000 B"):
        trace([tmp_path / "bomb.json.gz"])


def operation(rank: int, number: int, microseconds: float, times: tuple[int, int] | None = None) -> dict[str, Any]:
    performed: dict[str, Any] = {"coll": "AllReduce", "coll_sn": number, "coll_exec_time_us": microseconds}
    if times:
        kernels = [{"channel_id": 0, "kernel_start_ts": times[0], "kernel_stop_ts": times[1]}]
        performed["event_trace_ts"] = {"kernel_events": kernels}
    return {"header": {"id": "0x1", "rank": rank, "n_ranks": 2, "nnodes": 1}, "metadata": {}, "coll_perf": performed}


def lines(path: Path, documents: list[dict[str, Any]]) -> Path:
    path.write_text("\n".join(map(json.dumps, documents)), encoding="utf-8")
    return path


def test_inspector_joins_ranks_by_number(tmp_path: Path) -> None:
    given = [operation(0, 8, 50.0), operation(1, 8, 20.0), operation(1, 9, 10.0), operation(0, 9, 30.0)]
    found = trace([lines(tmp_path / "i.json", given)])
    assert isinstance(found, CallTrace)
    assert found.seconds * 1e6 == pytest.approx(np.array([[50.0, 20.0], [30.0, 10.0]]))


def test_inspector_with_times_of_kernels(tmp_path: Path) -> None:
    found = trace([lines(tmp_path / "i.json", [operation(0, 8, 50.0, (0, 50)), operation(1, 8, 20.0, (30, 50))])])
    assert isinstance(found, EventTrace)
    assert found.start == pytest.approx([0.0, 30e-6])


def test_inspector_without_numbers(tmp_path: Path) -> None:
    wrong = operation(0, 8, 50.0)
    wrong["coll_perf"]["coll_exec_time_us"] = "soon"
    with pytest.raises(InputError, match="coll_exec_time_us: 'soon'"):
        trace([lines(tmp_path / "i.json", [wrong])])


HEAD = "rank,step,op,start,duration"


def table(path: Path, *rows: str, head: str = HEAD) -> Path:
    path.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    return path


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


def dump(entries: object) -> dict[str, object]:
    return {"version": "2.10", "pg_config": {"0": {"ranks": "[0, 1]"}}, "pg_status": {}, "entries": entries}


class Hostile:
    """What would run a command if pickle loaded it."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("false",)


def test_hostile_pickles_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []
    monkeypatch.setattr(os, "system", called.append)
    path = tmp_path / "dump_rank0.pkl"
    path.write_bytes(pickle.dumps(dump([Hostile()])))
    with pytest.raises(InputError, match="nothing to call"):
        trace([path])
    assert called == []


@pytest.mark.parametrize("size", [1, 20, 87])
def test_pickles_cut_short(tmp_path: Path, size: int) -> None:
    """Dumps of 87 bytes exist (pytorch/pytorch issue 145125)."""
    path = tmp_path / "dump_rank0.pkl"
    path.write_bytes(pickle.dumps(dump([{"collective_seq_id": 1, "profiling_name": "nccl:all_reduce"}]))[:size])
    with pytest.raises(InputError, match=r"dump_rank0\.pkl: .*whole dump"):
        trace([path])


@pytest.mark.parametrize("given", [[1, 2], {"entries": 3, "pg_config": {}}, dump([{"profiling_name": "x"}])])
def test_pickles_of_something_else(tmp_path: Path, given: object) -> None:
    path = tmp_path / "dump_rank0.pkl"
    path.write_bytes(pickle.dumps(given))
    with pytest.raises(InputError):
        trace([path])


def test_dumps_need_a_rank_in_their_names(tmp_path: Path) -> None:
    path = tmp_path / "dump.pkl"
    path.write_bytes(pickle.dumps(dump([])))
    with pytest.raises(InputError, match="no rank in the name"):
        trace([path])


def test_dumps_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flight_recorder, "MOST", 10)
    path = tmp_path / "dump_rank0.pkl"
    path.write_bytes(pickle.dumps(dump([])))
    with pytest.raises(InputError, match="more than 10 B"):
        trace([path])


def test_a_pickle_and_its_json_are_one_dump(tmp_path: Path) -> None:
    for rank in range(2):
        (tmp_path / f"fr_{rank}.pkl").write_bytes(pickle.dumps(dump([])))
        (tmp_path / f"fr_{rank}.json").write_text(json.dumps(dump([])))
    found = trace([tmp_path / "fr_"])
    assert isinstance(found, DumpTrace)
    assert found.ranks == (0, 1)


def test_what_is_no_trace(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing to see")
    (tmp_path / "config.json").write_text('{"hidden_size": 8192}')
    with pytest.raises(InputError, match="one of npz"):
        trace([tmp_path / "notes.txt"])
    with pytest.raises(InputError, match="JSON of Kineto"):
        trace([tmp_path / "config.json"])
    with pytest.raises(InputError, match="files of one format"):
        trace([table(tmp_path / "t.csv", "0,0,x,0,1"), profile(tmp_path / "r_0.json", 0, [kernel(1.0, 1.0)])])
    with pytest.raises(InputError, match="beginning of names"):
        trace([tmp_path / "absent"])
    with pytest.raises(InputError, match="belongs here"):
        trace([])


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


def test_the_status_of_a_group_goes_by_its_id(tmp_path: Path) -> None:
    entry = {"collective_seq_id": 3, "profiling_name": "nccl:all_reduce", "pg_id": 7, "process_group": ["dp", "data"]}
    told = {"last_enqueued_collective": "5", "last_completed_collective": 2}
    (tmp_path / "fr_0.json").write_text(json.dumps(dump([entry]) | {"pg_status": {"7": told}}))
    found = trace([tmp_path / "fr_0.json"])
    assert isinstance(found, DumpTrace)
    assert set(found.groups) == {"dp"}
    assert (found.groups["dp"][0].enqueued, found.groups["dp"][0].completed) == (5, 2)
