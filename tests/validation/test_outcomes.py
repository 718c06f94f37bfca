"""Are runs that fitted, and runs that did not, read as their table says, and refused in one line?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from commsim.errors import InputError
from commsim.validation.outcomes import read_outcomes
from tests.validation.published_rows import result, write

if TYPE_CHECKING:
    from pathlib import Path

RESULTS = [
    result(source="Doe 2025 (layouts)", system="hgx-a100", accelerator="a100-sxm-80gb"),
    result(source="Doe 2025 (layouts)", row_id="A2", core=False),
    result(source="Roe 2024", row_id="B1"),
]
ROW = {
    "source": "Doe 2025 sheet 3 row 7",
    "model_id": "llama3-8b",
    "model_overrides": "",
    "seq_len": "8192",
    "n_gpus": "8",
    "tp": "2",
    "sp": "0",
    "pp": "2",
    "dp": "2",
    "micro_batch": "4",
    "global_batch": "64",
    "zero": "ZeRO-1",
    "recompute": "full (every layer)",
    "kernel": "flash_attention2 + RMS kernel",
    "precision": "bf16 (fp32 grad accumulation)",
    "outcome": "OOM Error",
}


def test_a_run_is_as_its_source_runs_but_for_its_plan(tmp_path: Path) -> None:
    first = read_outcomes(write(tmp_path / "a.csv", ROW), RESULTS)[0]
    run = first.result
    assert not first.fits
    assert (run.row_id, run.tp, run.sp, run.micro_batch, run.seq_len) == ("Doe 2025 sheet 3 row 7", 2, False, 4, 8192)
    assert (run.recompute_mode, run.attention_kernel, run.fused_norm, run.zero_stage) == ("full", "flash2", True, 1)
    assert (run.number_format, run.gradient_format) == ("bf16", "fp32")
    assert (run.system, run.accelerator, run.trainer) == ("hgx-a100", "a100-sxm-80gb", "megatron")


def test_core_results_of_the_same_source_fitted(tmp_path: Path) -> None:
    found = read_outcomes(write(tmp_path / "a.csv", ROW), RESULTS)
    assert [(one.result.row_id, one.fits) for one in found] == [("Doe 2025 sheet 3 row 7", False), ("A1", True)]


def test_a_table_that_says_what_fitted_needs_no_results(tmp_path: Path) -> None:
    rows = ROW, {**ROW, "outcome": "fits"}, {**ROW, "outcome": "Kernel not available"}
    assert [one.fits for one in read_outcomes(write(tmp_path / "a.csv", *rows), RESULTS)] == [False, True]


@pytest.mark.parametrize(
    ("kernel", "name", "norm"),
    [
        ("flash_attention2", "flash2", None),
        ("flash_attentionv1.0.8", "flash1", None),
        ("flash_attention2 + RMS kernel", "flash2", True),
        ("torch", "torch", None),
        ("", "", None),
    ],
)
def test_kernels(tmp_path: Path, kernel: str, name: str, norm: bool | None) -> None:  # noqa: FBT001
    run = read_outcomes(write(tmp_path / "a.csv", {**ROW, "kernel": kernel}), RESULTS)[0].result
    assert (run.attention_kernel, run.fused_norm) == (name, norm)


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"outcome": "OOM Eror"}, "line 2: outcome: 'OOM Eror'; no such outcome; did you mean 'OOM Error'?"),
        ({"source": "Poe 2023"}, "line 2: source: 'Poe 2023'; no published result is of this source"),
        ({"tp": "two"}, "line 2: tp: 'two'; a number that is finite and not negative belongs here"),
    ],
)
def test_mistakes(tmp_path: Path, changes: dict[str, str], line: str) -> None:
    with pytest.raises(InputError) as caught:
        read_outcomes(write(tmp_path / "a.csv", {**ROW, **changes}), RESULTS)
    assert line in str(caught.value)


def test_other_tables(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="columns are missing: seq_len, n_gpus"):
        read_outcomes(write(tmp_path / "a.csv", {"model_id": "a", "model_overrides": ""}), RESULTS)
