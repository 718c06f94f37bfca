"""Is every result answered, or skipped with its reason, and summed up fairly?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from commsim.errors import InputError
from commsim.training.configs.rows import read_rows
from commsim.validation.published import read_published
from commsim.validation.training import VIEWS, Case, Validation, validate
from tests.validation.published_rows import MODELS, SHIPPED, result

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def shipped() -> Validation:
    every = read_published(SHIPPED / "training.csv")
    return validate([one for one in every if one.headline], MODELS)


def test_a_case_is_measured_and_predicted() -> None:
    (case,) = validate([result(step_time_to_predict_s=2.0)], MODELS).cases
    assert (case.measured, case.experts) == (2.0, False)
    assert case.error == case.predicted / 2 - 1


@pytest.mark.parametrize(
    ("gpus", "scale"),
    [
        (8, "up to 8 GPUs"),
        (9, "9 to 64 GPUs"),
        (64, "9 to 64 GPUs"),
        (65, "65 to 512 GPUs"),
        (512, "65 to 512 GPUs"),
        (513, "more than 512 GPUs"),
    ],
)
def test_scales_hold_what_they_say(gpus: int, scale: str) -> None:
    assert VIEWS["scale"](Case(result(n_gpus=gpus), 1.0, 1.0, experts=False, assumptions=())) == scale


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"core": False}, "not a core result"),
        ({"exact_duplicate_of": "A0"}, "the same result as A0"),
        ({"step_time_to_predict_s": None}, "not stated: step_time_to_predict_s"),
        ({"tp": 0, "dp": 0}, "not stated: tp, dp"),
        ({"tp": 3}, "plan: "),
    ],
)
def test_what_is_skipped_says_why(changes: dict[str, Any], reason: str) -> None:
    found = validate([result(**changes)], MODELS)
    assert found.cases == ()
    assert found.skipped[0].row_id == "A1"
    assert found.skipped[0].reason.startswith(reason)


def test_sweeps_are_of_one_source_and_group() -> None:
    sizes = {"a": 16, "b": 32, "c": 64, "d": 128}
    many = [
        result(row_id=name, global_batch=size, step_time_to_predict_s=float(size), source="S", group="G")
        for name, size in sizes.items()
    ]
    found = validate([*many, result(row_id="e", source="S", group="H")], MODELS)
    assert found.sweeps == {("S", "G"): pytest.approx(1.0)}
    assert found.order == pytest.approx(1.0)


def test_without_sweeps_there_is_no_order() -> None:
    assert validate([result()], MODELS).order is None


def test_views_count_every_case(shipped: Validation) -> None:
    for view in VIEWS:
        assert sum(one.count for one in shipped.by(view).values()) == len(shipped.cases)
    with pytest.raises(InputError, match="no such view"):
        shipped.by("moon")


def test_the_shipped_results_come_out_near(shipped: Validation) -> None:
    """What the README may say: the median error of the headline results, each from its source."""
    assert [one.row_id for one in shipped.skipped] == ["MB273"]  # 64 ranks of experts on 32
    errors = sorted(abs(case.error) for case in shipped.headline)
    assert len(errors) == 163
    assert errors[len(errors) // 2] < 0.065
    assert errors[int(len(errors) * 0.9)] < 0.22


@pytest.mark.data
def test_every_core_result_is_answered_or_skipped(data: Path) -> None:
    rows = read_published(data / "training" / "published.csv")[::7]
    found = validate(rows, read_rows(data / "training" / "models.csv"))
    told = [case.result.row_id for case in found.cases] + [one.row_id for one in found.skipped]
    assert sorted(told) == sorted(row.row_id for row in rows)
    core = {row.row_id for row in rows if row.core and not row.exact_duplicate_of}
    assert [one for one in found.skipped if one.row_id in core] == []
