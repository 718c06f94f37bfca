"""Does a figure calculate as a float and still know where it comes from?"""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.errors import InputError
from commsim.figures import Figure, at, is_range, origin


def test_a_figure_is_a_float_with_an_origin() -> None:
    figure = Figure(50e9, status="measured", source=("STAS_NETB",), low=40e9, high=55e9, note="one direction")
    assert figure * 2 == 100e9
    assert type(figure * 2) is float
    assert origin(figure) == "measured [STAS_NETB]"
    assert (at(figure, "low"), at(figure, "nominal"), at(figure, "high")) == (40e9, 50e9, 55e9)
    assert is_range(figure)


def test_a_plain_float_is_certain() -> None:
    assert at(3.0, "low") == at(3.0, "high") == 3.0
    assert not is_range(3.0)
    assert origin(3.0) == "given"


def test_a_pickled_figure_keeps_its_origin() -> None:
    figure = Figure(1.0, status="estimated", source=("EST",), low=0.5, high=2.0, note="x", printed="y")
    again = pickle.loads(pickle.dumps(figure))  # noqa: S301 - our own bytes
    assert (again, again.low, again.high, again.source, again.note, again.printed) == (
        1.0,
        0.5,
        2.0,
        ("EST",),
        "x",
        "y",
    )


@given(st.floats(), st.floats(), st.floats())
def test_only_ordered_finite_ranges_are_figures(low: float, value: float, high: float) -> None:
    ordered = low <= value <= high and max(abs(low), abs(high)) < float("inf")
    if ordered:
        assert Figure(value, low=low, high=high) == value
    else:
        with pytest.raises(InputError):
            Figure(value, low=low, high=high)


def test_an_unknown_status_is_refused() -> None:
    with pytest.raises(InputError, match="did you mean 'measured'"):
        Figure(1.0, status="measurd")  # type: ignore[arg-type]
