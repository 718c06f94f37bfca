"""Are the lines of NCCL's Inspector read?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from commsim.errors import InputError
from commsim.measurement.traces.calls import CallTrace
from commsim.measurement.traces.events import EventTrace
from commsim.measurement.traces.read import trace

if TYPE_CHECKING:
    from pathlib import Path


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


def test_inspector_leaves_messages_out_and_counts_them(tmp_path: Path) -> None:
    message = operation(0, 8, 5.0)
    message["p2p_perf"] = message.pop("coll_perf")
    found = trace([lines(tmp_path / "i.json", [message, message, operation(0, 8, 50.0), operation(1, 8, 20.0)])])
    assert isinstance(found, CallTrace)
    assert found.seconds.size == 2
    assert [said for said in found.repairs if "2 point-to-point operations: left out" in said] != []


def test_inspector_with_messages_alone_holds_no_collective(tmp_path: Path) -> None:
    message = operation(0, 8, 5.0)
    message["p2p_perf"] = message.pop("coll_perf")
    message["header"].pop("n_ranks")
    with pytest.raises(InputError, match="operations with coll_perf belong here"):
        trace([lines(tmp_path / "i.json", [message])])
