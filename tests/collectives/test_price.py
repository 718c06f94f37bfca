"""Do the textbook formulas follow from the schedules, and does a price remember and refuse what it should?"""

from __future__ import annotations

import gc
import tracemalloc
import weakref
from collections.abc import Callable
from math import ceil, floor, log2
from typing import TYPE_CHECKING

import numpy as np
import pytest

from commsim.collectives.algorithms import ALGORITHMS, Group, serving_on
from commsim.collectives.kinds import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    BROADCAST,
    REDUCE,
    REDUCE_SCATTER,
    SEND_RECV,
    Collective,
)
from commsim.collectives.layout import Layout
from commsim.collectives.price import price, priced
from commsim.collectives.remembered import _ANSWERS
from commsim.collectives.schedule import rounds, transfer
from commsim.errors import InputError
from commsim.hardware.catalogue import load
from tests.machines import mesh, pods, sockets, switch

if TYPE_CHECKING:
    from commsim.collectives.price import Cost
    from commsim.hardware.topology import Topology

POWERS = (2, 4, 8, 16, 32)
ANY = (2, 3, 5, 6, 7, 8, 12, 17, 24, 33)
ODD = (3, 5, 6, 7, 12, 17, 24, 33)


def kind(cost: Cost, name: str) -> tuple[float, float]:
    """Return load and hops of one kind of link over all stages."""
    index = [link.kind for link in cost.kinds].index(name)
    return float(cost.load[:, index].sum()), float(cost.hops[:, index].sum())


def below(n: int) -> int:
    """The largest power of two that is not above n."""
    return 1 << floor(log2(n))


# Messages in sequence and sizes through the busiest link, on one switch: the factors of alpha and of n beta (n is the
# size there, p the ranks). Thakur, Rabenseifner and Gropp 2005 have their formulas in section 4, by operation.
Formula = Callable[[int], tuple[float, float]]
TEXTBOOK: list[tuple[str, Collective, tuple[int, ...], Formula]] = [
    # T_ring (allgather) = (p - 1) alpha + (p - 1)/p n beta
    ("ring", ALL_GATHER, ANY, lambda n: (n - 1, (n - 1) / n)),
    ("ring", REDUCE_SCATTER, ANY, lambda n: (n - 1, (n - 1) / n)),
    # Patarasuk and Yuan 2009: 2 (p - 1) steps, 2 (p - 1)/p n through each link, which is the least possible
    ("ring", ALL_REDUCE, ANY, lambda n: (2 * (n - 1), 2 * (n - 1) / n)),
    ("ring", BROADCAST, ANY, lambda n: (n - 1, 1)),
    ("ring", REDUCE, ANY, lambda n: (n - 1, 1)),
    # T_rec_dbl (allgather) = lg p alpha + (p - 1)/p n beta; (allreduce) = lg p alpha + lg p n beta + ...
    ("recursive_doubling", ALL_GATHER, POWERS, lambda n: (log2(n), (n - 1) / n)),
    ("recursive_doubling", ALL_REDUCE, POWERS, lambda n: (log2(n), log2(n))),
    # Beyond powers of two the extra ranks hand over first and get the result last: two steps more.
    ("recursive_doubling", ALL_REDUCE, ODD, lambda n: (floor(log2(n)) + 2, floor(log2(n)) + 2)),
    # T_rabenseifner (allreduce) = 2 lg p alpha + 2 (p - 1)/p n beta + ...; halving alone (reduce-scatter) is half of it
    ("halving_doubling", ALL_REDUCE, POWERS, lambda n: (2 * log2(n), 2 * (n - 1) / n)),
    ("halving_doubling", REDUCE_SCATTER, POWERS, lambda n: (log2(n), (n - 1) / n)),
    ("halving_doubling", ALL_GATHER, POWERS, lambda n: (log2(n), (n - 1) / n)),
    # Rabenseifner 2004, beyond powers of two, with p' the power below: 2 lg p' steps and two more with the whole vector
    ("halving_doubling", ALL_REDUCE, ODD, lambda n: (2 * floor(log2(n)) + 2, 2 + 2 * (below(n) - 1) / below(n))),
    # T_bruck (allgather) = ceil(lg p) alpha + (p - 1)/p n beta; (all-to-all) = lg p alpha + (n / 2) lg p beta
    ("bruck", ALL_GATHER, ANY, lambda n: (ceil(log2(n)), (n - 1) / n)),
    ("bruck", ALL_TO_ALL, POWERS, lambda n: (log2(n), log2(n) / 2)),
    # T_pairwise = (p - 1) alpha + (p - 1)/p n beta (reduce-scatter; all-to-all, whose n there leaves out what stays)
    ("pairwise", ALL_TO_ALL, ANY, lambda n: (n - 1, (n - 1) / n)),
    ("pairwise", REDUCE_SCATTER, ANY, lambda n: (n - 1, (n - 1) / n)),
    # T_tree (broadcast, reduce) = ceil(lg p) (alpha + n beta)
    ("binomial_tree", BROADCAST, ANY, lambda n: (ceil(log2(n)), ceil(log2(n)))),
    ("binomial_tree", REDUCE, ANY, lambda n: (ceil(log2(n)), ceil(log2(n)))),
    ("binomial_tree", ALL_REDUCE, ANY, lambda n: (2 * ceil(log2(n)), 2 * ceil(log2(n)))),
    # Jeaugey 2025 (arXiv 2506.20252): logarithmic steps, and each rank receives what it has to
    ("pat", ALL_GATHER, ANY, lambda n: (ceil(log2(n)), (n - 1) / n)),
    ("pat", REDUCE_SCATTER, ANY, lambda n: (ceil(log2(n)), (n - 1) / n)),
    ("direct", ALL_TO_ALL, ANY, lambda n: (1, (n - 1) / n)),
    ("direct", ALL_REDUCE, ANY, lambda n: (2, 2 * (n - 1) / n)),
    ("direct", BROADCAST, ANY, lambda n: (1, n - 1)),
    ("one_shot", ALL_REDUCE, ANY, lambda n: (1, n - 1)),
    ("pair", SEND_RECV, ANY, lambda _: (1, 1)),
    # In the switch: each rank fetches S/n reduced and has S read, then stores S/n and receives S
    ("nvls", ALL_REDUCE, ANY, lambda n: (2, 1 + 1 / n)),
    ("nvls", ALL_GATHER, ANY, lambda _: (1, 1)),
    ("nvls", REDUCE_SCATTER, ANY, lambda _: (1, 1)),
]


