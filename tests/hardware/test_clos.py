"""Are as many switches drawn as a network needs, and does traffic cross as many of them as it does in the field?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.errors import InputError
from commsim.hardware.catalogue import load
from commsim.hardware.clos import Clos, Joined
from commsim.hardware.shelf import fabric

if TYPE_CHECKING:
    from commsim.hardware.system import System

SUPERPOD = {
    2: {"leaf": 16, "spine": 8},
    4: {"leaf": 32, "spine": 16},
    8: {"leaf": 64, "spine": 32},
    16: {"leaf": 128, "spine": 128, "core": 64},
    32: {"leaf": 256, "spine": 256, "core": 128},
    64: {"leaf": 512, "spine": 512, "core": 256},
}
"""Switches for so many scalable units of 32 nodes: NVIDIA DGX SuperPOD reference architecture, DGX B200."""


def switch_links(system: System, source: int, target: int) -> int:
    """The links between switches that one byte crosses; a path through k switches has k - 1 of them."""
    topology = system.topology
    kinds = [link.kind for link in topology.kinds]
    hops = topology.route(np.array([source]), np.array([target])).hops[0]
    return int(sum(count for kind, count in zip(kinds, hops) if kind.endswith(" switch")))


@pytest.mark.parametrize(("units", "expected"), SUPERPOD.items())
@pytest.mark.parametrize("name", ["hgx-h100", "hgx-b200"])
def test_switches_of_a_superpod(name: str, units: int, expected: dict[str, int]) -> None:
    counts = load(name, nodes=32 * units).switches
    del counts["nvswitch"]
    assert counts == expected


def test_a_missing_node_takes_no_switch_away() -> None:
    """The H100 table has 127 nodes in 4 units: the 128th place frees ports for the fabric manager."""
    counts = load("hgx-h100", nodes=127).switches
    assert (counts["leaf"], counts["spine"]) == (32, 16)


def test_racks_of_gb300_leave_ports_of_their_leaves_empty() -> None:
    """NVIDIA's GB300 NVL72 architecture puts a rail of two racks, 36 GPUs, under a leaf of 64 ports and tapers upwards.

    Per plane of 400 Gb/s two racks so take 4 leaves and 2 spines (28 uplinks a leaf). A leaf that does not taper has
    room for the 18 of one rack: 8 leaves, whose 144 uplinks fill 3 spines.
    """
    counts = load("gb300-nvl72", nodes=36, nic="400 Gb/s").switches
    assert (counts["leaf"], counts["spine"]) == (8, 3)


@given(st.integers(2, 40).map(lambda half: 2 * half))
def test_a_full_fat_tree_has_the_switches_of_al_fares(radix: int) -> None:
    """Al-Fares et al. 2008, section 3: k^3 / 4 hosts, k^2 / 2 leaves, as many in the middle, k^2 / 4 in the core."""
    plan = Clos.of(radix, 1, 1, Joined(radix**3 // 4))
    pods = plan.groups
    assert plan.units * plan.pods * pods >= radix**3 // 4
    leaves, spines = plan.pods * pods, plan.switches["spine"][1] * pods
    assert (leaves, spines, plan.switches["core"][1]) == (radix**2 // 2, radix**2 // 2, radix**2 // 4)


@given(
    radix=st.sampled_from([36, 40, 64, 128, 144]),
    leaves=st.sampled_from([1, 2, 4, 8]),
    domain=st.integers(1, 40),
    nodes=st.integers(1, 5_000),
    taper=st.sampled_from([1.0, 1.5, 2.0, 3.0, 7.0]),
)
def test_a_network_fits_its_switches(radix: int, leaves: int, domain: int, nodes: int, taper: float) -> None:
    plan = Clos.of(radix, leaves, 8, Joined(nodes, domain, taper))
    down = plan.units * domain * 8 / leaves
    assert down + plan.uplinks <= plan.split * radix + 1e-6 * radix
    assert plan.uplinks == pytest.approx(max(1.0, down / taper))
    room = plan.units * plan.pods * max(1, plan.groups) * domain
    assert room >= nodes
    if not plan.groups:
        assert plan.spine_cables <= plan.switches["spine"][1] * radix
    else:
        assert 2 * plan.spine_cables <= plan.switches["spine"][1] * radix


def test_one_leaf_needs_no_spine() -> None:
    assert [tier.name for tier in load("pcie-3090", nodes=18).topology.tiers] == ["leaf"]
    assert [tier.name for tier in load("pcie-3090", nodes=19).topology.tiers] == ["leaf", "spine"]


def test_same_rail_crosses_one_switch_and_another_rail_three() -> None:
    system = load("hgx-h100", nodes=64)
    assert switch_links(system, 0, 8) == 0
    assert switch_links(system, 0, 9) == 2
    assert switch_links(system, 0, 8 * 32) == 2  # the next scalable unit


def test_beyond_two_tiers_the_core_is_crossed() -> None:
    system = load("hgx-h100", nodes=512)
    assert switch_links(system, 0, 8 * 127) == 2
    assert switch_links(system, 0, 8 * 128) == 4


def test_a_fat_tree_has_all_nics_of_a_node_on_one_leaf() -> None:
    system = load("hgx-h100", nodes=8, fabric="efa", nic="100 Gb/s", nics_per_node=8)
    assert switch_links(system, 0, 9) == 0
    assert system.switches["leaf"] == 2


def test_oversubscription_takes_cables_away() -> None:
    full, thin = (load("hgx-h100", nodes=256, oversubscription=ratio).topology.cell for ratio in (1.0, 3.0))
    assert full.edges["leaf0", "spine0"]["count"] == 32
    assert thin.edges["leaf0", "spine0"]["count"] == 16  # 48 down, 16 up


@pytest.mark.parametrize("ratio", [0.5, 0.0, -1.0, 64.0, 1e9, float("nan"), float("inf")])
def test_absurd_oversubscription_is_refused(ratio: float) -> None:
    with pytest.raises(InputError, match="oversubscription"):
        load("hgx-h100", nodes=64, oversubscription=ratio)


@pytest.mark.parametrize("ratio", [0.5, float("nan"), float("inf")])
def test_absurd_oversubscription_is_refused_even_where_nothing_depends_on_it(ratio: float) -> None:
    with pytest.raises(InputError, match="oversubscription"):
        load("hgx-h100", oversubscription=ratio)
    assert load("hgx-h100", oversubscription=1.0).nodes == 1


def test_a_domain_larger_than_a_switch_stands_on_several() -> None:
    """576 GPUs have 144 NICs on each rail, and a switch of 144 ports 72 of them down."""
    system = load("rubin-ultra-nvl576", nodes=288)
    assert system.topology.cell.nodes["leaf0"]["stands_for"] == 2


@pytest.mark.parametrize(("nic", "radix"), [("100 Gb/s", 36), ("200 Gb/s", 40), ("400 Gb/s", 64), ("1600 Gb/s", 72)])
def test_a_nic_takes_the_smallest_port_that_fits(nic: str, radix: int) -> None:
    found = load("hgx-h100", nodes=2, nic=nic).fabric
    assert found is not None
    assert found.radix == radix


def test_a_nic_beyond_a_whole_switch_is_refused() -> None:
    with pytest.raises(InputError, match="half of a switch"):
        fabric("infiniband", 1e15)


def test_adapters_of_later_generations_are_quicker() -> None:
    early, late = fabric("efa", 100e9 / 8), fabric("efa", 200e9 / 8)
    assert (early.cable.latency, late.cable.latency) == (10e-6, 9e-6)


def test_unknown_network_and_wiring_are_refused() -> None:
    with pytest.raises(InputError, match="did you mean 'infiniband'"):
        load("hgx-h100", nodes=2, fabric="infinband")
