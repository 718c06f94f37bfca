"""Is every other format of traces told from the rest, and is what is none refused?"""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest

from commsim.errors import InputError
from commsim.measurement.traces import columns
from commsim.measurement.traces.events import EventTrace
from commsim.measurement.traces.names import collective_of
from commsim.measurement.traces.read import trace

if TYPE_CHECKING:
    from pathlib import Path
from tests.measurement.traced import kernel, profile, table


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
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no file lies in this folder"):
        trace([tmp_path / "empty"])
    with pytest.raises(InputError, match="belongs here"):
        trace([])


def test_a_beginning_of_names_is_taken_letter_by_letter(tmp_path: Path) -> None:
    """`?`, `*` and `[` stand for themselves: files of other runs are not taken along."""
    for name in ("run[1]_0.csv", "run1_0.csv", "run?_0.csv", "runs_0.csv"):
        table(tmp_path / name, "0,0,all_reduce,1.0,1.0", "1,0,all_reduce,1.0,1.0")
    for begin in ("run[1]_", "run?_"):
        found = trace([tmp_path / begin])
        assert isinstance(found, EventTrace)
        assert found.start.size == 2


@pytest.mark.parametrize("head", ["step,op,start,duration", "rank,step,start,duration", "rank,step,op,start"])
def test_a_table_of_operations_has_rank_operation_and_duration(tmp_path: Path, head: str) -> None:
    with pytest.raises(InputError, match="one of npz"):
        trace([table(tmp_path / "t.csv", "0,0,1.0,1.0", head=head)])
