"""Are shapers exact against what is measured, and do queues stay short before the slowest cable?"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from commsim.lab.shaping import FRAME, burst, window

MIB = 2**20


@given(st.floats(1e6, 1.25e9))
def test_a_burst_is_little_of_what_goes_through_in_a_tenth_of_a_second(rate: float) -> None:
    assert burst(rate) >= 2 * FRAME
    assert burst(rate) <= max(2 * FRAME, 0.02 * rate * 0.1)


@given(st.floats(1e6, 1.25e9))
def test_a_window_fills_the_cable(rate: float) -> None:
    assert window(rate) >= rate * 1e-3
    assert window(rate) <= max(16_384, rate * 2e-3)
