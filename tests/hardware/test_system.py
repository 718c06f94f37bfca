"""Does each machine of the catalogue have the links, ports and paths that it is announced with?"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commsim.errors import InputError
from commsim.hardware.catalogue import load
from commsim.hardware.shelf import names

if TYPE_CHECKING:
    from commsim.hardware.system import System
    from commsim.hardware.topology import Topology

SCALE_UP = {
    "dgx-1v": 150,
    "dgx-2": 150,
    "hgx-a100": 300,
    "a100-nvlink-mesh-4": 300,
    "hgx-h100": 450,
    "h100-nvlink-mesh-4": 450,
    "hgx-h200": 450,
    "hgx-h800": 200,
    "hgx-h20": 450,
    "hgx-b200": 900,
    "hgx-b300": 900,
    "gb200-nvl72": 900,
    "gb300-nvl72": 900,
    "vr-nvl72": 1800,
    "rubin-ultra-nvl144": 1800,
    "rubin-ultra-nvl288": 1800,
    "rubin-ultra-nvl576": 1800,
    "feynman-nvl1152": 1800,
    "gh200-nvlink-mesh-4": 450,
    "gh200-nvl32": 450,
    "groq3-lpx": 1260,
    "mi250x": 350,
    "mi300x": 448,
    "mi325x": 448,
    "mi355x": 535.5,
}
"""GB/s that leave one GPU into its scale-up domain, one direction: the vendors' sums of both directions, halved.

The LPU has 90 of its 96 lanes inside the rack (15 x 4 + 15 x 2), at a raw rate of 14 GB/s.
"""
NODES = {"gb200-nvl72": 18, "gb300-nvl72": 18, "vr-nvl72": 18, "gh200-nvl32": 32, "groq3-lpx": 16}
NODES |= {"rubin-ultra-nvl144": 36, "rubin-ultra-nvl288": 72, "rubin-ultra-nvl576": 144, "feynman-nvl1152": 288}
GPUS = {"dgx-2": 16, "gb10": 1, "pcie-a6000": 4, "pcie-t4": 4, "gb200-nvl72": 72, "gb300-nvl72": 72, "vr-nvl72": 72}
GPUS |= {"gh200-nvl32": 32, "groq3-lpx": 256, "rubin-ultra-nvl144": 144, "rubin-ultra-nvl288": 288}
GPUS |= {"rubin-ultra-nvl576": 576, "feynman-nvl1152": 1152}
GPUS |= dict.fromkeys(("a100-nvlink-mesh-4", "h100-nvlink-mesh-4", "gh200-nvlink-mesh-4"), 4)
NIC_SPEED = {
    "dgx-1v": 6.25,
    "dgx-2": 6.25,
    "hgx-a100": 25,
    "hgx-h100": 50,
    "hgx-b200": 50,
    "hgx-b300": 100,
    "gb200-nvl72": 50,
    "gb300-nvl72": 100,
    "vr-nvl72": 200,
    "rubin-ultra-nvl144": 400,
    "gh200-nvl32": 50,
    "mi300x": 50,
    "mi355x": 50,
    "a100-nvlink-mesh-4": 12.5,
    "gh200-nvlink-mesh-4": 25,
    "groq3-lpx": 12.5,
}
"""GB/s of its NICs for one GPU, one direction."""
every_system = pytest.mark.parametrize("name", sorted(names()))


def inside(topology: Topology, vertex: str) -> float:
    """The bandwidth from a vertex into the scale-up domain, B/s: all but PCIe and the processors' links."""
    total = 0.0
    for _, other, data in topology.cell.out_edges(vertex, data=True):
        if topology.cell.nodes[other]["part"] not in ("cpu", "pcie", "nic", "fpga"):
            siblings = topology.tiers[topology.cell.nodes[vertex]["tier"]].units - 1 if data.get("peers") else 1
            total += data["count"] * data["link"].bandwidth * siblings
    return total


def hops(system: System, source: int, target: int) -> int:
    """How many links one byte crosses."""
    return int(system.topology.route(np.array([source]), np.array([target])).hops[0].sum())


def ends_at(topology: Topology, vertex: str) -> float:
    """How many links end at one copy of a vertex, when everything below it is there."""
    cell, spans = topology.cell, topology.spans
    own = cell.nodes[vertex]["tier"]
    total = 0.0
    for other, _, data in cell.in_edges(vertex, data=True):
        below = spans[own] // spans[min(own, cell.nodes[other]["tier"])]
        total += data["count"] * (topology.tiers[own].units - 1 if data.get("peers") else below)
    return total


