"""What do messages that move at the same time ask, and what can switches save them?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from commsim.errors import InputError
from commsim.hardware.routing import DOWN, UP
from commsim.hardware.transfers import Way, reducible, sent, switched
from tests.machines import pods, racks, sockets, switch

if TYPE_CHECKING:
    import networkx as nx

    from commsim.hardware.topology import Topology


def zeros(machine: Topology) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return np.zeros(machine.numbering.total)


def busiest(machine: Topology, load: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> dict[str, float]:
    most, _ = machine.numbering.busiest(load, len(machine.kinds))
    return dict(zip((link.kind for link in machine.kinds), most.tolist()))


def test_the_longest_way_counts_and_of_relayed_messages_the_mean() -> None:
    machine = pods(6)
    ends = np.array([[0, 0, 0]]), np.array([[1, 2, 4]])
    longest = sent(machine, zeros(machine), ends, np.ones((1, 3)))
    mean = sent(machine, zeros(machine), ends, np.array([[1.0, 1.0, 2.0]]), relayed=True)
    assert longest.hops.tolist() == [0, 2, 2, 0]
    assert mean.hops.tolist() == [1, 1, 1, 0]
    assert (longest.steps.tolist(), mean.steps.tolist()) == ([0, 1], [0.5, 0.5])


def test_of_several_groups_that_relay_the_one_with_the_longest_mean_counts() -> None:
    machine = pods(6)
    ends = np.array([[0, 1], [0, 1]]), np.array([[1, 0], [4, 5]])
    assert sent(machine, zeros(machine), ends, np.ones((2, 2)), relayed=True).steps.tolist() == [0, 1]


def test_nothing_has_no_way() -> None:
    machine, none = pods(6), np.zeros((1, 0), dtype=np.int64)
    assert sent(machine, load := zeros(machine), (none, none), np.zeros((1, 0))).hops.sum() == 0
    assert load.sum() == 0
    assert Way.longest((), machine).steps.tolist() == [0, 0]


def test_what_members_send_to_their_switch_is_added_above_it() -> None:
    """All 24 GPUs to the spine: each link of a GPU carries its own, each leaf's uplink one sum of its two nodes."""
    machine = pods(6)
    added, apart = zeros(machine), zeros(machine)
    everyone = np.arange(24)[None]
    way = switched(machine, added, everyone, 1.0, direction=UP, combined=True)
    switched(machine, apart, everyone, 1.0, direction=UP)
    assert busiest(machine, added) == {"nvlink": 0, "pcie": 1, "nic": 1, "fibre": 1}
    assert busiest(machine, apart) == {"nvlink": 0, "pcie": 1, "nic": 1, "fibre": 2}
    assert (way.hops.tolist(), way.steps.tolist()) == ([0, 1, 1, 1], [0, 0.5])


def test_down_is_the_mirror_of_up() -> None:
    machine = pods(6)
    up, down = zeros(machine), zeros(machine)
    for load, direction in ((up, UP), (down, DOWN)):
        switched(machine, load, np.arange(24)[None], 0.5, direction=direction, combined=True)
    assert busiest(machine, up) == busiest(machine, down)
    assert (up * down).sum() == 0


def test_each_group_has_its_own_switch() -> None:
    """Rails meet in their leaf and need no spine, however many act at once; a node needs no NIC."""
    machine = pods(2)
    rails, nodes = np.arange(8).reshape(2, 4).T, np.arange(8).reshape(2, 4)
    load = zeros(machine)
    assert switched(machine, load, rails, 1.0, direction=UP, combined=True).hops.tolist() == [0, 1, 1, 0]
    assert busiest(machine, load)["fibre"] == 0
    assert switched(machine, zeros(machine), nodes, 1.0, direction=UP, combined=True).hops.tolist() == [1, 0, 0, 0]


def test_groups_of_different_shape_at_once() -> None:
    machine = pods(6)
    load = zeros(machine)
    switched(machine, load, np.array([[0, 4], [8, 9], [16, 21]]), 1.0, direction=UP, combined=True)
    assert busiest(machine, load) == {"nvlink": 0.5, "pcie": 1, "nic": 1, "fibre": 1}


def test_two_gpus_behind_one_nic_send_twice_because_it_does_not_reduce() -> None:
    cell: nx.DiGraph[str] = pods(2).cell.copy()
    for nic in ("nic1", "nic2", "nic3"):
        cell.remove_node(nic)
    for gpu in ("gpu1", "gpu2", "gpu3"):
        link = cell.edges["gpu0", "nic0"]["link"]
        cell.add_edges_from([(gpu, "nic0"), ("nic0", gpu)], link=link, count=1)
    machine = replace(pods(2), cell=cell)
    load = zeros(machine)
    switched(machine, load, np.arange(8)[None], 1.0, direction=UP, combined=True)
    assert busiest(machine, load)["nic"] == 4


def test_who_can_be_joined() -> None:
    assert reducible(switch(8), np.arange(8)[None])
    assert reducible(pods(6), np.arange(24)[None])
    assert reducible(racks(3), np.arange(12).reshape(3, 4))
    assert not reducible(racks(3), np.arange(12)[None])
    assert not reducible(sockets(), np.arange(4)[None])


def test_a_group_that_no_switch_joins_is_refused() -> None:
    with pytest.raises(InputError, match="in-network reduction"):
        switched(sockets(), zeros(sockets()), np.arange(4)[None], 1.0, direction=UP, combined=True)
