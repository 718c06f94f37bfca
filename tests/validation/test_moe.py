"""Is every measured dispatch and combine answered, or skipped with the reason, and do the public ones agree?"""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import pytest

from commsim.errors import InputError
from commsim.shipped import folder
from commsim.validation.agreement import Agreement
from commsim.validation.moe import VIEWS, validate
from commsim.validation.moe_rows import MoeRow, read_moe

if TYPE_CHECKING:
    from pathlib import Path

PLAIN: dict[str, object] = {
    "row_id": "A",
    "system": "hgx-h800",
    "nodes": 4,
    "gpus_per_node": 8,
    "ep": 32,
    "nic_gbit_per_s_per_gpu": 400,
    "fabric": "infiniband",
    "library": "deepep-v1",
    "mode": "normal",
    "phase": "dispatch",
    "tokens_per_rank": 4096,
    "hidden": 7168,
    "topk": 8,
    "topk_groups": 4,
    "experts": 256,
    "element_bytes": 1,
    "scale_bytes_per_token": 224,
    "distribution": "uniform",
    "bandwidth_bytes_per_s": 58e9,
    "counts": "token_node_pairs_incl_own",
    "health": "healthy",
}
COPIES = 3.6142
"""Nodes of a token, of four, that has 8 of 256 experts."""


def write(path: Path, *rows: dict[str, object]) -> Path:
    """Write a table of these rows, whatever they leave out as in PLAIN."""
    full = [PLAIN | {"row_id": f"R{number}"} | row for number, row in enumerate(rows)]
    file = path / "moe.csv"
    with file.open("w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, list(dict.fromkeys(key for row in full for key in row)))
        writer.writeheader()
        writer.writerows(full)
    return file


def read(path: Path, *rows: dict[str, object]) -> list[MoeRow]:
    return read_moe(write(path, *rows))


def test_a_bandwidth_becomes_the_time_that_it_stands_for(tmp_path: Path) -> None:
    (case,) = validate(read(tmp_path, {})).cases
    assert case.measured == pytest.approx(4096 * 7392 * COPIES / 58e9, rel=1e-4)
    assert abs(case.error) < 0.05
    (timed,) = validate(read(tmp_path, {"time_s": 2e-3, "counts": ""})).cases
    assert (timed.measured, timed.predicted) == (2e-3, case.predicted)


def test_health_changes_no_prediction(tmp_path: Path) -> None:
    found = validate(read(tmp_path, {}, {"health": "degraded"}, {"health": ""}))
    assert len({case.predicted for case in found.cases}) == 1
    assert [case.row.row_id for case in found.counted] == ["R0", "R2"]


def test_kernels_are_told_apart(tmp_path: Path) -> None:
    box: dict[str, object] = {"nodes": 1, "ep": 8, "counts": "token_rank_pairs", "system": "hgx-b200"}
    rows: list[dict[str, object]] = [
        {"library": "deepep-v1"},
        {"library": "deepep-v2"},
        {"library": "deepep-v2", "sms": 4},
        {"mode": "low_latency"},
    ]
    times = [case.predicted for case in validate(read(tmp_path, *(box | row for row in rows))).cases]
    assert times[1] < times[0] < times[2]
    assert len(set(times)) == len(rows)


def test_what_is_assumed_is_said(tmp_path: Path) -> None:
    back: dict[str, object] = {"phase": "combine", "scale_bytes_per_token": ""}
    low, quarter, plain = validate(
        read(
            tmp_path,
            back | {"element_bytes": 0.5},
            back | {"element_bytes": 0.5, "phase": "combine_low_precision"},
            back | {"element_bytes": 2},
        )
    ).cases
    assert (low.predicted, len(low.assumed), plain.assumed) == (plain.predicted, 1, ())
    assert quarter.predicted < plain.predicted / 3
    assert quarter.assumed == ("scales: 0.0625 bytes a value",)


def test_what_is_skipped_says_why(tmp_path: Path) -> None:
    wrong: list[dict[str, object]] = [
        {"phase": "prepare"},
        {"mode": "unheard-of"},
        {"distribution": "power law"},
        {"system": "abacus"},
        {"ep": 64},
        {"experts": 16},
        {"counts": ""},
        {"counts": "bytes"},
        {"hidden": ""},
    ]
    found = validate(read(tmp_path, *wrong))
    starts = ["phase", "mode", "distribution", "system", "ep", "routing", "not stated", "counts", "not stated"]
    assert [one.reason.partition(":")[0] for one in found.skipped] == starts
    assert found.cases == ()


def test_mistakes_in_the_file(tmp_path: Path) -> None:
    for rows, message in (
        ([{"hidden": "many"}], "hidden: 'many'; a number"),
        ([{"ep": 1.5}], "a whole number"),
        ([{"row_id": "A"}, {"row_id": "A"}], "a name of its own"),
    ):
        with pytest.raises(InputError, match=message):
            read(tmp_path, *rows)
    (tmp_path / "other.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(InputError, match="columns are missing: row_id"):
        read_moe(tmp_path / "other.csv")
    (tmp_path / "short.csv").write_text(",".join(PLAIN) + "\nA\n", encoding="utf-8")
    with pytest.raises(InputError, match="as many cells"):
        read_moe(tmp_path / "short.csv")
    with pytest.raises(InputError, match="readable CSV"):
        read_moe(tmp_path)


def test_views(tmp_path: Path) -> None:
    found = validate(read(tmp_path, {}, {"phase": "combine", "element_bytes": 2}))
    assert list(found.by("mode")) == ["normal combine", "normal dispatch"]
    assert list(found.by("ranks")) == [f"{PLAIN['ep']:>4} ranks"], "padded, so that they are in the order of numbers"
    assert all(sum(one.count for one in found.by(view).values()) == 2 for view in VIEWS)
    with pytest.raises(InputError, match="no such view"):
        found.by("colour")


def test_published_figures_agree() -> None:
    """The shipped figures whose bytes are counted, of healthy runs: DeepEP, UCCL-EP, NCCL EP."""
    found = validate(read_moe(folder("bench") / "published" / "moe.csv"))
    assert not found.skipped
    agreement = Agreement.of(case.error for case in found.counted)
    assert agreement.median_error < 0.08
    assert all(one.median_error < 0.15 for one in found.by("source", found.counted).values())


@pytest.mark.data
def test_public_rows_agree(data: Path) -> None:
    found = validate(read_moe(data / "moe" / "rows.csv"))
    counted = [case for case in found.cases if case.row.counts]
    assert {one.reason.partition(":")[0] for one in found.skipped} == {"phase"}
    assert Agreement.of(case.error for case in counted).median_error < 0.08