@pytest.mark.parametrize(("name", "expected"), SCALE_UP.items())
def test_bandwidth_of_a_gpu_into_its_domain(name: str, expected: float) -> None:
    topology = load(name).topology
    first = "lpu0" if "lpu0" in topology.cell else "gpu0"
    assert inside(topology, first) == pytest.approx(expected * 1e9)


@every_system
def test_default_is_one_domain(name: str) -> None:
    system = load(name)
    assert system.nodes == system.nodes_per_domain == NODES.get(name, 1)
    assert system.gpus == GPUS.get(name, 8)


@every_system
@pytest.mark.parametrize("domains", [1, 3, 40])
def test_links_end_at_ports_that_are_there(name: str, domains: int) -> None:
    system = load(name)
    if domains > 1 and system.scale_out is None:
        with pytest.raises(InputError, match="NIC"):
            load(name, nodes=domains * system.nodes).gpus  # noqa: B018
        return
    topology = load(name, nodes=domains * system.nodes).topology
    for vertex, data in topology.cell.nodes(data=True):
        if data["ports"] and data["part"] != "core":
            assert ends_at(topology, vertex) <= data["ports"] * data["stands_for"], vertex


@pytest.mark.parametrize(("name", "expected"), NIC_SPEED.items())
def test_bandwidth_of_a_gpu_into_the_network(name: str, expected: float) -> None:
    system = load(name)
    assert system.scale_out is not None
    per_gpu = system.nics_per_node * system.scale_out.nic / system.gpus_per_node
    assert per_gpu == pytest.approx(expected * 1e9)


def test_bisection_of_dgx_2() -> None:
    """NVIDIA prints 2.4 TB/s, both directions."""
    edge = load("dgx-2").cell.edges["nvswitch0", "nvswitch1"]
    assert 2 * edge["count"] * edge["link"].bandwidth == 2.4e12


def test_pair_of_racks_of_nvl576() -> None:
    """72 chips x 10 links x 25 GB/s = 18 TB/s a direction; a uniform all-to-all needs 72 x 72 / 576 x 1.8 = 16.2."""
    system = load("rubin-ultra-nvl576")
    edge = system.topology.cell.edges["nvswitch0", "nvswitch0"]
    assert edge["count"] * edge["link"].bandwidth == 18e12
    assert edge["count"] * edge["link"].bandwidth > 72 * 72 / 576 * inside(system.topology, "gpu0")


@pytest.mark.parametrize(
    ("name", "source", "target", "links"),
    [
        ("dgx-1v", 0, 3, 1),
        ("dgx-1v", 0, 7, 2),
        ("dgx-2", 0, 7, 2),
        ("dgx-2", 0, 8, 3),
        ("hgx-h100", 0, 7, 2),
        ("a100-nvlink-mesh-4", 0, 3, 1),
        ("gb200-nvl72", 0, 71, 2),
        ("rubin-ultra-nvl144", 0, 143, 2),
        ("rubin-ultra-nvl576", 0, 71, 2),
        ("rubin-ultra-nvl576", 0, 575, 3),
        ("feynman-nvl1152", 0, 1151, 3),
        ("groq3-lpx", 0, 15, 1),
        ("groq3-lpx", 0, 16, 1),
        ("groq3-lpx", 0, 255, 2),
        ("mi250x", 0, 6, 1),
        ("mi250x", 0, 7, 2),
        ("mi300x", 0, 7, 1),
        ("pcie-4090", 0, 3, 2),
        ("pcie-4090", 0, 7, 3),
        ("pcie-l40s", 0, 1, 2),
        ("pcie-l40s", 0, 2, 4),
        ("pcie-l40s", 0, 7, 5),
        ("pcie-h100-bridge", 0, 1, 1),
    ],
)
def test_links_between_two_gpus(name: str, source: int, target: int, links: int) -> None:
    """Facts of the vendors' drawings: one switch in a rack, two between racks of NVL576, two hops at most in LPX."""
    assert hops(load(name), source, target) == links


def test_lpx_takes_all_shortest_paths() -> None:
    """Two LPUs that share neither node nor index have two: 4 of 6 lanes lead within the node first, 2 across first."""
    routes = load("groq3-lpx").topology.route(np.array([0]), np.array([17]))
    assert sorted(routes.share[0][routes.share[0] > 0]) == pytest.approx([1 / 3, 1 / 3, 2 / 3, 2 / 3])


def test_geforce_goes_through_the_host() -> None:
    system = load("pcie-4090")
    kinds = [link.kind for link in system.topology.kinds]
    crossed = system.topology.route(np.array([0]), np.array([7])).hops[0]
    assert dict(zip(kinds, crossed)) == {"pcie4-x16": 2, "xgmi-epyc": 1}


