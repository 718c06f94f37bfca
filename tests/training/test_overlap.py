"""What hides behind what, and does compute hide only once?"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.training.overlap import CONTENTION, WITHIN, Cover, exposed

SECONDS = st.floats(0, 1e3)
BEHIND = st.sampled_from(sorted(WITHIN))


@given(SECONDS, SECONDS, SECONDS)
def test_more_traffic_and_less_cover_never_expose_less(seconds: float, more: float, cover: float) -> None:
    assert exposed(seconds + more, cover) >= exposed(seconds, cover)
    assert exposed(seconds, cover + more) <= exposed(seconds, cover)


@given(SECONDS, SECONDS)
def test_never_less_than_contention_nor_more_than_all(seconds: float, cover: float) -> None:
    assert CONTENTION * seconds <= exposed(seconds, cover) * (1 + 1e-12)
    assert exposed(seconds, cover) <= seconds


def test_by_hand() -> None:
    """Of 3 s behind 2 s, 1 s sticks out; what hides slows compute by 40 %: 0.8 s."""
    assert exposed(3.0, 2.0) == pytest.approx(1.8)
    assert np.allclose(exposed(np.array([1.0, 3.0]), np.array([2.0, 0.0])), [0.4, 3.0])


@given(st.lists(st.tuples(SECONDS, BEHIND), max_size=8), st.lists(SECONDS, min_size=4, max_size=4))
def test_compute_hides_only_once(said: list[tuple[float, str]], sizes: list[float]) -> None:
    """However much is said behind whatever, no more hides than there is compute."""
    columns, matmul, attention, rest = sizes
    whole = columns + matmul + attention + rest
    cover = Cover({"columns": columns, "matmul": columns + matmul, "attention": attention, "pass": whole})
    out = [cover.exposed(seconds, behind) for seconds, behind in said]  # type: ignore[arg-type]
    hidden = (sum(seconds for seconds, _ in said) - sum(out)) / (1 - CONTENTION)
    assert hidden <= whole * (1 + 1e-9) + 1e-9
    assert min(cover.left.values()) >= -1e-9


def test_what_hides_behind_a_part_is_gone_from_the_whole() -> None:
    cover = Cover({"matmul": 2.0, "attention": 1.0, "pass": 4.0})
    assert cover.exposed(1.5, "matmul") == pytest.approx(1.5 * CONTENTION)
    assert cover.exposed(3.0, "pass") == pytest.approx(0.5 + 2.5 * CONTENTION), "4.0 - 1.5 s are left"
    assert cover.exposed(1.0, "attention") == pytest.approx(1.0), "and now nothing is"
    assert cover.exposed(2.0, "nothing") == 2.0
