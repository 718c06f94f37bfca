"""Has every link its own number?"""

from __future__ import annotations

import numpy as np
import pytest

from tests.machines import SMALL, pods, racks


@pytest.mark.parametrize("name", sorted(SMALL))
def test_copies_of_the_edges_fill_the_numbers(name: str) -> None:
    numbering = SMALL[name].numbering
    taken = [number for o, c in zip(numbering.offset, numbering.copies) for number in range(o, o + c)]
    assert taken == list(range(numbering.total))


def test_links_of_tiled_machines_are_as_many_as_in_the_whole_graph() -> None:
    assert pods(6).numbering.total == pods(6).graph().number_of_edges()
    # Units that are joined to each other have a number for each pair, also for those of a unit with itself and beyond.
    assert racks(4).numbering.total == racks(4).graph().number_of_edges() + 4


def test_a_link_is_told_by_its_edge_and_the_unit_of_its_node() -> None:
    numbering = pods(6).numbering
    edge = numbering.order["leaf1", "spine0"]
    nodes = np.array([5]), np.array([0])
    first, last = (int(numbering.links(np.array([[edge]]), np.array([[side]]), nodes)[0, 0]) for side in (1, 0))
    assert (first, last) == (numbering.offset[edge], numbering.offset[edge] + 2)
    assert numbering.name(edge) == "leaf1 -> spine0"
    assert numbering.name(-1) == ""


def test_the_busiest_link_is_counted_per_cable() -> None:
    machine = pods(6)
    load = np.zeros(machine.numbering.total)
    gpu, nic = machine.numbering.order["gpu1", "nvswitch0"], machine.numbering.order["nic2", "leaf2"]
    load[machine.numbering.offset[gpu] + 3] = 3.0
    load[machine.numbering.offset[nic] + 1] = 1.0
    most, edges = machine.numbering.busiest(load, len(machine.kinds))
    assert most.tolist() == [1.5, 0.0, 1.0, 0.0]  # two cables from each GPU to the switch
    assert edges.tolist() == [gpu, -1, nic, -1]
