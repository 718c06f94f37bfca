"""Is what is told of memory held against what happened?"""

from __future__ import annotations

import pytest

from commsim.errors import InputError
from commsim.validation.memory import VIEWS, validate
from commsim.validation.outcomes import Outcome
from tests.validation.published_rows import MODELS, result

SMALL = result(row_id="small")
LARGE = result(row_id="large", micro_batch=4, seq_len=65536)


def test_what_is_told_is_right_where_it_happened() -> None:
    found = validate([Outcome(SMALL, fits=True), Outcome(LARGE, fits=False), Outcome(LARGE, fits=True)], MODELS)
    assert [one.right for one in found.cases] == [True, True, False]
    assert [one.share > 1 for one in found.cases] == [False, True, True]
    told = {fits: found.told(fits=fits) for fits in (None, True, False)}
    assert [(one.count, one.right) for one in told.values()] == [(3, 2), (2, 1), (1, 1)]
    assert told[True].share == 0.5


def test_no_case_has_no_share() -> None:
    assert validate([], MODELS).told().share is None


def test_runs_that_cannot_be_estimated_are_skipped_with_their_reason() -> None:
    (skipped,) = validate([Outcome(result(tp=3), fits=True)], MODELS).skipped
    assert skipped.row_id == "A1"
    assert "3" in skipped.reason


@pytest.mark.parametrize("view", VIEWS)
def test_views_have_each_case_once(view: str) -> None:
    found = validate([Outcome(SMALL, fits=True), Outcome(LARGE, fits=False)], MODELS)
    assert sum(one.told().count for one in found.by(view).values()) == 2
    assert list(found.by("tensor")) == ["2 ranks"]


def test_other_views() -> None:
    with pytest.raises(InputError, match="no such view"):
        validate([], MODELS).by("colour")
