"""Are errors and ranks counted as statisticians count them?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.validation.agreement import Agreement, rank_correlation

NUMBERS = st.lists(st.floats(0.1, 100.0), min_size=2, max_size=8, unique=True)


def test_errors_have_a_size_and_a_sign() -> None:
    found = Agreement.of([-0.4, -0.1, 0.2])
    assert (found.count, found.median_error, found.bias) == (3, 0.2, -0.1)
    assert found.p90_error == pytest.approx(0.36)  # nine tenths of the way from the second to the third


def test_spearman_1904() -> None:
    """The textbook example of ten pairs without ties, 1 - 6 x 194 / (10 x 99) = -29/165."""
    intelligence = [86, 97, 99, 100, 101, 103, 106, 110, 112, 113]
    hours = [2, 20, 28, 27, 50, 29, 7, 17, 6, 12]
    assert rank_correlation(intelligence, hours) == pytest.approx(-29 / 165)


def test_ties_share_their_rank() -> None:
    """Ranks 1, 2.5, 2.5, 4 against 1, 2, 3, 4."""
    assert rank_correlation([1, 2, 2, 3], [1, 2, 3, 4]) == pytest.approx(4.5 / (4.5 * 5) ** 0.5)


def test_no_order_is_no_correlation() -> None:
    assert rank_correlation([1, 1], [1, 2]) == 0


@given(NUMBERS)
def test_order_is_all_that_counts(values: list[float]) -> None:
    assert rank_correlation(values, [value**3 for value in values]) == pytest.approx(1)
    assert rank_correlation(values, [-value for value in values]) == pytest.approx(-1)
