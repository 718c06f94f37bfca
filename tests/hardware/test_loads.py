"""Is counting by way and unit as good as adding up every hop of every transfer?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.hardware import loads
from commsim.hardware.transfers import sent
from tests.machines import SMALL

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from commsim.hardware.topology import Topology

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]


@st.composite
def transfers(draw: st.DrawFn) -> tuple[Topology, Ints, Ints, Floats]:
    machine = SMALL[draw(st.sampled_from(sorted(SMALL)))]
    rank = st.integers(0, machine.size - 1)
    rows = draw(st.lists(st.tuples(rank, rank, st.floats(0, 10)), min_size=1, max_size=40))
    source, target, share = zip(*rows)
    return machine, np.array(source), np.array(target), np.array(share)


def hop_by_hop(machine: Topology, source: Ints, target: Ints, share: Floats) -> Floats:
    load = np.zeros(machine.numbering.total)
    routes = machine.route(source, target)
    np.add.at(load, routes.links, routes.share * share[:, None])
    return load


@given(transfers())
def test_counted_is_hop_by_hop(drawn: tuple[Topology, Ints, Ints, Floats]) -> None:
    machine, source, target, share = drawn
    load = np.zeros(machine.numbering.total)
    sent(machine, load, (source[None], target[None]), share[None])
    assert np.allclose(load, hop_by_hop(machine, source, target, share), atol=1e-12)


@pytest.mark.parametrize("most", [1, 7, 40])
def test_some_ways_at_a_time_are_all_of_them(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(loads, "_MOST_COUNTS", most)
    machine = SMALL["pods"]
    source, target = (one.reshape(-1) for one in np.indices((24, 24)))
    load = np.zeros(machine.numbering.total)
    sent(machine, load, (source[None], target[None]), np.ones((1, 576)))
    assert np.allclose(load, hop_by_hop(machine, source, target, np.ones(576)))