@pytest.mark.parametrize(
    ("name", "op", "n", "expected"),
    [pytest.param(name, op, n, f(n), id=f"{name}-{op.name}-{n}") for name, op, sizes, f in TEXTBOOK for n in sizes],
)
def test_textbook_formulas_follow(name: str, op: Collective, n: int, expected: tuple[float, float]) -> None:
    cost = priced(name, op, Layout.first(n), switch(n))
    assert kind(cost, "nvlink") == pytest.approx((expected[1], 2 * expected[0]))
    assert cost.steps.sum(axis=0) == pytest.approx((expected[0], 0))


@pytest.mark.parametrize("n", ANY)
def test_two_trees_use_the_full_bandwidth_both_ways(n: int) -> None:
    """Sanders, Speck and Traeff 2009: a rank sends hardly more than the size, not twice as in one binary tree."""
    load, hops = kind(priced("double_tree", BROADCAST, Layout.first(n), switch(n)), "nvlink")
    assert load <= 1.5 + 1e-9
    assert hops <= 2 * (ceil(log2(n)) + 1)
    load, hops = kind(priced("double_tree", ALL_REDUCE, Layout.first(n), switch(n)), "nvlink")
    assert load <= 2 + 1e-9
    assert hops <= 4 * ceil(log2(n))


def test_a_ring_of_a_mesh_uses_every_pair() -> None:
    load, _ = kind(priced("mesh_ring", ALL_GATHER, Layout.first(4), mesh(4)), "nvlink")
    assert load == pytest.approx(3 / 4 / 3)
    assert kind(priced("ring", ALL_GATHER, Layout.first(4), mesh(4)), "nvlink")[0] == pytest.approx(3 / 4)


def test_a_group_across_two_racks_uses_every_nic() -> None:
    """Of groups of 16 in racks of 72 every ninth has 8 GPUs on each side: it talks through the NICs of all 16."""
    machine = load("gb200-nvl72", gpus=144).topology
    across, whole = (
        kind(priced("ring", ALL_GATHER, layout, machine), "infiniband nic")[0]
        for layout in (Layout(((16, 1),), ((9, 16),)), Layout(((8, 1), (2, 72))))
    )
    assert across == pytest.approx(whole) == pytest.approx(15 / 16 / 8)


def test_rings_between_meshes_use_every_pair_of_each() -> None:
    """A ring for each of 8 rails, and each of the 56 directed pairs of a node is a step of one of them."""
    machine = load("mi300x", nodes=3).topology
    meshed, plain = (
        kind(priced(name, ALL_GATHER, Layout.first(24), machine), "xgmi-mi300x")[0] for name in ("mesh_ring", "ring")
    )
    assert meshed == pytest.approx(23 / 24 / 8)
    assert plain == pytest.approx(23 / 24 * 7 / 8)


# Several domains: what each NIC carries (facts of NCCL: SHARP S/heads each way, NVLSTree twice that beyond two nodes).

