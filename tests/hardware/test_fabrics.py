"""Does each wiring join what it says?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.errors import InputError
from commsim.hardware.fabrics import (
    BETWEEN_TWO,
    MOST_LINKS,
    MOST_PARTS,
    WIRINGS,
    WITHIN_ONE,
    Level,
    Part,
    Wire,
    add_parts,
    add_wires,
    hyperx,
    members,
    torus,
)
from commsim.hardware.topology import Link, Topology

if TYPE_CHECKING:
    from commsim.hardware.fabrics import Cell

LINKS = {"fast": Link("fast", 50e9, 1e-6), "slow": Link("slow", 10e9, 1e-6)}


def wired(parts: dict[str, int], *wires: Wire) -> Cell:
    cell: Cell = nx.DiGraph()
    add_parts(cell, 0, {name: Part(count) for name, count in parts.items()})
    add_wires(cell, wires, LINKS, "test")
    return cell


def cables(cell: Cell, vertex: str) -> float:
    return float(sum(cell.edges[edge]["count"] for edge in cell.out_edges(vertex)))


@given(many=st.integers(1, 20), few=st.integers(1, 20), count=st.integers(1, 18))
def test_spread_deals_the_larger_part_out_evenly(many: int, few: int, count: int) -> None:
    cell = wired({"gpu": many, "switch": few}, Wire(("gpu", "switch"), "fast", count=count))
    larger, smaller = ("gpu", "switch") if many >= few else ("switch", "gpu")
    assert {cables(cell, name) for name in members(cell, larger)} == {count}
    loads = [cables(cell, name) for name in members(cell, smaller)]
    assert max(loads) - min(loads) <= count


@given(gpus=st.integers(1, 8), planes=st.integers(1, 6))
def test_every_joins_each_with_each(gpus: int, planes: int) -> None:
    cell = wired({"gpu": gpus, "plane": planes}, Wire(("gpu", "plane"), "fast", "every", 2))
    assert {cables(cell, name) for name in members(cell, "gpu")} == {2 * planes}
    assert {cables(cell, name) for name in members(cell, "plane")} == {2 * gpus}


@given(st.integers(2, 12))
def test_mesh_joins_all_pairs(gpus: int) -> None:
    cell = wired({"gpu": gpus}, Wire(("gpu", "gpu"), "fast", "mesh"))
    assert cell.number_of_edges() == gpus * (gpus - 1)


@given(st.integers(2, 12))
def test_ring_gives_each_two_neighbours(gpus: int) -> None:
    cell = wired({"gpu": gpus}, Wire(("gpu", "gpu"), "fast", "ring"))
    assert {cables(cell, name) for name in cell} == {1 if gpus == 2 else 2}
    assert nx.is_strongly_connected(cell)


def test_pairs_join_what_is_listed() -> None:
    cell = wired({"gpu": 4}, Wire(("gpu", "gpu"), "fast", "pairs", 3, ((0, 1), (2, 3, 2))))
    counts = {edge: cell.edges[edge]["count"] for edge in cell.edges}
    assert counts == {("gpu0", "gpu1"): 3, ("gpu1", "gpu0"): 3, ("gpu2", "gpu3"): 2, ("gpu3", "gpu2"): 2}


def test_peers_join_the_copies_of_a_vertex() -> None:
    cell = wired({"lpu": 2}, Wire(("lpu", "lpu"), "fast", "peers", 2))
    assert {edge: cell.edges[edge]["peers"] for edge in cell.edges} == {("lpu0", "lpu0"): True, ("lpu1", "lpu1"): True}


def test_cables_between_the_same_two_add_up() -> None:
    wire = Wire(("gpu", "switch"), "fast", count=2)
    assert cables(wired({"gpu": 1, "switch": 1}, wire, wire), "gpu0") == 4


def test_every_wiring_says_what_it_joins() -> None:
    assert {*BETWEEN_TWO, *WITHIN_ONE, "pairs"} == set(WIRINGS)


@pytest.mark.parametrize(
    ("wire", "complaint"),
    [
        (Wire(("gpu", "switch"), "fast", "all"), "no such wiring"),
        (Wire(("gpu", "switch"), "fsat"), "did you mean 'fast'"),
        (Wire(("gpu", "swich"), "fast"), "did you mean 'switch'"),
        (Wire(("gpu", "gpu"), "fast"), "two different parts"),
        (Wire(("gpu", "switch"), "fast", "mesh"), "one part with itself"),
        (Wire(("gpu", "switch"), "fast", count=0), "parallel links"),
        (Wire(("gpu", "switch"), "fast", count=MOST_LINKS + 1), "parallel links"),
        (Wire(("gpu", "gpu"), "fast", "pairs", pairs=((0, 4),)), "pairs"),
        (Wire(("gpu", "gpu"), "fast", "pairs", pairs=((1, 1),)), "pairs"),
        (Wire(("gpu", "gpu"), "fast", "pairs", pairs=((0, 1, 0),)), "pairs"),
        (Wire(("gpu", "gpu"), "fast", "pairs", pairs=((0,),)), "pairs"),
    ],
)
def test_wires_that_cannot_be_are_refused(wire: Wire, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        wired({"gpu": 4, "switch": 2}, wire)


def test_two_kinds_of_link_between_the_same_two_are_refused() -> None:
    ends = ("gpu", "switch")
    with pytest.raises(InputError, match="joined by fast already"):
        wired({"gpu": 1, "switch": 1}, Wire(ends, "fast"), Wire(ends, "slow"))


def test_parts_that_cannot_be_are_refused() -> None:
    for count in (0, MOST_PARTS + 1):
        with pytest.raises(InputError, match="part: count"):
            Part(count)
    with pytest.raises(InputError, match="stands_for"):
        Part(stands_for=0)
    with pytest.raises(InputError, match="rack: units"):
        Level("rack", 0)


def test_a_part_is_added_once() -> None:
    cell = wired({"gpu": 2})
    with pytest.raises(InputError, match="there already"):
        add_parts(cell, 1, {"gpu": Part(1)})


@given(st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple))
def test_a_torus_has_two_neighbours_in_each_dimension(sizes: tuple[int, ...]) -> None:
    cell = torus(sizes, LINKS["fast"])
    neighbours = sum(min(size - 1, 2) for size in sizes)
    assert {cables(cell, name) for name in cell} == {neighbours}
    assert Topology(cell).size == len(cell)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple))
def test_a_hyperx_is_fully_connected_along_each_dimension(sizes: tuple[int, ...]) -> None:
    """Ahn et al. 2009: the diameter is the number of dimensions (of more than one)."""
    cell = hyperx(sizes, tuple(LINKS["fast"] for _ in sizes))
    assert {cables(cell, name) for name in cell} == {sum(size - 1 for size in sizes)}
    assert nx.diameter(cell) == sum(size > 1 for size in sizes)
