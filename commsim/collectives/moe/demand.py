"""What do the tokens of an expert-parallel group ask of links, kernels and NICs?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from commsim.collectives.algorithms.direct import all_to_all_v
from commsim.collectives.moe.traffic import railed, scattered
from commsim.collectives.price import price
from commsim.collectives.remembered import remembered
from commsim.errors import InputError

if TYPE_CHECKING:
    from commsim.collectives.layout import Layout
    from commsim.collectives.moe.routing import Routing, Spread
    from commsim.hardware.topology import Link, Topology

Floats = NDArray[np.float64]
Way = Literal["railed", "scattered"]
Op = Literal["dispatch", "combine"]
Counts = Literal["token_expert_pairs", "token_rank_pairs", "token_node_pairs_incl_own"]
COUNTS: tuple[Counts, ...] = get_args(Counts)
"""What reported bandwidths count: every copy of a token that an expert gets; one for each rank, or for each node, that
has an expert of it. The sender's own rank and node are counted, although what stays there crosses no link."""


@dataclass(frozen=True, eq=False)
class Demand:
    """What one token of one byte on each rank asks of the machine: the most of any rank or link, mean over draws.

    `load`[kind] are copies on the busiest link of each kind, `busiest`[kind] that link. `handled` are copies that the
    busiest rank's kernel moves, `through` those that it sends through its NICs (or receives), `peer` those to one rank
    there. `copies` are those of a token as benchmarks of such a way count them (see `counted`), `away` is the share of
    them that leaves the node or, on one node, the rank.
    """

    way: Way
    kinds: tuple[Link, ...]
    load: Floats
    busiest: tuple[str, ...]
    handled: float
    through: float
    peer: float
    copies: float
    away: float
    nodes: int

    @property
    def counts(self) -> Counts:
        """What benchmarks of this way count, of COUNTS."""
        return _counts(self.way, self.nodes)


def demand(op: Op, routing: Routing, layout: Layout, topology: Topology, way: Way = "railed") -> Demand:
    """Return what a dispatch or combine asks of a machine, remembered for it; a combine is a dispatch backwards.

    InputError when ranks are outside the machine, groups do not lie alike in their nodes, or a rank has no expert.
    """
    return remembered(topology, (op, routing, layout, way), lambda: _demand(op, routing, layout, (topology, way)))


def counted(counts: Counts, routing: Routing, layout: Layout, topology: Topology) -> float:
    """Return how many copies of a token a bandwidth counts, in the mean. InputError for an unknown way of counting."""
    if counts not in COUNTS:
        raise InputError("counts", counts, "no such way of counting", among=COUNTS)
    return _counted(routing.spread(_domains(layout, topology)), counts)


def _demand(op: Op, routing: Routing, layout: Layout, where: tuple[Topology, Way]) -> Demand:
    topology, way = where
    spread = routing.spread(_domains(layout, topology))
    drawn = [_drawn(spread, draw, way) for draw in range(len(spread.copies))]
    costs = [price([(all_to_all_v(each.T if op == "combine" else each), layout)], topology) for each, _ in drawn]
    network = spread.owner[:, None] != spread.owner
    outside = [np.where(network, matrix, 0.0) for matrix, _ in drawn]
    nodes = int(spread.owner.max()) + 1
    ranks = layout.size
    return Demand(
        way=way,
        kinds=topology.kinds,
        load=np.mean([cost.load[0] for cost in costs], axis=0),
        busiest=costs[0].busiest[0],
        handled=float(np.mean([handled for _, handled in drawn])),
        through=float(np.mean([max(each.sum(axis=0).max(), each.sum(axis=1).max()) for each in outside])),
        peer=float(np.mean([each.max() for each in outside])),
        copies=_counted(spread, _counts(way, nodes)),
        away=(nodes - 1) / nodes if nodes > 1 else (ranks - 1) / ranks,
        nodes=nodes,
    )


def _domains(layout: Layout, topology: Topology) -> list[int]:
    """The scale-up domain of each member, numbered as the first group's are. InputError where groups lie otherwise."""
    if layout.last >= topology.size:
        raise InputError("rank", layout.last, f"the machine has the ranks 0 to {topology.size - 1}")
    domains = layout.ranks() // topology.domain_size
    alike: list[list[int]] = [np.unique(row, return_inverse=True)[1].tolist() for row in domains]
    if any(row != alike[0] for row in alike):
        expected = "each group lies in its scale-up domains as all others do: take sizes that divide a domain"
        raise InputError("expert-parallel groups", f"{layout.size} ranks", expected)
    return alike[0]


def _drawn(spread: Spread, draw: int, way: Way) -> tuple[Floats, float]:
    """What goes from rank to rank in one draw, and how many copies the busiest rank's kernel moves."""
    if way == "scattered":
        matrix = scattered(spread, draw)
        return matrix, float(matrix.sum(axis=0).max())
    rails, inside = railed(spread, draw)
    sent = float(spread.to_node[draw].sum()) if rails.any() else 0.0
    return rails + inside, sent + float(inside.sum(axis=0).max())


def _counts(way: Way, nodes: int) -> Counts:
    if way == "scattered":
        return "token_expert_pairs"
    return "token_node_pairs_incl_own" if nodes > 1 else "token_rank_pairs"


def _counted(spread: Spread, counts: Counts) -> float:
    pairs = {
        "token_expert_pairs": spread.copies,
        "token_rank_pairs": spread.to_rank,
        "token_node_pairs_incl_own": spread.to_node,
    }
    return float(pairs[counts].sum(axis=1).mean())
