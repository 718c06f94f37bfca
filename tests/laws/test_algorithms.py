"""Which laws hold for the price of every algorithm on every machine?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commsim.collectives.algorithms import ALGORITHMS, Group
from commsim.collectives.kinds import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, BROADCAST, REDUCE, REDUCE_SCATTER, SEND_RECV
from commsim.collectives.layout import Layout
from commsim.collectives.price import price, priced
from commsim.collectives.schedule import everyone, rounds
from commsim.collectives.stages import stages
from commsim.hardware.catalogue import load
from tests.laws.drawn import cases, groups, placed, scattered
from tests.machines import SMALL, pods, sockets

if TYPE_CHECKING:
    import networkx as nx
    from numpy.typing import NDArray

    from commsim.collectives.kinds import Collective
    from commsim.collectives.price import Cost
    from commsim.hardware.topology import Topology

    Floats = NDArray[np.float64]

CLOSE = 1e-9
FEWER = settings(max_examples=settings().max_examples // 2)
"""For laws that price the whole table several times over."""


def same(one: Cost, other: Cost) -> bool:
    """Whether two prices agree in the load and hops of every kind, and in the messages."""
    pairs = ((one.load, other.load), (one.hops, other.hops), (one.steps, other.steps))
    return all(a.shape == b.shape and np.allclose(a, b, rtol=CLOSE, atol=CLOSE) for a, b in pairs)


def per_byte(cost: Cost) -> float:
    """The time that a byte of the size takes on full links, s/B."""
    return float((cost.load / bandwidth(cost)).max(axis=1).sum())


def bandwidth(cost: Cost) -> Floats:
    return np.array([link.bandwidth for link in cost.kinds])


# Never below the bandwidth bound.


@FEWER
@given(groups())
def test_no_price_is_below_what_a_cut_lets_through(drawn: tuple[Topology, Layout]) -> None:
    topology, layout = drawn
    ranks = layout.ranks()[0]
    cuts = [*rank_cuts(topology), *unit_cuts(topology)]
    for algorithm, op, schedule in cases(layout, topology):
        cost = per_byte(price([(schedule, layout)], topology))
        for inside, out, into in cuts:
            least_out, least_in = crossing(op, inside[ranks])
            assert cost >= max(least_out / out, least_in / into) * (1 - CLOSE), (algorithm.name, op.name)


def crossing(op: Collective, inside: NDArray[np.bool_]) -> tuple[float, float]:
    """What must leave and enter the places inside, of the size: what others need of them, what they need of others."""
    n, m = len(inside), int(inside.sum())
    if m in (0, n):
        return 0.0, 0.0
    own, others, root = m / n, (n - m) / n, bool(inside[0])
    before = np.roll(inside, 1)
    least = {
        ALL_GATHER: (own, others),
        REDUCE_SCATTER: (others, own),
        ALL_TO_ALL: (own * (n - m), own * (n - m)),
        BROADCAST: (float(root), float(not root)),
        REDUCE: (float(not root), float(root)),
        SEND_RECV: (float((before & ~inside).sum()), float((inside & ~before).sum())),
    }
    return least.get(op, (1.0, 1.0))


def rank_cuts(topology: Topology) -> list[tuple[NDArray[np.bool_], float, float]]:
    """Each rank with the bandwidth of all its links, out and in."""
    names = [name for name, data in topology.cell.nodes(data=True) if data["part"] == "gpu"]
    own = [names[rank % topology.gpus_per_node] for rank in range(topology.size)]
    return [(np.arange(topology.size) == rank, *through(topology, {gpu}, 1)) for rank, gpu in enumerate(own)]


def unit_cuts(topology: Topology) -> list[tuple[NDArray[np.bool_], float, float]]:
    """Each full unit of each level below the top, with the bandwidth of the links that leave it."""
    found = []
    for level, span in enumerate(topology.spans[:-1]):
        below = {name for name, data in topology.cell.nodes(data=True) if data["tier"] <= level}
        out, into = through(topology, below, span)
        units = np.arange(topology.size) // (span * topology.gpus_per_node)
        found += [(units == unit, out, into) for unit in range(topology.nodes // span) if out]
    return found


def through(topology: Topology, inside: set[str], span: int) -> tuple[float, float]:
    """The bandwidth of all links out of and into one unit of `span` nodes, whose vertices are `inside`."""
    total = [0.0, 0.0]
    for u, v, data in topology.cell.edges(data=True):
        tier = min(topology.cell.nodes[end]["tier"] for end in (u, v))
        siblings = topology.tiers[tier].units - 1 if data.get("peers") else 1
        copies = max(1, span // topology.spans[tier]) * siblings * data["count"]
        lone = len(inside) == 1
        leaves = data.get("peers") and topology.spans[tier] == span and not lone
        total[0] += data["link"].bandwidth * copies * (leaves or (u in inside and v not in inside))
        total[1] += data["link"].bandwidth * copies * (leaves or (v in inside and u not in inside))
    return total[0], total[1]


@FEWER
@given(groups())
def test_what_is_done_at_once_never_costs_more(drawn: tuple[Topology, Layout]) -> None:
    topology, layout = drawn
    for algorithm, op, schedule in cases(layout, topology):
        if algorithm.instead:
            slow, quick = price([(schedule, layout)], topology), priced(algorithm.instead, op, layout, topology)
            assert per_byte(quick) <= per_byte(slow) * (1 + CLOSE)
            assert quick.hops.sum(axis=0) @ topology.latency <= slow.hops.sum(axis=0) @ topology.latency * (1 + CLOSE)
            assert quick.steps.sum() <= slow.steps.sum()


# Counts, not seconds: linear in the size; nothing gets slower from a faster link.


@FEWER
@given(groups(), st.floats(1e-3, 1e3))
def test_load_is_linear_in_the_size_and_hops_do_not_depend_on_it(drawn: tuple[Topology, Layout], factor: float) -> None:
    topology, layout = drawn
    places = np.arange(layout.size)[None]
    for _, _, schedule in cases(layout, topology):
        once, more = (price([(one, layout)], topology) for one in (schedule, schedule.on(places, factor)))
        assert np.allclose(more.load, once.load * factor, rtol=CLOSE)
        assert np.allclose(more.hops, once.hops, rtol=CLOSE)


@FEWER
@given(groups(), st.floats(1, 10), st.floats(0.1, 1), st.data())
def test_a_faster_link_never_costs_more(
    drawn: tuple[Topology, Layout], wider: float, shorter: float, data: st.DataObject
) -> None:
    topology, layout = drawn
    kind = data.draw(st.sampled_from([link.kind for link in topology.kinds]))
    wide, near = faster(topology, kind, wider, 1.0), faster(topology, kind, 1.0, shorter)
    for _, _, schedule in cases(layout, topology):
        cost = price([(schedule, layout)], topology)
        assert per_byte(price([(schedule, layout)], wide)) <= per_byte(cost) * (1 + CLOSE)
        waiting = price([(schedule, layout)], near).hops @ near.latency
        assert (waiting <= cost.hops @ topology.latency * (1 + CLOSE) + 1e-11).all()


def faster(topology: Topology, kind: str, wider: float, shorter: float) -> Topology:
    """The machine with one kind of link so much wider, and with so much of its latency."""
    cell: nx.DiGraph[str] = topology.cell.copy()
    for _, _, data in cell.edges(data=True):
        link = data["link"]
        if link.kind == kind:
            data["link"] = replace(link, bandwidth=link.bandwidth * wider, latency=link.latency * shorter)
    return replace(topology, cell=cell)


# Symmetry: what the machine cannot tell apart costs the same.


@FEWER
@given(scattered(), st.data())
def test_relabelling_by_an_automorphism_changes_nothing(drawn: tuple[Topology, Layout], data: st.DataObject) -> None:
    topology, layout = drawn
    relabel = data.draw(st.sampled_from(automorphisms(topology)))
    moved = Layout.of(relabel[layout.ranks()[0]])
    for _, _, schedule in cases(layout, topology):
        assert same(price([(schedule, layout)], topology), price([(schedule, moved)], topology))


def automorphisms(topology: Topology) -> list[NDArray[np.int64]]:
    """Swaps that no one can see: two GPUs of the one switch or mesh, two nodes of a unit, two units, two rails."""
    ranks = np.arange(topology.size).reshape(-1, topology.gpus_per_node)
    found = [ranks[:, ::-1].copy()]
    for span in (1, *(s for s in topology.spans if 2 * s <= topology.nodes)):
        swapped = ranks.copy()
        if 2 * span <= len(ranks) and (span == 1 or topology.nodes % span == 0):
            swapped[:span], swapped[span : 2 * span] = ranks[span : 2 * span], ranks[:span]
            found.append(swapped)
    return [one.reshape(-1) for one in found]


@given(scattered(), st.data())
def test_an_exchange_does_not_see_the_order_of_the_ranks(drawn: tuple[Topology, Layout], data: st.DataObject) -> None:
    topology, layout = drawn
    shuffled = data.draw(st.permutations(layout.irregular))
    schedule = rounds(everyone(layout.size, 1 / layout.size))
    assert same(price([(schedule, layout)], topology), price([(schedule, Layout.of(shuffled))], topology))


# The cell says what the whole graph says.


@FEWER
@given(groups())
def test_cell_and_whole_graph_agree(drawn: tuple[Topology, Layout]) -> None:
    topology, layout = drawn
    flat = FLAT[id(topology)]
    tiled, whole = cases(layout, topology), cases(layout, flat)
    assert [(one.name, op.name) for one, op, _ in tiled] == [(one.name, op.name) for one, op, _ in whole]
    for _, _, schedule in tiled:
        cell, graph = (price([(schedule, layout)], one) for one in (topology, flat))
        kinds = [graph.kinds.index(link) for link in cell.kinds]
        assert np.allclose(cell.load, graph.load[:, kinds], rtol=CLOSE)
        assert np.allclose(cell.hops, graph.hops[:, kinds], rtol=CLOSE)
        assert np.allclose(cell.steps, graph.steps)


FLAT = {id(topology): topology.flat() for topology in SMALL.values()}


@pytest.mark.parametrize(
    ("system", "nodes", "names"),
    [
        ("hgx-h100", 3, ("ring", "direct", "tree", "two_level", "nvls_tree", "sharp")),
        ("dgx-1v", 2, ("ring", "direct", "two_level")),
        ("gb200-nvl72", 20, ("ring", "tree")),  # two racks, the second one hardly filled
        ("rubin-ultra-nvl288", 40, ("ring", "halving_doubling")),  # two racks that are wired to each other
    ],
)
def test_machines_of_the_catalogue_agree_with_their_whole_graph(
    system: str, nodes: int, names: tuple[str, ...]
) -> None:
    machine = load(system, nodes=nodes).topology
    flat, layout = machine.flat(), Layout.first(machine.size)
    group = Group.of(layout, machine)
    for name in names:
        schedule = ALGORITHMS[name].schedule(ALL_REDUCE, group)
        cell, graph = (price([(schedule, layout)], one) for one in (machine, flat))
        kinds = [graph.kinds.index(link) for link in cell.kinds]
        assert np.allclose(cell.load, graph.load[:, kinds], rtol=CLOSE), name
        assert np.allclose(cell.hops, graph.hops[:, kinds], rtol=CLOSE), name


# Groups that act at once.


@FEWER
@given(placed())
def test_folding_changes_no_price(drawn: tuple[Topology, Layout]) -> None:
    topology, layout = drawn
    for _, _, schedule in cases(layout, topology):
        folded = price([(schedule, layout)], topology)
        whole = stages(schedule, layout.ranks(), topology)
        load = [topology.numbering.busiest(stage.load, len(topology.kinds))[0] for stage in whole]
        assert np.allclose(folded.load, load, rtol=CLOSE)
        assert np.allclose(folded.hops @ topology.latency, [stage.way.hops @ topology.latency for stage in whole])


@given(st.integers(1, 6))
def test_groups_that_share_nothing_cost_what_one_costs(nodes: int) -> None:
    topology = pods(6)
    one, many = Layout.first(4), Layout(((4, 1),), ((nodes, 4),))
    for _, _, schedule in cases(one, topology):
        assert same(price([(schedule, one)], topology), price([(schedule, many)], topology))


def test_groups_on_one_link_cost_as_many_times_as_they_are() -> None:
    shared = {"sockets": (sockets(), Layout(((2, 2),)), Layout(((2, 2),), ((2, 1),)))}
    shared["pods"] = (pods(6), Layout(((2, 8),)), Layout(((2, 8),), ((2, 4),)))
    for topology, one, two in shared.values():
        fibre = [link.kind for link in topology.kinds].index("fibre")
        for algorithm, _, schedule in cases(one, topology):
            once, twice = (price([(schedule, layout)], topology) for layout in (one, two))
            assert np.allclose(twice.load[:, fibre], 2 * once.load[:, fibre]), algorithm.name
            assert once.load[:, fibre].sum() > 0


@FEWER
@given(placed())
def test_schedules_that_act_together_load_as_one(drawn: tuple[Topology, Layout]) -> None:
    topology, layout = drawn
    alone = replace(layout, copies=())
    for _, _, schedule in cases(alone, topology):
        once, twice = price([(schedule, alone)], topology), price([(schedule, alone)] * 2, topology)
        assert np.allclose(twice.load, 2 * once.load, rtol=CLOSE)
        assert (twice.hops == once.hops).all()
