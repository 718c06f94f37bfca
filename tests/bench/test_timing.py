"""Is the clock read when an operation is done, and are clocks of several ranks one clock?"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, cast

import pytest

from bench import clocks
from bench.clocks import Offsets, offsets
from bench.timing import HostTimer

if TYPE_CHECKING:
    from bench.team import Team

LONG = 0.02


class Slow:
    """Issued at once, done later."""

    def wait(self) -> None:
        time.sleep(LONG)


def test_the_wait_counts() -> None:
    began, took = HostTimer().once(Slow)
    assert took >= LONG * 1e9
    assert began + took <= clocks.clock()


class Far:
    """A team of two whose second rank has a clock that is ahead, and a network that is not equally quick both ways."""

    rank, size = 0, 2

    def __init__(self, ahead: int, there: float, back: float) -> None:
        self.ahead, self.there, self.back = ahead, there, back
        self.said = 0

    def send(self, _values: list[int], _to: int) -> None:
        time.sleep(self.there)
        self.said = clocks.clock() + self.ahead

    def receive(self, _count: int, _of: int) -> list[int]:
        time.sleep(self.back)
        return [self.said]

    def gathered(self, values: list[int]) -> list[list[int]]:
        return [values]


@pytest.mark.parametrize("ahead", [-3_000_000_000, 0, 5_000_000_000])
@pytest.mark.parametrize(("there", "back"), [(0.001, 0.001), (0.0, 0.004), (0.004, 0.0)])
def test_an_offset_is_right_within_its_uncertainty(ahead: int, there: float, back: float) -> None:
    found = offsets(cast("Team", Far(ahead, there, back)))
    assert found.ahead[0] == 0
    assert abs(found.ahead[1] - ahead) * clocks.NS <= found.uncertainty
    assert found.uncertainty >= (there + back) / 2


def test_drift_between_two_looks_is_uncertain() -> None:
    between = Offsets((0, 100), 1e-6).between(Offsets((0, 300), 2e-6))
    assert between.ahead == (0, 200)
    assert between.uncertainty == pytest.approx(2e-6 + 100e-9)
