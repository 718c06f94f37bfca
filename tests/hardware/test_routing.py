"""Do transfers go the way that hardware sends them?"""

from __future__ import annotations

from itertools import pairwise

import networkx as nx
import numpy as np
import pytest

from commsim.errors import InputError
from commsim.hardware import routing
from commsim.hardware.catalogue import load
from commsim.hardware.fabrics import Part, Wire, torus
from commsim.hardware.routing import DOWN, UP
from commsim.hardware.topology import Topology
from tests.machines import LINKS, cell, mesh, pods, racks, sockets, switch

ONE = (0, False)
THROUGH = (1, True)


def chain(topology: Topology, a: int, b: int, level: int = 0) -> list[str]:
    """Return the vertices that one byte passes."""
    path = routing.between(topology.cell, a, b, level)
    return [path.chain[0][0], *(v for _, v in path.chain)] if path.chain else []


def test_inside_a_node_the_switch_is_the_way() -> None:
    assert chain(pods(6), 0, 1) == ["gpu0", "nvswitch0", "gpu1"]


def test_between_nodes_each_gpu_takes_its_own_nic() -> None:
    assert chain(pods(6), 0, 0, 1) == ["gpu0", "nic0", "leaf0", "nic0", "gpu0"]
    assert chain(pods(6), 0, 1, 1) == ["gpu0", "nic0", "leaf0", "spine0", "leaf1", "nic1", "gpu1"]
    assert routing.nics_of(pods(6).cell, 2) == ("nic2",)


def test_a_transfer_to_itself_takes_no_link() -> None:
    assert routing.between(mesh(4).cell, 2, 2, 0) == routing.Path()


def test_gpus_do_not_forward_unless_they_say_so() -> None:
    ring = Topology(torus((5,), LINKS["nvlink"]))
    assert chain(ring, 0, 2) == ["gpu0", "gpu1", "gpu2"]
    line = cell(({"gpu": Part(3)}, (Wire(("gpu", "gpu"), "nvlink", "pairs", pairs=((0, 1), (1, 2))),)))
    with pytest.raises(InputError, match=r"topology: 'gpu0 and gpu2'; no path joins these two of one node"):
        routing.between(line, 0, 2, 0)


def test_equal_paths_share_a_transfer_by_their_cables() -> None:
    """Two planes, one with twice the cables: two thirds and one third."""
    planes = cell(({"gpu": Part(2), "nvswitch": Part(2)}, ()))
    for gpu, plane, count in ((0, 0, 2), (0, 1, 1), (1, 0, 2), (1, 1, 1)):
        ends = f"gpu{gpu}", f"nvswitch{plane}"
        planes.add_edges_from([ends, ends[::-1]], link=LINKS["nvlink"], count=count)
    path = routing.between(planes, 0, 1, 0)
    shares = dict(zip(path.edges, path.shares))
    assert shares["gpu0", "nvswitch0"] == shares["nvswitch0", "gpu1"] == pytest.approx(2 / 3)
    assert shares["gpu0", "nvswitch1"] == pytest.approx(1 / 3)


def test_all_shortest_paths_of_networkx_share_the_load() -> None:
    """On a torus of 4 x 4 the two directions round and the two orders of dimensions are all the same length."""
    machine = Topology(torus((4, 4), LINKS["nvlink"]))
    names = routing.gpus_of(machine.cell)
    for target in range(16):
        path = routing.between(machine.cell, 0, target, 0)
        ways = nx.all_shortest_paths(machine.cell, names[0], names[target])
        used = {edge for way in ways for edge in pairwise(way)}
        assert set(path.edges) == used
        into = [share for (_, v), share in zip(path.edges, path.shares) if v == names[target]]
        assert sum(into) == pytest.approx(1 if target else 0)


def test_cheaper_in_latency_wins_over_fewer_hops() -> None:
    slow = cell(
        ({"gpu": Part(2), "switch": Part(1)}, (Wire(("gpu", "switch"), "fibre"), Wire(("gpu", "gpu"), "nic", "mesh")))
    )
    assert chain(Topology(slow), 0, 1) == ["gpu0", "switch0", "gpu1"]


