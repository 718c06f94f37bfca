"""Are dumps of the flight recorder read, and hostile or broken ones refused?"""

from __future__ import annotations

import json
import os
import pickle
from typing import TYPE_CHECKING

import pytest

from commsim.errors import InputError
from commsim.measurement.traces import flight_recorder
from commsim.measurement.traces.dumps import DumpTrace
from commsim.measurement.traces.read import trace

if TYPE_CHECKING:
    from pathlib import Path


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


def test_the_status_of_a_group_goes_by_its_id(tmp_path: Path) -> None:
    entry = {"collective_seq_id": 3, "profiling_name": "nccl:all_reduce", "pg_id": 7, "process_group": ["dp", "data"]}
    told = {"last_enqueued_collective": "5", "last_completed_collective": 2}
    (tmp_path / "fr_0.json").write_text(json.dumps(dump([entry]) | {"pg_status": {"7": told}}))
    found = trace([tmp_path / "fr_0.json"])
    assert isinstance(found, DumpTrace)
    assert set(found.groups) == {"dp"}
    assert (found.groups["dp"][0].enqueued, found.groups["dp"][0].completed) == (5, 2)
