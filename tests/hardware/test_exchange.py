"""Is counting as good as enumerating every pair?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.hardware.exchange import exchanged
from commsim.hardware.fabrics import Part, Wire
from commsim.hardware.topology import Tier, Topology
from commsim.hardware.transfers import sent
from tests.laws.drawn import groups
from tests.machines import SMALL, cell, pods, racks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from commsim.collectives.layout import Layout
    from commsim.hardware.transfers import Way

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]


def enumerated(topology: Topology, load: Floats, ranks: Ints, share: float) -> Way:
    """The same pair by pair."""
    a, b = np.nonzero(~np.eye(ranks.shape[1], dtype=bool))
    ends = ranks[:, a], ranks[:, b]
    return sent(topology, load, ends, np.full(ends[0].shape, share))


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


def test_ranks_that_only_seem_alike_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Members are told apart by a number; where it says nothing, each is its own kind."""
    machine = pods(6)
    told, untold = np.zeros(machine.numbering.total), np.zeros(machine.numbering.total)
    exchanged(machine, told, np.arange(21)[None], 1.0)
    generator = type("Nothing", (), {"integers": lambda *_, size: np.zeros(size, dtype=np.int64)})
    monkeypatch.setattr(np.random, "default_rng", lambda _: generator())
    exchanged(machine, untold, np.arange(21)[None], 1.0)
    assert np.allclose(told, untold)


def test_a_mesh_of_meshes_of_units() -> None:
    """Two tiers, each wired from unit to unit: as a HyperX of two dimensions."""
    machine = hyperx_of_units()
    ranks = np.arange(machine.size)[None]
    counted, pair_by_pair = np.zeros(machine.numbering.total), np.zeros(machine.numbering.total)
    exchanged(machine, counted, ranks, 1.0)
    enumerated(machine, pair_by_pair, ranks, 1.0)
    assert counted.sum() > 0
    assert np.allclose(counted, pair_by_pair)


def hyperx_of_units() -> Topology:
    gpu = ({"gpu": Part(2), "nvswitch": Part()}, (Wire(("gpu", "nvswitch"), "nvlink"),))
    row = ({"row": Part()}, (Wire(("nvswitch", "nvswitch"), "nic", "peers"), Wire(("nvswitch", "row"), "pcie")))
    column = ({"column": Part()}, (Wire(("row", "row"), "fibre", "peers"), Wire(("row", "column"), "pcie")))
    return Topology(cell(gpu, row, column), (Tier("row", 3), Tier("column", 2)), nodes=6, domain=2)
