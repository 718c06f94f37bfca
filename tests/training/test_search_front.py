"""Which plans does no other beat?"""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from commsim.training.search.front import beaten, front

PLANS = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=30)
"""Seconds and bytes."""


def beats(one: tuple[float, float], other: tuple[float, float]) -> bool:
    """Whether a plan is as quick and as small, and one of both more so."""
    return one[0] <= other[0] and one[1] <= other[1] and one != other


@given(PLANS)
def test_the_front_is_what_no_plan_beats(plans: list[tuple[int, int]]) -> None:
    seconds, memory = np.array(plans, dtype=float).T
    found = [plans[place] for place in front(seconds, memory)]
    assert set(found) == {one for one in plans if not any(beats(other, one) for other in plans)}
    assert found == sorted(set(found)), "the quickest first, each once"


@given(PLANS, PLANS)
def test_who_takes_at_least_so_long_is_beaten(plans: list[tuple[int, int]], asked: list[tuple[int, int]]) -> None:
    seconds, memory = np.array(plans, dtype=float).T
    best = front(seconds, memory)
    bound, size = np.array(asked, dtype=float).T
    expected = [any(s <= b and m <= z for s, m in plans) for b, z in asked]
    assert beaten(bound, size, (seconds[best], memory[best])).tolist() == expected


def test_unknown_seconds_are_on_no_front() -> None:
    seconds, memory = np.array([np.nan, 2.0, 1.0, np.nan]), np.array([1.0, 1.0, 2.0, 0.5])
    assert front(seconds, memory).tolist() == [2, 1]
    assert front(seconds[:1], memory[:1]).tolist() == []
    assert beaten(np.array([1.0]), np.array([1.0]), (np.zeros(0), np.zeros(0))).tolist() == [False]
