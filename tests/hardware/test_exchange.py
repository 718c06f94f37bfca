"""Is counting as good as enumerating every pair?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.hardware.exchange import enumerated, exchanged
from tests.laws.drawn import groups
from tests.machines import SMALL, pods, racks

if TYPE_CHECKING:
    from commsim.collectives.layout import Layout
    from commsim.hardware.topology import Topology


@given(groups(), st.floats(1e-3, 1e3))
def test_counting_is_enumerating(drawn: tuple[Topology, Layout], share: float) -> None:
    topology, layout = drawn
    counted, pair_by_pair = np.zeros(topology.numbering.total), np.zeros(topology.numbering.total)
    way = exchanged(topology, counted, layout.ranks(), share)
    other = enumerated(topology, pair_by_pair, layout.ranks(), share)
    assert np.allclose(counted, pair_by_pair, rtol=1e-12)
    assert (way.hops @ topology.latency) == pytest.approx(other.hops @ topology.latency)
    assert way.steps.sum() == other.steps.sum()


@pytest.mark.parametrize("name", sorted(SMALL))
def test_every_rank_sends_and_receives_as_often_as_there_are_others(name: str) -> None:
    machine = SMALL[name]
    load = np.zeros(machine.numbering.total)
    exchanged(machine, load, np.arange(machine.size)[None], 1.0)
    out = sum(load[links(machine, u, v)].sum() for u, v in machine.cell.edges if u == "gpu0")
    into = sum(load[links(machine, u, v)].sum() for u, v in machine.cell.edges if v == "gpu0")
    assert out == pytest.approx(machine.size // machine.gpus_per_node * (machine.size - 1))
    assert into == pytest.approx(out)


def links(machine: Topology, u: str, v: str) -> slice:
    """The numbers of all copies of an edge."""
    edge = machine.numbering.order[u, v]
    start = int(machine.numbering.offset[edge])
    return slice(start, start + int(machine.numbering.copies[edge]))


def test_load_is_added_to_what_was_there() -> None:
    machine = pods(6)
    once, twice = np.zeros(machine.numbering.total), np.zeros(machine.numbering.total)
    exchanged(machine, once, np.arange(24)[None], 1.0)
    for _ in range(2):
        exchanged(machine, twice, np.arange(24)[None], 1.0)
    assert np.allclose(twice, 2 * once)


def test_racks_that_are_joined_directly_share_their_links_evenly() -> None:
    machine = racks(4)
    load = np.zeros(machine.numbering.total)
    exchanged(machine, load, np.arange(16)[None], 1.0)
    between = load[links(machine, "nvswitch0", "nvswitch0")].reshape(4, 4)
    assert between.tolist() == [[0 if a == b else 16 for b in range(4)] for a in range(4)]
