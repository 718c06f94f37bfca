"""Do public logs come out as the list beside them says, row by row, and nothing of them misread in silence?"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from commsim.errors import InputError
from commsim.measurement.joining import joined
from commsim.measurement.read import measurements

pytestmark = pytest.mark.data
_FOLDER = Path(os.environ.get("COMMSIM_DATA", "")) / "nccl_tests_logs"
_LIST = _FOLDER / "MANIFEST.json"
LOGS: dict[str, Any] = json.loads(_LIST.read_text(encoding="utf-8")) if _LIST.is_file() else {}

KNOWN = {
    "01-mpirun-tag-prefix-info-warn": ("all_reduce", 16, 2),
    "03-stat-prefix-glued-oddball-sizes": ("all_reduce", 8, 1),
    "04-json-output-SYNTHETIC-LAYOUT": ("all_reduce", 8, 1),
    "05-old-layout-one-run-per-size-mpi4hosts": ("all_reduce", 32, 4),
    "06-row-broken-by-interleaved-info": ("all_reduce", 32, 4),
    "08-run-died-midway": ("all_to_all", 2, 2),
    "10-mpich-scale-512-ranks": ("all_reduce", 512, 128),
    "12-slurm-out-full": ("all_reduce", 32, 8),
    "13-stripped-header-no-hash": ("all_reduce", 32, None),
    "15-gb200-72-ranks-elided": ("all_reduce", 72, None),
    "17a-oci-slurm": ("all_reduce", 16, 2),
    "17b-oci-slurm": ("all_reduce", 16, 2),
    "18-gke-a3mega-zero-size-rows": ("all_gather", 16, None),
    "21-gke-a3ultra-flex": ("all_gather", 16, None),
    "23-a6000-info-rounds": ("all_gather", 4, None),
}
DOUBTFUL = {"08-run-died-midway", "12-slurm-out-full"}


@pytest.mark.parametrize("name", LOGS)
def test_rows_are_those_of_the_list(name: str) -> None:
    path, said = _FOLDER / f"{name}.txt", LOGS[name]
    if not said["must_parse"]:
        with pytest.raises(InputError):
            measurements(path)
        return
    found = measurements(path)
    if said.get("tables_rows"):
        assert [len(one.rows) for one in found] == said["tables_rows"]
    assert bool([said for one in found for said in one.problems]) == (name in DOUBTFUL)


@pytest.mark.parametrize("name", KNOWN)
def test_operation_ranks_and_hosts(name: str) -> None:
    found = measurements(_FOLDER / f"{name}.txt")
    assert {(one.op.name, one.ranks, one.nodes) for one in found} == {KNOWN[name]}


def test_a_repaired_row() -> None:
    (found,) = measurements(_FOLDER / "06-row-broken-by-interleaved-info.txt")
    assert (found.sizes.tolist(), found.version) == ([64], "2.12.12")
    assert found.seconds.tolist() == pytest.approx([413.6e-6])
    assert any("put together" in said for said in found.notes)


def test_a_choice_is_asked_for() -> None:
    path = _FOLDER / "19-gke-a3high-na-columns.txt"
    (found,) = measurements(path)
    with pytest.raises(InputError, match="all_gather or all_to_all"):
        _ = found.op
    assert found.ranks == 16
    (told,) = measurements(path, op="all_gather")
    assert told.op.name == "all_gather"
    with pytest.raises(InputError, match="the table shows"):
        measurements(path, op="all_reduce")
    with pytest.raises(InputError, match="the table shows"):
        measurements(path, ranks=8)


def test_sweeps_of_one_process_a_size_are_joined(data: Path) -> None:
    for path in (data / "formats" / "nccl_tests").glob("oldfmt_*.log"):
        found = measurements(path)
        (whole,) = joined(found)
        assert len(whole.rows) == len(found) > 20
        assert whole.op.name in path.name
        assert (whole.ranks, whole.nodes, whole.problems) == (8, 1, ())


# facts: busbw of AllReduce, 1 GiB, 8 GPUs of one box, as the logs print it
@pytest.mark.parametrize(
    ("box", "busbw"),
    [("a100_8card", 14.93), ("h800_8card", 163.16), ("v100_8card_para", 133.96), ("4090_8card_para", 16.24)],
)
def test_old_boxes_at_one_gibibyte(data: Path, box: str, busbw: float) -> None:
    (found,) = joined(measurements(data / "formats" / "nccl_tests" / f"oldfmt_{box}_all_reduce_run0.log"))
    row = found.sizes.tolist().index(2**30)
    assert found.busbw[row] / 1e9 == pytest.approx(busbw, abs=0.01)


def test_other_logs_hold_what_their_preambles_announce(data: Path) -> None:
    logs = [path for path in (data / "formats" / "nccl_tests").glob("*.log") if "excerpt" not in path.name]
    problems = {path.name: one.problems for path in logs for one in measurements(path) if one.problems}
    assert len(logs) > 20
    assert problems == {}


def test_an_excerpt_is_not_the_whole(data: Path) -> None:
    (found,) = measurements(data / "formats" / "nccl_tests" / "aws_p5_allreduce_mpirun_tagged_excerpt.log")
    assert any("rows lost" in said for said in found.problems)


def test_no_host_is_named(data: Path) -> None:
    logs = [*_FOLDER.glob("*.txt"), *(data / "formats" / "nccl_tests").glob("*.log")]
    said = repr([one for path in logs if path.stem in KNOWN or path.suffix == ".log" for one in measurements(path)])
    assert [name for name in ("host-0", "node0", "nodeA", "nodeB") if name in said] == []


def test_published_tables(data: Path) -> None:
    paths = sorted((data / "collectives").glob("*.json"))
    for path in paths:
        record = json.loads(path.read_text(encoding="utf-8"))
        (found,) = measurements(path)
        assert (found.op.name, found.ranks, found.nodes) == (record["op"], record["ranks"], record["nodes"])
        assert found.seconds.tolist() == [row["time_s"] for row in record["rows"]]
        assert "health" not in repr(found)
    assert len(paths) > 200


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (
            "tool_outputs/ds_bench_cookbook_gloo_2rank.out",
            [("all_reduce", 2, 19), ("all_gather", 2, 19), ("broadcast", 2, 19)],
        ),
        ("tool_outputs/param_comms_gloo_all_gather_rank0.out", [("all_gather", 2, 9)]),
        ("tool_outputs/param_comms_gloo_all_reduce_rank0.out", [("all_reduce", 2, 9)]),
        ("tool_outputs/param_comms_gloo_all_to_all_rank0.out", [("all_to_all", 2, 9)]),
        ("nccl_tests/torch_all_reduce_bench_bigscience_n1_16gb_all_reduce_bench.txt", [("all_reduce", 4, 1)]),
        ("nccl_tests/constructed_json_v3_h100_1x8_allreduce.json", [("all_reduce", 8, 10)]),
        ("inspector/nccl_readme_example_0.json", [("all_reduce", 8, 1)]),
        ("inspector/nccl_readme_example_1.json", [("reduce_scatter", 8, 1)]),
    ],
)
def test_other_formats(data: Path, name: str, shown: list[tuple[str, int, int]]) -> None:
    found = measurements(data / "formats" / name)
    assert [(one.op.name, one.ranks, len(one.rows)) for one in found] == shown
    assert [one.problems for one in found] == [()] * len(found)


@pytest.mark.parametrize(
    "name", ["tool_outputs/torch_gloo_async_and_late_peer.json", "inspector/nccl_readme_prometheus.txt"]
)
def test_what_is_no_table_is_refused(data: Path, name: str) -> None:
    with pytest.raises(InputError, match="belong"):
        measurements(data / "formats" / name)
