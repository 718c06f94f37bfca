"""Is a machine what its cell and tiers say, and can links of it be broken?"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import networkx as nx
import numpy as np
import pytest

from commsim.errors import InputError
from commsim.hardware.topology import Link, Tier, Topology
from tests.machines import LINKS, mesh, pods, racks, sockets, switch

if TYPE_CHECKING:
    from collections.abc import Callable


def test_size_and_domain() -> None:
    assert (pods(6).size, pods(6).domain_size, pods(6).spans) == (24, 4, (1, 2, 16))
    assert (racks(3).size, racks(3).domain_size) == (12, 12)
    assert (switch(8).size, switch(8).domain_size) == (8, 8)


def test_fewer_gpus_of_a_node_may_be_used() -> None:
    half = replace(pods(6), gpus_per_node=2)
    assert (half.size, half.domain_size) == (12, 2)
    assert half.locate(np.array([0, 3, 11]))[0].tolist() == [0, 1, 5]
    assert half.locate(np.array([0, 3, 11]))[1].tolist() == [0, 1, 1]


def test_the_level_of_two_nodes_is_the_lowest_unit_that_holds_both() -> None:
    nodes = np.array([0, 0, 0, 2, 5]), np.array([0, 1, 2, 3, 0])
    assert pods(6).level(*nodes).tolist() == [0, 1, 2, 1, 2]


def test_kinds_stand_once_in_the_order_of_the_cell() -> None:
    assert [link.kind for link in pods(6).kinds] == ["nvlink", "pcie", "nic", "fibre"]
    assert pods(6).latency.tolist() == [0.25e-6, 0.3e-6, 0.5e-6, 0.12e-6]


def test_routes_say_links_shares_and_hops() -> None:
    routes = pods(6).route(np.array([0, 0, 3]), np.array([1, 9, 3]))
    assert routes.hops.tolist() == [[2, 0, 0, 0], [0, 2, 2, 2], [0, 0, 0, 0]]
    assert routes.network.tolist() == [0, 1, 0]
    assert (routes.share > 0).sum(axis=1).tolist() == [2, 6, 0]


def test_the_whole_graph_draws_every_copy() -> None:
    whole = pods(6).graph()
    parts = [data["part"] for _, data in whole.nodes(data=True)]
    assert Counter(parts) == {"gpu": 24, "nvswitch": 6, "nic": 24, "leaf": 12, "spine": 1}
    assert whole.has_edge("node5/nic3", "leaf2/leaf3")
    assert whole.has_edge("leaf2/leaf3", "spine0/spine0")


def test_the_whole_graph_draws_units_that_are_joined_to_each_other() -> None:
    whole = racks(3).graph()
    between = [(u, v) for u, v, data in whole.edges(data=True) if data["link"].kind == "fibre"]
    assert len(between) == 3 * 2
    assert ("rack0/nvswitch0", "rack2/nvswitch0") in between


def test_a_flat_machine_has_the_same_ranks_and_domains() -> None:
    flat = pods(6).flat()
    assert (flat.size, flat.domain_size, flat.tiers) == (24, 4, ())
    assert flat.flat() is flat
    assert sorted(link.kind for link in flat.kinds) == sorted(link.kind for link in pods(6).kinds)


# Broken and slow links.


def test_without_a_link_transfers_go_round() -> None:
    """GPUs of a mesh do not forward: with the direct link cut nothing joins the two, unless a switch stands beside."""
    with pytest.raises(InputError, match=r"topology: 'gpu0 and gpu1'; no path joins these two of one node"):
        mesh(4).without("gpu0", "gpu1").route(np.array([0]), np.array([1]))
    beside = mesh(4).cell.copy()
    beside.add_node("switch", part="switch", tier=0)
    for gpu in ("gpu0", "gpu1"):
        beside.add_edges_from([(gpu, "switch"), ("switch", gpu)], link=LINKS["pcie"], count=1)
    cut = Topology(beside).without("gpu0", "gpu1")
    assert cut.route(np.array([0]), np.array([1])).hops.tolist() == [[0, 2]]


def test_without_one_nic_the_other_paths_stay() -> None:
    cut = pods(2).without("node0/nic1", "leaf0/leaf1")
    assert cut.route(np.array([0]), np.array([4])).network.tolist() == [1]
    with pytest.raises(InputError, match="'node0/gpu1 and node1/gpu1'; no path joins these two"):
        cut.route(np.array([1]), np.array([5]))


def test_a_mesh_has_gpus_that_are_wired_to_each_other() -> None:
    machines = {"mesh": mesh(4), "switch": switch(8), "pods": pods(6), "sockets": sockets()}
    assert [name for name, machine in machines.items() if machine.meshed] == ["mesh"]


# Refused.


def two_speeds() -> Topology:
    machine = pods(2).flat()
    machine.cell.edges["node0/nic1", "leaf0/leaf1"]["link"] = Link("nic", 1e9, 0.5e-6)
    return machine


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Topology(nx.DiGraph()), r"topology: \[\]; at least one gpu"),
        (lambda: replace(pods(6), gpus_per_node=5), r"gpus per node: 5; 1 to 4 belong here"),
        (lambda: replace(pods(6), nodes=17), r"nodes: 17; 1 to 16 nodes can be joined"),
        (lambda: replace(pods(6), nodes=0), r"nodes: 0"),
        (lambda: replace(switch(2), nodes=2), r"nodes: 2; 1 to 1 nodes"),
        (lambda: pods(6).locate(np.array([3, 24])), r"rank: 24; the machine has the ranks 0 to 23"),
        (lambda: pods(6).locate(np.array([-1])), r"rank: -1"),
        (lambda: two_speeds().kinds, r"link: Link\(kind='nic'.*; another name: .* is a kind already"),
        (lambda: Link("wire", 0.0, 1e-6), r"link wire: bandwidth: 0.0; a bandwidth above 0"),
        (lambda: Link("wire", float("nan"), 1e-6), r"link wire: bandwidth: nan"),
        (lambda: Link("wire", float("inf"), 1e-6), r"link wire: bandwidth: inf"),
        (lambda: Link("wire", 1e9, -1e-6), r"link wire: latency: -1e-06; a time that is not negative"),
        (
            lambda: mesh(4).without("gpu0", "gpu9"),
            r"topology: link: 'gpu0 gpu9'; no link joins these two; did you mean",
        ),
    ],
)
def test_what_is_no_machine_is_refused(build: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        build()


def test_a_node_of_more_places_than_fit_is_refused() -> None:
    cell: nx.DiGraph[str] = nx.DiGraph()
    cell.add_nodes_from((f"gpu{i}", {"part": "gpu", "tier": 0}) for i in range(5000))
    with pytest.raises(InputError, match=r"topology: '5000 GPUs in one node'; at most 4096"):
        Topology(cell, (Tier("all", 2),), 2).route(np.array([0]), np.array([1]))