def test_over_two_sockets_the_way_is_the_link_between_them() -> None:
    assert chain(sockets(), 0, 1) == ["gpu0", "cpu0", "gpu1"]
    assert chain(sockets(), 0, 2) == ["gpu0", "cpu0", "cpu1", "gpu2"]


def test_racks_that_are_joined_directly() -> None:
    path = routing.between(racks(3).cell, 0, 1, 2)
    assert path.chain == (("gpu0", "nvswitch0"), ("nvswitch0", "nvswitch0"), ("nvswitch0", "gpu1"))
    assert path.sides == (0, 0, 1)
    assert not path.network


def test_a_path_through_a_nic_says_so() -> None:
    assert routing.between(pods(6).cell, 0, 0, 1).network
    assert not routing.between(pods(6).cell, 0, 1, 0).network


@pytest.mark.parametrize(("gpus", "nics", "expected"), [(4, 2, 1), (2, 4, 2), (4, 4, 1), (3, 2, 1)])
def test_nics_are_dealt_out_among_the_gpus_near_them(gpus: int, nics: int, expected: int) -> None:
    """NCCL: with k nearest NICs shared by g GPUs each takes ceil(k / g), and every NIC has a user."""
    parts = {"gpu": Part(gpus), "pcie": Part(), "nic": Part(nics)}
    node = cell((parts, (Wire(("gpu", "pcie"), "pcie"), Wire(("nic", "pcie"), "pcie"))))
    dealt = [routing.nics_of(node, local) for local in range(gpus)]
    assert {len(names) for names in dealt} == {expected}
    assert {name for names in dealt for name in names} == {f"nic{i}" for i in range(nics)}


def test_a_gpu_without_nics_has_none() -> None:
    assert routing.nics_of(switch(2).cell, 0) == ()


# The switch that joins.


def test_a_node_is_joined_by_its_own_switch() -> None:
    up = routing.to_switch(pods(6).cell, (0, 1, 2), ONE, UP)
    assert [path.chain for path in up] == [((f"gpu{i}", "nvswitch0"),) for i in range(3)]
    down = routing.to_switch(pods(6).cell, (1,), ONE, DOWN)
    assert down[0].edges == (("nvswitch0", "gpu1"),)


def test_one_rail_is_joined_by_its_leaf_and_two_by_the_spine() -> None:
    (leaf,) = routing.to_switch(pods(6).cell, (1,), THROUGH, UP)
    assert leaf.chain[-1] == ("nic1", "leaf1")
    both = routing.to_switch(pods(6).cell, (1, 2), THROUGH, UP)
    assert [path.chain[-1] for path in both] == [("leaf1", "spine0"), ("leaf2", "spine0")]


@pytest.mark.parametrize("machine", [sockets(), mesh(4)])
def test_where_no_switch_reduces_it_is_refused(machine: Topology) -> None:
    with pytest.raises(
        InputError, match=r"in-network reduction: '2 places of a node'; no switch that reduces joins them"
    ):
        routing.to_switch(machine.cell, (0, 1), ONE, UP)


def test_a_switch_joins_from_above_and_not_from_beside() -> None:
    with pytest.raises(InputError, match="in-network reduction"):
        routing.to_switch(racks(3).flat().cell, (0, 4), ONE, UP)
    assert len(routing.to_switch(racks(3).flat().cell, (0, 2), ONE, UP)) == 2


# Machines of the catalogue.


def test_h100_boxes() -> None:
    machine = load("hgx-h100", nodes=64).topology
    assert chain(machine, 0, 7) == ["gpu0", "nvswitch0", "gpu7"]
    assert chain(machine, 3, 3, 1) == ["gpu3", "pcie3", "nic3", "leaf3", "nic3", "pcie3", "gpu3"]


def test_every_pair_of_a_small_cluster_is_joined_both_ways_alike() -> None:
    machine = load("hgx-h100", nodes=3).topology
    a, b = (one.reshape(-1) for one in np.indices((24, 24)))
    there, back = machine.route(a, b), machine.route(b, a)
    assert (there.hops == back.hops).all()
    assert np.allclose(there.share.sum(axis=1), back.share.sum(axis=1))
