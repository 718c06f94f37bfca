"""How long does it take to time dispatch and combine?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commsim.collectives.layout import Layout
from commsim.collectives.moe.routing import MEASURED_SKEW, Routing
from commsim.hardware.catalogue import load
from commsim.libraries.moe import Exchange, MoeTimes, Where, dispatch, moe_times

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture


def test_a_thousand_numbers_of_tokens(benchmark: BenchmarkFixture) -> None:
    """Aim: 0.2 ms once the groups are priced."""
    topology = load("hgx-h100", nodes=16).topology
    where, routing = Where(Layout(((64, 1),), ((2, 64),)), topology), Routing(256, 8, groups=4)
    tokens = np.arange(1.0, 1001.0)

    def timed() -> MoeTimes:
        return moe_times(tokens, (7392.0, 14336.0), routing, where)

    assert benchmark(timed).combine.shape == tokens.shape


def test_skewed_on_a_cold_machine(benchmark: BenchmarkFixture) -> None:
    """Aim: 0.5 s for 64 draws of the popularity on 64 ranks."""

    def timed() -> Exchange:
        machine = load("hgx-h100", nodes=8)
        return dispatch(machine, Routing(256, 8, skew=MEASURED_SKEW), tokens=4096, hidden=7168)

    assert benchmark(timed).seconds > 0