HEADS, NODES = 4, 6
NIC_LOADS: list[tuple[str, Collective, int, float]] = [
    ("ring", ALL_REDUCE, NODES, 2 * (HEADS * NODES - 1) / (HEADS * NODES) / HEADS),
    ("two_level", ALL_REDUCE, NODES, 2 * (NODES - 1) / NODES / HEADS),
    ("two_level", ALL_GATHER, NODES, (NODES - 1) / NODES / HEADS),
    ("two_level_halving", ALL_REDUCE, 4, 2 * (4 - 1) / 4 / HEADS),
    ("two_level_direct", ALL_REDUCE, NODES, 2 * (NODES - 1) / NODES / HEADS),
    ("two_level_direct", ALL_GATHER, NODES, (NODES - 1) / NODES / HEADS),
    ("mesh_ring", ALL_REDUCE, NODES, 2 * (HEADS * NODES - 1) / (HEADS * NODES) / HEADS),
    ("two_level_nvls", ALL_REDUCE, NODES, 2 * (NODES - 1) / NODES / HEADS),
    ("tree", ALL_REDUCE, 2, 1 / HEADS),
    ("nvls_tree", ALL_REDUCE, 2, 1 / HEADS),
    ("tree", ALL_REDUCE, NODES, 2 / HEADS),
    ("nvls_tree", ALL_REDUCE, NODES, 2 / HEADS),
    ("sharp", ALL_REDUCE, NODES, 1 / HEADS),
    ("nvls_sharp", ALL_REDUCE, NODES, 1 / HEADS),
    ("two_level", ALL_TO_ALL, NODES, (NODES - 1) / NODES),
    ("direct", ALL_TO_ALL, NODES, (NODES - 1) / NODES),
    ("direct", ALL_GATHER, NODES, (NODES - 1) / NODES),
]


@pytest.mark.parametrize(("name", "op", "nodes", "expected"), NIC_LOADS)
def test_what_each_nic_carries(name: str, op: Collective, nodes: int, expected: float) -> None:
    cost = priced(name, op, Layout.first(HEADS * nodes), pods(nodes))
    assert kind(cost, "nic")[0] == pytest.approx(expected)


def test_switches_add_up_what_goes_to_the_spine_once() -> None:
    """Two nodes stand on a leaf: without the network each sends for itself, in the network the leaf sends their sum."""
    fibre = kind(priced("sharp", ALL_REDUCE, Layout.first(24), pods(6)), "fibre")[0]
    assert fibre == pytest.approx(1 / HEADS)


def test_rail_aligned_all_to_all_crosses_the_spine_less() -> None:
    direct, railed = (priced(name, ALL_TO_ALL, Layout.first(8), pods(2)) for name in ("direct", "two_level"))
    assert kind(direct, "fibre")[0] > 0
    assert kind(railed, "fibre") == (0, 0)
    assert railed.steps.tolist() == [[1, 1]]


def test_a_tree_is_a_chain_inside_and_two_trees_between() -> None:
    """NCCL's own count of hops: 2 ((ranks of a node - 1) inside + log2(nodes) between)."""
    cost = priced("tree", ALL_REDUCE, Layout.first(32), pods(8))
    assert cost.steps.sum(axis=0) == pytest.approx((2 * (4 - 1), 2 * log2(8)))


def test_a_ring_waits_for_the_network_once_a_node() -> None:
    """NCCL's own count: of 2 (n - 1) steps, two a node go between nodes."""
    inside, network = priced("ring", ALL_REDUCE, Layout.first(24), pods(6)).steps.sum(axis=0)
    assert inside + network == pytest.approx(2 * 23)
    assert network == pytest.approx(2 * 6, rel=0.05)


def test_what_streams_is_one_stage_with_its_depth() -> None:
    cost = priced("nvls_tree", ALL_REDUCE, Layout.first(24), pods(6))
    assert cost.streaming
    assert len(cost.load) == 1
    assert cost.depth.tolist() == [2 + 6 + 2]  # up and down the NVSwitch, three levels of trees up and down, and again
    assert priced("ring", BROADCAST, Layout.first(8), switch(8)).depth.tolist() == [7]


def test_the_busiest_edge_has_a_name() -> None:
    cost = priced("direct", BROADCAST, Layout.first(8), switch(8))
    assert cost.busiest == (("gpu0 -> nvswitch0",),)
    assert priced("ring", ALL_REDUCE, Layout.first(1), switch(8)).busiest == (("",),)


def test_schedules_that_act_together_add_up_stage_by_stage() -> None:
    """The shorter one is done when the longer one goes on."""
    machine, layout = switch(4), Layout.first(4)
    two = rounds(transfer(0, 1, 1.0), transfer(0, 1, 1.0))
    cost = price([(two, layout), (rounds(transfer(0, 2, 0.5)), layout)], machine)
    assert cost.load.tolist() == [[1.5], [1.0]]


# Remembered.