def test_chips() -> None:
    counts = {name: load(name).switches.get("nvswitch", 0) for name in ("dgx-2", "hgx-a100", "hgx-h100", "vr-nvl72")}
    assert counts == {"dgx-2": 12, "hgx-a100": 6, "hgx-h100": 4, "vr-nvl72": 36}


# Cell and full graph agree.


@lru_cache(maxsize=128)
def small(name: str, used: int) -> Topology:
    """A small machine of that kind that still has all of its tiers: up to three units of each, two domains."""
    system = load(name)
    levels = tuple(replace(level, units=min(3, level.units)) for level in system.scale_up)
    shrunk = replace(system, scale_up=levels, gpus_per_node=used)
    domains = 2 if system.scale_out else 1
    return replace(shrunk, nodes=domains * shrunk.nodes_per_domain).topology


@lru_cache(maxsize=128)
def flat(name: str, used: int) -> Topology:
    return small(name, used).flat()


def by_vertices(topology: Topology, sources: list[int], targets: list[int]) -> dict[tuple[str, str], float]:
    """What each link of the whole graph carries, per cable, by the names of its ends."""
    routes, numbering = topology.route(np.array(sources), np.array(targets)), topology.numbering
    carried: dict[tuple[str, str], float] = {}
    for link, share in zip(routes.links.ravel(), routes.share.ravel()):
        if share > 0:
            edge = int(np.searchsorted(numbering.offset, link, side="right")) - 1
            ends = _ends(topology, numbering.names[edge], int(link - numbering.offset[edge]))
            carried[ends] = carried.get(ends, 0.0) + share / numbering.count[edge]
    return carried


def _ends(topology: Topology, edge: tuple[str, str], place: int) -> tuple[str, str]:
    """The names of the ends of one copy of an edge, as `Topology.graph` writes them."""
    if not topology.tiers:
        return edge
    tier = [topology.cell.nodes[end]["tier"] for end in edge]
    if topology.cell.edges[edge].get("peers"):
        siblings = topology.tiers[tier[0]].units
        unit, other = divmod(place, siblings)
        return topology.copy_name(edge[0], unit), topology.copy_name(edge[1], unit // siblings * siblings + other)
    node = place * topology.spans[min(tier)]
    first, second = (topology.copy_name(end, node // topology.spans[t]) for end, t in zip(edge, tier))
    return first, second


@every_system
def test_whole_graph_is_connected(name: str) -> None:
    assert nx.is_strongly_connected(small(name, 0).graph())


@every_system
@settings(max_examples=5)
@given(data=st.data())
def test_cell_and_whole_graph_agree(name: str, data: st.DataObject) -> None:
    used = data.draw(st.sampled_from([1, load(name).gpus_per_node]))
    size = small(name, used).size
    pair = st.tuples(st.integers(0, size - 1), st.integers(0, size - 1))
    sources, targets = zip(*data.draw(st.lists(pair, min_size=1, max_size=6)))
    tiled, whole = (by_vertices(one(name, used), list(sources), list(targets)) for one in (small, flat))
    assert tiled == pytest.approx(whole)


# Sizes.


def test_sizes_by_nodes_and_by_gpus() -> None:
    assert load("hgx-h100", nodes=3).gpus == 24
    assert load("hgx-h100", gpus=24).nodes == 3
    assert load("hgx-h100", gpus=3).gpus_per_node == 3
    assert load("hgx-h100", gpus=12, gpus_per_node=4).nodes == 3
    assert load("gb200-nvl72", nodes=1).gpus == 4
    assert load("hgx-h100", gpus=100_000).nodes == 12_500


@pytest.mark.parametrize(
    ("sizes", "complaint"),
    [
        ({"nodes": 0}, "nodes: 0"),
        ({"nodes": -1}, "nodes: -1"),
        ({"nodes": True}, "nodes: True"),
        ({"nodes": 1.5}, "nodes: 1.5"),
        ({"gpus": 0}, "gpus: 0"),
        ({"nodes": 2, "gpus": 16}, "not both"),
        ({"gpus": 12}, "a multiple of 8"),
        ({"gpus_per_node": 9}, "1 to 8"),
        ({"gpus_per_node": 0}, "gpus per node: 0"),
        ({"nodes": 10**12}, "can be joined"),
        ({"nodes": 10**5}, "at most 262,144"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(sizes: dict[str, int], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        load("hgx-h100", **sizes)


def test_nothing_joins_boxes_without_nics() -> None:
    with pytest.raises(InputError, match="pcie-4090: nodes: 2; no NIC joins more than 1 node: describe one, or"):
        load("pcie-4090", nodes=2)
