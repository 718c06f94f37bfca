"""Are gradients dealt into buckets in their order, none of them cut?"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from commsim.training.buckets import buckets

SIZES = st.lists(st.integers(1, 1000).map(float), max_size=50)


@given(SIZES, st.integers(1, 2000).map(float), st.integers(1, 2000).map(float))
def test_nothing_is_lost_and_limits_close_buckets(sizes: list[float], cap: float, first: float) -> None:
    found = buckets(sizes, cap, first)
    assert sum(found) == sum(sizes)
    for number, bucket in enumerate(found):
        limit = first if number == 0 else cap
        assert bucket < limit + max(sizes)
        assert bucket >= limit or number == len(found) - 1


def test_no_gradients_need_no_bucket() -> None:
    assert buckets([]) == []


def test_the_one_that_reaches_the_limit_closes_its_bucket() -> None:
    assert buckets([1, 3, 2, 2, 4, 1], cap=4, first=2) == [4, 4, 4, 1]
