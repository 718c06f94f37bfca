"""Do traffic matrices load the links that they should?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import commsim as cs
from commsim.collectives.algorithms.direct import all_to_all_v
from commsim.collectives.kinds import ALL_TO_ALL
from commsim.collectives.layout import Layout
from commsim.collectives.price import price, priced
from commsim.errors import InputError
from tests.collectives.flow import carried, steps
from tests.machines import SMALL, switch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


def matrices(n: int) -> st.SearchStrategy[Floats]:
    amount = st.floats(0, 1e3, allow_subnormal=False)
    return st.lists(amount, min_size=n * n, max_size=n * n).map(lambda rows: np.array(rows).reshape(n, n))


@pytest.mark.parametrize("name", sorted(SMALL))
def test_an_even_matrix_is_an_all_to_all(name: str) -> None:
    machine = SMALL[name]
    layout = Layout.first(machine.size)
    even = price([(all_to_all_v(np.full((machine.size, machine.size), 1 / machine.size)), layout)], machine)
    direct = priced("direct", ALL_TO_ALL, layout, machine)
    assert np.allclose(even.load, direct.load)
    assert np.allclose(even.hops, direct.hops)


@given(matrices(6))
def test_everything_but_the_diagonal_moves(matrix: Floats) -> None:
    out, into = carried(steps(all_to_all_v(matrix)), 6)
    between = matrix - np.diag(np.diag(matrix))
    assert np.allclose(out, between.sum(axis=1))
    assert np.allclose(into, between.sum(axis=0))


def test_skew_shows_at_the_rank_that_everyone_sends_to() -> None:
    matrix = np.zeros((8, 8))
    matrix[:, 3] = 1.0
    cost = price([(all_to_all_v(matrix), Layout.first(8))], switch(8))
    assert cost.load.tolist() == [[7.0]]
    assert cost.busiest == (("nvswitch0 -> gpu3",),)


def test_the_root_offers_it() -> None:
    topology = cs.load("hgx-h100").topology
    cost = cs.price([(cs.all_to_all_v(np.full((8, 8), 1.0)), cs.Layout.first(8))], topology)
    assert cost.load.max() == pytest.approx(7 / 18), "to 7 others over the 18 NVLinks of a GPU"


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.ones((2, 3)), r"all_to_all_v: matrix: \(2, 3\); a square matrix"),
        (np.ones(4), r"all_to_all_v: matrix: \(4,\); a square matrix"),
        (np.array([[0, -1.0], [1.0, 0]]), r"all_to_all_v: matrix: -1.0; finite amounts"),
        (np.array([[0, np.nan], [1.0, 0]]), r"all_to_all_v: matrix: nan; finite amounts"),
    ],
)
def test_what_is_no_traffic_is_refused(matrix: Floats, message: str) -> None:
    with pytest.raises(InputError, match=message):
        all_to_all_v(matrix)
