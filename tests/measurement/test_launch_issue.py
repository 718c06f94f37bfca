"""Is a bandwidth that was taken from the time of issue refused?

The figures are a measurement of two gloo ranks on a 2-core machine, 16 MiB of float (replay case R24; the same mistake
is in pytorch#70267 and pytorch#108128): issue alone 19 to 25 us, issue and wait 11.3 to 11.6 ms; with one rank 50 ms
late the ranks see 59.7 and 9.7 ms.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import commsim as cs
from commsim.errors import InputError
from commsim.measurement.launch.issue import need_waited

if TYPE_CHECKING:
    from pathlib import Path

SIZE = 16 * 2**20
ISSUED = [[19e-6], [25e-6]]
WAITED = [[11.282e-3], [11.554e-3]]
LATE = [[59.697e-3], [9.710e-3]]
LATE_S = 50e-3


def written(tmp_path: Path, **more: Any) -> Path:  # noqa: ANN401 - any JSON
    run = {"record": "run", "schema": 1, "library": "gloo"}
    op = {"record": "op", "op": "all_reduce", "dtype": "float", "size_bytes": SIZE, "ranks": 2, **more}
    file = tmp_path / "run.jsonl"
    file.write_text(f"{json.dumps(run)}\n{json.dumps(op)}\n", encoding="utf-8")
    return file


def test_time_of_issue_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"671 GB/s.*when the operation was issued"):
        cs.measurements(written(tmp_path, samples_s=ISSUED))


def test_a_record_that_says_so_is_refused_whatever_its_figures(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="timed: 'issue'"):
        cs.measurements(written(tmp_path, samples_s=WAITED, timed="issue"))


def test_time_with_the_wait_is_read(tmp_path: Path) -> None:
    (found,) = cs.measurements(written(tmp_path, samples_s=WAITED, timed="wait"))
    assert found.busbw[0] == pytest.approx(1.45e9, rel=0.01)


def test_the_late_rank_is_the_one_that_saw_the_shorter_time(tmp_path: Path) -> None:
    (found,) = cs.measurements(written(tmp_path, samples_s=LATE, arrival_s=[[0.0], [LATE_S]]))
    assert found.seconds[0] == pytest.approx(9.71e-3, rel=0.01)  # from its arrival on: what the transfer took
    samples = found.rows[0].timing.samples
    assert min(range(2), key=lambda rank: samples[rank][0]) == 1


@pytest.mark.parametrize("seconds", [0.0, 1e-6])
def test_nothing_is_carried_in_no_time(seconds: float) -> None:
    need_waited("gloo", 0.0, seconds, "run")
    need_waited("nccl", SIZE, seconds, "run")  # what NVLink carries is held against the machine, by `commsim check`
    with pytest.raises(InputError, match="wait"):
        need_waited("gloo", SIZE, seconds, "run")
