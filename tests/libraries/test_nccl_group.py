"""Is a group the communicator that NCCL would form of it?"""

from __future__ import annotations

from dataclasses import replace

import pytest

from commsim.collectives.layout import Layout
from commsim.hardware.catalogue import load
from commsim.libraries.nccl.form import of_system
from commsim.libraries.nccl.group import Seats, communicator, seats
from commsim.libraries.nccl.knobs import Knobs
from commsim.libraries.nccl.team import team

BOXES = load("hgx-h100", nodes=4).topology
RACKS = load("gb200-nvl72", nodes=36).topology


@pytest.mark.parametrize(
    ("layout", "said"),
    [
        (Layout.first(8), Seats(1, 1, ())),
        (Layout.first(32), Seats(4, 1, ())),
        (Layout.first(4), Seats(1, 1, (0, 1, 2, 3))),
        (Layout(((4, 8),), ((8, 1),)), Seats(4, 1, (0,))),
        (Layout(((2, 4), (4, 8)), ((4, 1),)), Seats(4, 1, (0, 4))),
        (Layout.of([0, 1, 9]), None),
        (Layout.of([0, 9]), None),
    ],
)
def test_seats(layout: Layout, said: Seats | None) -> None:
    assert seats(layout, BOXES, 8) == said


def test_a_rack_is_one_node_of_as_many_hosts_as_are_used() -> None:
    assert seats(Layout.first(72), RACKS, RACKS.domain_size) == Seats(1, 18, ())
    assert seats(Layout.first(8), RACKS, RACKS.domain_size) == Seats(1, 2, ())
    assert seats(Layout.first(144), RACKS, RACKS.domain_size) == Seats(2, 18, ())


def test_hosts_of_a_rack_without_a_rank_are_none_of_the_group() -> None:
    """So that one GPU of each second host is to NCCL what one of each fourth is."""
    near, far, turned = (seats(Layout(((4, stride),)), RACKS, RACKS.domain_size) for stride in (8, 16, 18))
    assert near == far == Seats(1, 4, (0, 4, 8, 12))
    assert turned == Seats(1, 4, (0, 6, 8, 14))


def test_the_communicator_of_all_is_that_of_the_system() -> None:
    system = load("hgx-h100", nodes=4)
    found, said = communicator(Layout.first(32), system.topology, Knobs()), of_system(system)
    assert found is not None
    assert (found.ranks, found.nodes, found.graphs, found.cpu) == (said.ranks, said.nodes, said.graphs, said.cpu)


def test_a_rack_is_one_node_to_versions_that_know_it_unless_it_is_switched_off() -> None:
    """Each host was a node of NCCL before MNNVL (2.19 and older); NCCL_MNNVL_ENABLE=0 makes it one again."""
    rack = load("gb200-nvl72").topology
    nodes = [
        found.nodes
        for knobs, version in ((Knobs(), ""), (Knobs(mnnvl_enable=0), ""), (Knobs(), "2.19"))
        if (found := communicator(Layout.first(72), rack, knobs, version))
    ]
    assert nodes == [1, 18, 18]


@pytest.mark.parametrize(
    ("fabric", "on", "channels"), [("infiniband", False, 0), ("infiniband", True, 8), ("roce", True, 0)]
)
def test_switches_reduce_where_they_can_and_are_asked_to(fabric: str, on: bool, channels: int) -> None:  # noqa: FBT001
    found = communicator(Layout.first(32), load("hgx-h100", nodes=4, fabric=fabric).topology, Knobs(collnet_enable=on))
    assert found is not None
    assert found.graphs.collnet_chain.channels == found.graphs.collnet_direct.channels == channels


def test_who_is_no_communicator() -> None:
    """Other GPUs, switches that NCCL's XML has no words for, and groups that sit unevenly."""
    for name in ("mi300x", "dgx-2"):
        topology = load(name).topology
        assert communicator(Layout.first(topology.size), topology, Knobs()) is None
    assert communicator(Layout.of([0, 1, 9]), BOXES, Knobs()) is None


def test_teams() -> None:
    """PCIe GPUs below one switch reach each other, across processors they go through memory (NCCL: PIX and SYS).

    Of eight, two below each switch, every other one has its neighbour in the ring below its own.
    """
    box = load("hgx-a100").topology
    found = team(Layout.first(8), box, Knobs())
    assert (found.ranks, found.nodes, found.channels, found.staged, found.inside) == (8, 1, 24, 0.0, "nvlink3")
    staged = {
        (system, layout.size): team(layout, load(system).topology, Knobs()).staged
        for system in ("pcie-l40s", "pcie-4090")
        for layout in (Layout.first(2), Layout.first(8), Layout(((4, 2),)))
    }
    assert [staged["pcie-l40s", ranks] for ranks in (2, 8, 4)] == [0.0, 0.5, 1.0]
    assert [staged["pcie-4090", ranks] for ranks in (2, 8, 4)] == [1.0, 1.0, 1.0]


def test_channels_behind_the_network() -> None:
    """NICs of 50 GB/s: four channels a peer for a pair of nodes of one GPU; one when 128 ranks speak to each other."""
    few = team(Layout(((2, 8),)), BOXES, Knobs())
    many_boxes = load("hgx-h100", nodes=16).topology
    many = team(Layout.first(128), many_boxes, Knobs())
    assert few.behind_network(1) == 4
    assert many.behind_network(120) == 8


def test_a_box_without_processors_is_none_for_nccl() -> None:
    """NCCL hangs every device below a processor; such a machine is timed by what is quickest."""
    box = load("hgx-h100")
    cell = box.cell.copy()
    cell.remove_nodes_from([name for name, data in box.cell.nodes(data=True) if data["part"] in ("cpu", "pcie", "nic")])
    topology = replace(box, cell=cell).topology
    assert communicator(Layout.first(8), topology, Knobs()) is None
