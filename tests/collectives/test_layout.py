"""Which ranks does a layout name, and how do they fall into the units of a machine?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.collectives.layout import Layout
from commsim.errors import InputError
from tests.laws.drawn import axes
from tests.machines import pods

if TYPE_CHECKING:
    from commsim.collectives.layout import Dim


def test_members_and_copies_are_spread_innermost_first() -> None:
    layout = Layout(members=((2, 1), (2, 8)), copies=((2, 4),))
    assert layout.ranks().tolist() == [[0, 1, 8, 9], [4, 5, 12, 13]]
    assert (layout.size, layout.groups, layout.last) == (4, 2, 13)


def test_a_group_without_shape_keeps_its_order() -> None:
    layout = Layout.of([5, 3, 9])
    assert layout.ranks().tolist() == [[5, 3, 9]]
    assert (layout.size, layout.groups, layout.last) == (3, 1, 9)
    assert layout.folded((8,)) is layout


@given(axes(64))
def test_ranks_are_as_many_as_the_layout_says(dims: tuple[Dim, ...]) -> None:
    layout = Layout(dims[:1], dims[1:])
    assert layout.ranks().shape == (layout.groups, layout.size)
    assert layout.ranks().max() == layout.last
    assert len(np.unique(layout.ranks())) == layout.ranks().size


@pytest.mark.parametrize(
    ("layout", "unit", "inner"),
    [
        (Layout.first(64), 8, 8),
        (Layout(((4, 16),)), 8, 1),
        (Layout(((2, 4), (4, 8))), 8, 2),
        (Layout(((2, 1), (4, 8)), ((4, 2),)), 8, 2),
        (Layout.first(12), 8, 4),  # eight in one unit, four in the next
        (Layout.first(11), 8, 1),
        (Layout(((16, 1),), ((9, 16),)), 72, 8),  # the fifth lies across two units
        (Layout.of([0, 1, 8, 9]), 8, 2),
        (Layout.of([0, 8, 1, 9]), 8, 1),  # neighbours in the group are none in the machine
        (Layout.of([0, 1, 8, 9, 2, 3]), 8, 2),  # comes back to the first unit
        (Layout(((3, 4),), ((2, 1),)), 8, 1),
    ],
)
def test_inner_is_how_many_in_a_row_share_a_unit(layout: Layout, unit: int, inner: int) -> None:
    assert layout.within(unit) == inner


@pytest.mark.parametrize(
    ("layout", "copies"),
    [
        (Layout(((8, 1),), ((2048, 8),)), ()),  # a node each: one is as good as all
        (Layout(((4, 1),), ((4096, 4),)), ((2, 4),)),  # two in a node
        (Layout(((2048, 8),), ((8, 1),)), ((8, 1),)),  # all share the network
        (Layout(((8, 8),), ((8, 1), (32, 64))), ((8, 1), (4, 64))),  # eight nodes each, four of these on a leaf
        (Layout(((64, 1),), ((256, 64),)), ((4, 64),)),
    ],
)
def test_copies_that_repeat_what_happens_elsewhere_are_left_out(layout: Layout, copies: tuple[Dim, ...]) -> None:
    assert layout.folded((8, 256, 2048)).copies == copies


def test_on_a_machine_every_rank_must_be_there() -> None:
    machine = pods(6)
    assert Layout(((4, 1),), ((6, 4),)).on(machine) == Layout.first(4)
    assert Layout(((4, 1),), ((6, 4),)).on(machine, alone=False).copies == ((6, 4),)
    with pytest.raises(InputError, match="rank: 27; the machine has the ranks 0 to 23"):
        Layout(((4, 1),), ((7, 4),)).on(machine)


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        (lambda: Layout(((0, 1),)), r"layout: \(0, 1\); an extent and a stride of at least 1"),
        (lambda: Layout(((2, 1),), ((2, -1),)), r"layout: \(2, -1\)"),
        (lambda: Layout.of([1, 1]), r"layout: \(1, 1\); each rank once"),
        (lambda: Layout.of([]), r"layout: \(\); at least one rank"),
    ],
)
def test_a_layout_that_is_none_is_refused(given_: Any, message: str) -> None:  # noqa: ANN401
    with pytest.raises(InputError, match=message):
        given_()


@given(st.integers(1, 8), st.integers(1, 8))
def test_a_layout_is_a_value(extent: int, stride: int) -> None:
    assert Layout(((extent, stride),)) == Layout(((extent, stride),))
    assert hash(Layout(((extent, stride),))) == hash(Layout(((extent, stride),)))