def test_a_price_is_remembered_for_all_layouts_that_fold_alike() -> None:
    machine = pods(6)
    once = priced("ring", ALL_REDUCE, Layout.first(4), machine)
    assert priced("ring", ALL_REDUCE, Layout.first(4), machine) is once
    assert priced("ring", ALL_REDUCE, Layout(((4, 1),), ((6, 4),)), machine) is once
    assert priced("ring", ALL_GATHER, Layout.first(4), machine) is not once


def test_a_machine_is_forgotten_with_its_prices() -> None:
    machine = switch.__wrapped__(5)
    priced("ring", ALL_REDUCE, Layout.first(5), machine)
    assert machine in _ANSWERS
    gone = weakref.ref(machine)
    del machine
    gc.collect()
    assert gone() is None
    assert gone not in _ANSWERS.keyrefs()


# Refused.


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: priced("rings", ALL_REDUCE, Layout.first(4), switch(4)), r"algorithm: 'rings'.*did you mean 'ring'\?"),
        (lambda: priced("ring", ALL_REDUCE, Layout.first(9), switch(8)), r"rank: 8; the machine has the ranks 0 to 7"),
        (
            lambda: priced("nvls", ALL_REDUCE, Layout.first(4), sockets()),
            r"in-network reduction: .*no switch that reduces",
        ),
        (lambda: price([], switch(4)), r"price: 'no schedule'; at least one"),
    ],
)
def test_what_cannot_be_priced_is_refused_in_one_line(ask: Callable[[], Cost], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        ask()
    assert "\n" not in str(caught.value)


def test_a_broken_machine_names_the_ranks_that_no_path_joins() -> None:
    broken = mesh(4).without("gpu0", "gpu3")
    with pytest.raises(InputError, match=r"topology: 'gpu\d and gpu\d'; no path joins these two"):
        priced("direct", ALL_TO_ALL, Layout.first(4), broken)


@pytest.mark.parametrize(
    ("machine", "ranks", "offered"),
    [
        (switch(8), 8, {"nvls"}),
        (pods(6), 4, {"nvls"}),
        (pods(6), 24, {"two_level_nvls", "nvls_tree", "nvls_sharp", "sharp"}),
        (sockets(), 4, set()),
        (mesh(4), 4, set()),
    ],
)
def test_in_network_is_offered_where_switches_can(machine: Topology, ranks: int, offered: set[str]) -> None:
    found = serving_on(ALL_REDUCE, Layout.first(ranks), machine)
    assert {one.name for one in found if one.in_network} == offered
    for one in found:
        assert priced(one.name, ALL_REDUCE, Layout.first(ranks), machine).load.sum() > 0


def test_rings_for_meshes_are_offered_where_gpus_are_wired_to_each_other() -> None:
    offered = {
        name: "mesh_ring" in {one.name for one in serving_on(ALL_REDUCE, Layout.first(4), machine)}
        for name, machine in {"mesh": mesh(4), "switch": switch(8), "pods": pods(6), "sockets": sockets()}.items()
    }
    assert offered == {"mesh": True, "switch": False, "pods": False, "sockets": False}


@pytest.mark.parametrize("op", [ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER])
@pytest.mark.parametrize("name", ["hgx-h100", "gb200-nvl72", "pcie-4090", "pcie-a100"])
@pytest.mark.parametrize("nodes", [1, 2, 3])
def test_elsewhere_they_gain_nothing(name: str, nodes: int, op: Collective) -> None:
    machine = load(name, nodes=nodes if name != "pcie-4090" else 1).topology
    meshed, plain = (priced(one, op, Layout.first(machine.size), machine) for one in ("mesh_ring", "ring"))
    assert (meshed.load >= plain.load - 1e-12).all()
    assert (meshed.hops >= plain.hops).all()


# Large machines.


def test_a_hundred_thousand_gpus_fit_into_300_mb() -> None:
    machine, layout = load("hgx-h100", nodes=12_500).topology, Layout.first(100_000)
    tracemalloc.start()
    schedule = ALGORITHMS["two_level"].schedule(ALL_REDUCE, Group.of(layout, machine))
    cost = price([(schedule, layout)], machine)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 300e6
    nic = [link.kind for link in cost.kinds].index("infiniband nic")
    assert cost.load[:, nic].sum() == pytest.approx(2 * (12_500 - 1) / 12_500 / 8)


def test_eight_rings_on_16384_gpus_load_each_nic_alike() -> None:
    machine = load("hgx-h100", nodes=2048).topology
    cost = priced("ring", ALL_REDUCE, Layout(((2048, 8),), ((8, 1),)), machine)
    nic = [link.kind for link in cost.kinds].index("infiniband nic")
    assert cost.load[:, nic].sum() == pytest.approx(2 * 2047 / 2048)
    assert np.array_equal(cost.load[:, [link.kind for link in cost.kinds].index("nvlink4")], [0.0])
