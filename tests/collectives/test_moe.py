"""Do tokens go where combinatorics say, and is their traffic conserved and priced on the machine?"""

from __future__ import annotations

from dataclasses import replace
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.collectives.layout import Layout
from commsim.collectives.moe.demand import COUNTS, Op, counted, demand
from commsim.collectives.moe.routing import MEASURED_SKEW, Routing
from commsim.collectives.moe.traffic import railed, scattered
from commsim.errors import InputError
from tests.machines import pods, racks, switch

OPS: tuple[Op, ...] = ("dispatch", "combine")


def spread_of(nodes: int, ranks: int) -> list[int]:
    """Return the node of each of so many ranks, alike on all nodes."""
    return [rank * nodes // ranks for rank in range(ranks)]


@pytest.mark.parametrize(("ranks", "experts", "top_k"), [(8, 256, 8), (32, 256, 8), (16, 16, 1), (64, 128, 22)])
def test_ranks_of_a_token_are_hypergeometric(ranks: int, experts: int, top_k: int) -> None:
    each = experts // ranks
    expected = ranks * (1 - comb(experts - each, top_k) / comb(experts, top_k))
    found = Routing(experts, top_k).spread(spread_of(1, ranks)).to_rank
    assert found.sum() == pytest.approx(expected)


@pytest.mark.parametrize(("nodes", "logical"), [(2, 1.975), (3, 2.86), (4, 3.606)])
def test_nodes_of_a_token_as_published_times_and_bandwidths_imply(nodes: int, logical: float) -> None:
    """UCCL-EP on H200: time x bandwidth / (4,096 tokens of 7,392 B), 8 of 256 experts, own node counted."""
    found = Routing(256, 8, groups=4).spread(spread_of(nodes, 8 * nodes)).to_domain
    assert found.sum() == pytest.approx(logical, rel=0.015)


@pytest.mark.parametrize(("nodes", "groups", "top_k"), [(8, 4, 8), (8, 2, 4), (16, 4, 8), (4, 3, 8)])
def test_limited_to_the_nodes_of_its_best_experts(nodes: int, groups: int, top_k: int) -> None:
    """Scores drawn at random; the nodes with the highest ones are kept, then the best experts on them."""
    rng = np.random.default_rng(1)
    scores = rng.random((20_000, nodes, 16))
    best = np.argsort(-scores.max(axis=2), axis=1)[:, :groups]
    kept = np.zeros(scores.shape[:2], dtype=bool)
    np.put_along_axis(kept, best, values=True, axis=1)
    flat = np.where(kept[:, :, None], scores, -1.0).reshape(len(scores), -1)
    hit = np.zeros(scores.shape[:2], dtype=bool)
    np.put_along_axis(hit, np.argsort(-flat, axis=1)[:, :top_k] // 16, values=True, axis=1)
    found = Routing(16 * nodes, top_k, groups=groups).spread(spread_of(nodes, nodes)).to_domain
    assert found.sum() == pytest.approx(hit.sum(axis=1).mean(), rel=0.005)


def test_skewed_chances_agree_with_draws() -> None:
    """Tokens drawn expert by expert (Gumbel's trick) as often as they are popular; formula within 2 %."""
    rng = np.random.default_rng(2)
    routing = Routing(64, 4, skew=MEASURED_SKEW, seed=5)
    chances = routing.chances()[0]
    log_odds = np.log(-np.log1p(-chances))  # an expert that is in with this chance arrives so much earlier
    drawn = np.argsort(-(log_odds + rng.gumbel(size=(40_000, 64))), axis=1)[:, :4]
    hit = np.zeros((len(drawn), 8))
    np.put_along_axis(hit, drawn // 8, values=1.0, axis=1)
    assert routing.spread(spread_of(1, 8)).to_rank[0] == pytest.approx(hit.mean(axis=0), abs=0.02)


def test_imbalance_as_measured() -> None:
    """DeepSeek-R1 on 32 ranks: (maximum - mean) / mean 1.564 (TensorRT-LLM's expert load balancer, README)."""
    seeds = [Routing(256, 8, skew=MEASURED_SKEW, seed=seed).spread([0] * 32).imbalance for seed in range(5)]
    assert np.mean(seeds) == pytest.approx(2.564, rel=0.04)
    assert Routing(256, 8).spread([0] * 32).imbalance == pytest.approx(1.0)


@st.composite
def routings(draw: st.DrawFn) -> tuple[Routing, list[int]]:
    """Draw a routing and the nodes of its ranks."""
    nodes = draw(st.integers(1, 4))
    ranks = nodes * draw(st.integers(1, 4))
    experts = draw(st.integers(ranks, 48))
    limit = draw(st.none() | st.integers(1, 4))
    most = experts if limit is None or limit >= nodes else limit * (experts // nodes)
    skew = draw(st.sampled_from([0.0, 0.5, 1.07, 3.0]))
    return Routing(experts, draw(st.integers(1, most)), limit, skew), spread_of(nodes, ranks)


@given(routings())
def test_one_copy_serves_and_none_is_lost(drawn: tuple[Routing, list[int]]) -> None:
    routing, domains = drawn
    found = routing.spread(domains)
    assert found.copies.sum(axis=1) == pytest.approx(routing.top_k)
    slack = 1e-9
    if routing.groups is None:
        assert (found.to_rank <= found.copies + slack).all()
    assert (found.to_rank >= -slack).all()
    assert (found.to_rank <= 1 + slack).all()
    assert (found.to_domain <= 1 + slack).all()
    assert (found.to_domain.sum(axis=1) <= min(routing.groups or routing.top_k, routing.top_k) + slack).all()


@given(routings())
def test_traffic_is_conserved(drawn: tuple[Routing, list[int]]) -> None:
    """Each rank gets every source's copies; each node its tokens once by rail, each rank one of each that it needs."""
    routing, domains = drawn
    found = routing.spread(domains)
    ranks = len(domains)
    straight = scattered(found, 0)
    assert straight.sum(axis=0) == pytest.approx(ranks * found.copies[0])
    rails, inside = railed(found, 0)
    assert inside.sum(axis=0) == pytest.approx(ranks * found.to_rank[0])
    network = found.domain[:, None] != found.domain
    assert not rails[~network].any()
    assert not inside[network].any()
    for node in range(found.to_domain.shape[1]):
        sources = np.count_nonzero(found.domain != node)
        assert rails[:, found.domain == node].sum() == pytest.approx(sources * found.to_domain[0, node])


@given(routings(), st.integers(1, 8))
def test_more_experts_a_token_reach_more_ranks(drawn: tuple[Routing, list[int]], more: int) -> None:
    routing, domains = drawn
    if routing.top_k + more <= routing.experts and routing.groups is None:
        fewer = routing.spread(domains).to_rank.sum(axis=1)
        larger = Routing(routing.experts, routing.top_k + more, None, routing.skew).spread(domains).to_rank.sum(axis=1)
        assert (larger >= fewer - 1e-9).all()


def test_demand_on_one_switch() -> None:
    """Eight ranks on one switch: of the 5.29 ranks of a token, 7 of 8 are others; each GPU has one link."""
    found = demand("dispatch", Routing(256, 8), Layout.first(8), switch(8))
    copies = 8 * (1 - comb(224, 8) / comb(256, 8))
    assert found.load[0] == pytest.approx(copies * 7 / 8)
    assert [found.copies, found.handled] == pytest.approx([copies, copies])
    assert (found.through, found.peer, found.away, found.counts) == (0.0, 0.0, 7 / 8, "token_rank_pairs")


def test_demand_on_several_nodes() -> None:
    """Two nodes of four GPUs with a NIC each: half of the tokens' nodes are away, and go by the NIC of one's rail."""
    topology = pods(2)
    routing, layout = Routing(64, 4), Layout.first(8)
    there = 1 - comb(32, 4) / comb(64, 4)
    rails = demand("dispatch", routing, layout, topology)
    kinds = {link.kind: load for link, load in zip(rails.kinds, rails.load)}
    assert kinds["nic"] == pytest.approx(there)
    assert [rails.through, rails.peer, rails.away] == pytest.approx([there, there, 0.5])
    assert rails.handled == pytest.approx(2 * there + 8 * (1 - comb(56, 4) / comb(64, 4)))
    straight = demand("dispatch", routing, layout, topology, "scattered")
    assert dict(zip((link.kind for link in straight.kinds), straight.load))["nic"] == pytest.approx(2.0)
    assert [counted(each, routing, layout, topology) for each in COUNTS] == pytest.approx(
        [4.0, 8 * (1 - comb(56, 4) / comb(64, 4)), 2 * there]
    )


def test_racks_wired_to_each_other_are_one_domain() -> None:
    topology = replace(racks(2), domain=1)  # where switches reduce
    assert topology.domain_size < topology.size
    assert demand("dispatch", Routing(64, 4), Layout.first(topology.size), topology).domains == 1


def test_a_combine_is_a_dispatch_backwards() -> None:
    routing, layout = Routing(64, 4, skew=1.0), Layout.first(8)
    there, back = (demand(op, routing, layout, pods(2)) for op in OPS)
    assert back.load == pytest.approx(there.load)
    routing = Routing(64, 4, skew=3.0)
    there, back = (demand(op, routing, Layout.first(8), switch(8)) for op in OPS)
    (down,), (up,) = there.busiest, back.busiest
    assert down.split(" -> ") == up.split(" -> ")[::-1]
    assert down.startswith("nvswitch")


def test_copies_that_act_at_once_share_the_uplinks() -> None:
    """Groups of two nodes under different leaves: two groups load the uplinks of their leaves twice as much as one."""
    topology, routing = pods(4, per_leaf=2), Routing(32, 2)
    alone = demand("dispatch", routing, Layout(((4, 1), (2, 8))), topology)
    both = demand("dispatch", routing, Layout(((4, 1), (2, 8)), ((2, 4),)), topology)
    uplink = [link.kind for link in topology.kinds].index("fibre")
    assert both.load[uplink] == pytest.approx(2 * alone.load[uplink])
    assert alone.load[uplink] > 0


def test_groups_that_lie_otherwise_are_priced_one_by_one() -> None:
    """Of two groups of three on nodes of four GPUs one stays inside, the other straddles: all wait for that one."""
    routing, topology = Routing(30, 2), pods(2)
    both = demand("dispatch", routing, Layout(((3, 1),), ((2, 3),)), topology)
    straddling = demand("dispatch", routing, Layout.of([3, 4, 5]), topology)
    assert (both.domains, both.copies, both.through) == (2, straddling.copies, straddling.through)
    assert (both.load >= straddling.load - 1e-12).all()
    nic = [link.kind for link in topology.kinds].index("nic")
    assert both.load[nic] == pytest.approx(straddling.load[nic])


@pytest.mark.parametrize(
    "wrong",
    [{"experts": 0}, {"top_k": 9}, {"top_k": True}, {"groups": 0}, {"skew": -1.0}, {"skew": float("nan")}],
)
def test_routing_that_is_none(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError, match="routing: "):
        Routing(**({"experts": 8, "top_k": 2} | wrong))  # type: ignore[arg-type]


def test_mistakes_about_groups() -> None:
    with pytest.raises(InputError, match="at least one expert"):
        Routing(4, 2).spread([0] * 8)
    with pytest.raises(InputError, match="the ranks 0 to 7"):
        demand("dispatch", Routing(64, 4), Layout.first(9), switch(8))
    with pytest.raises(InputError, match="groups: 1; 1 of 2 domains have fewer than the 9 experts"):
        Routing(16, 9, groups=1).spread([0, 1])
    with pytest.raises(InputError, match="no such way of counting"):
        counted("bytes", Routing(64, 4), Layout.first(8), switch(8))  # type: ignore[arg-type]
