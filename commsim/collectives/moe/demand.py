"""What do the tokens of an expert-parallel group ask of links, kernels and NICs?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from commsim.collectives.algorithms.direct import all_to_all_v
from commsim.collectives.layout import Layout
from commsim.collectives.moe.traffic import railed, scattered
from commsim.collectives.price import price
from commsim.collectives.remembered import remembered
from commsim.errors import InputError

if TYPE_CHECKING:
    from commsim.collectives.moe.routing import Routing, Spread
    from commsim.collectives.price import Cost
    from commsim.hardware.topology import Link, Topology

Floats = NDArray[np.float64]
Way = Literal["railed", "scattered"]
Op = Literal["dispatch", "combine"]
Counts = Literal["token_expert_pairs", "token_rank_pairs", "token_node_pairs_incl_own"]
COUNTS: tuple[Counts, ...] = get_args(Counts)
"""What reported bandwidths count: every copy of a token that an expert gets; one for each rank, or for each scale-up
domain ("node" there), that has an expert of it. A sender's own are counted, although what stays crosses no link."""
Domains = tuple[int, ...]
"""The scale-up domain of each member of a group, numbered from 0."""


@dataclass(frozen=True, eq=False)
class Demand:
    """What one token of one byte on each rank asks of the machine: the most of any rank or link, mean over draws.

    `load`[kind] are copies on the busiest link of each kind, `busiest`[kind] that link. `handled` are copies that the
    busiest rank's kernel moves, `through` those that it sends through its NICs (or receives), `peer` those to one rank
    there. `copies` are those of a token as benchmarks of such a way count them (see `counted`), `away` is the share of
    them that leaves the scale-up domain or, in a single one, the rank. A group spans so many `domains`.
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
    domains: int

    @property
    def counts(self) -> Counts:
        """What benchmarks of this way count, of COUNTS."""
        return _counts(self.way, self.domains)


def demand(op: Op, routing: Routing, layout: Layout, topology: Topology, way: Way = "railed") -> Demand:
    """Return what a dispatch or combine asks of a machine, remembered for it; a combine is a dispatch backwards.

    All groups of the layout act at once, and all wait for the slowest. InputError when ranks are outside the machine,
    or some rank has no expert.
    """
    return remembered(topology, (op, routing, layout, way), lambda: _demand(op, routing, layout, (topology, way)))


def counted(counts: Counts, routing: Routing, layout: Layout, topology: Topology) -> float:
    """Return how many copies of a token a bandwidth counts, in the mean. InputError for an unknown way of counting."""
    if counts not in COUNTS:
        raise InputError("counts", counts, "no such way of counting", among=COUNTS)
    return _counted(routing.spread(_widest(_domains(layout, topology))), counts)


def _demand(op: Op, routing: Routing, layout: Layout, where: tuple[Topology, Way]) -> Demand:
    topology, way = where
    domains = _domains(layout, topology)
    drawn = {one: _drawn(routing.spread(one), way) for one in dict.fromkeys(domains)}
    draws = range(len(drawn[domains[0]]))
    costs = [_priced(op, [drawn[one][draw].matrix for one in domains], layout, topology) for draw in draws]
    widest = _widest(domains)
    count = max(widest) + 1
    return Demand(
        way=way,
        kinds=topology.kinds,
        load=np.mean([cost.load[0] for cost in costs], axis=0),
        busiest=costs[0].busiest[0],
        handled=_most(drawn, "handled"),
        through=_most(drawn, "through"),
        peer=_most(drawn, "peer"),
        copies=_counted(routing.spread(widest), _counts(way, count)),
        away=(count - 1) / count if count > 1 else (layout.size - 1) / layout.size,
        domains=count,
    )


class _Drawn(NamedTuple):
    """What goes from rank to rank in one draw; the copies handled by, and sent through NICs by, the busiest rank."""

    matrix: Floats
    handled: float
    through: float
    peer: float


def _domains(layout: Layout, topology: Topology) -> list[Domains]:
    """The scale-up domain of each member, for each group."""
    if layout.last >= topology.size:
        raise InputError("rank", layout.last, f"the machine has the ranks 0 to {topology.size - 1}")
    domains = layout.ranks() // _domain_size(topology)
    return [tuple(np.unique(row, return_inverse=True)[1].tolist()) for row in domains]


def _domain_size(topology: Topology) -> int:
    """GPUs that reach each other without a NIC: as many as reach from the first to the last of a unit.

    Racks that are wired to each other without switches between count as one, though no switch reduces for all of them.
    """
    units = (min(span, topology.nodes) * topology.gpus_per_node for span in topology.spans)
    sizes = np.array([topology.domain_size, *(size for size in units if size > topology.domain_size)])
    network = topology.route(np.zeros(len(sizes), dtype=np.int64), sizes - 1).network
    return int(sizes[network == 0].max(initial=1))


def _widest(domains: list[Domains]) -> Domains:
    return max(domains, key=max)


def _priced(op: Op, matrices: list[Floats], layout: Layout, topology: Topology) -> Cost:
    """The price of all groups: one schedule for all copies where they lie alike, else one for each."""
    schedules = {id(each): all_to_all_v(each.T if op == "combine" else each) for each in matrices}
    if len(schedules) == 1:
        return price([(schedules[id(matrices[0])], layout)], topology)
    acting = [(schedules[id(each)], Layout.of(ranks.tolist())) for each, ranks in zip(matrices, layout.ranks())]
    return price(acting, topology)


def _most(drawn: dict[Domains, list[_Drawn]], name: str) -> float:
    """The largest of all groups, in the mean over draws."""
    return max(float(np.mean([getattr(one, name) for one in draws])) for draws in drawn.values())


def _drawn(spread: Spread, way: Way) -> list[_Drawn]:
    return [(_scattered if way == "scattered" else _railed)(spread, draw) for draw in range(len(spread.copies))]


def _scattered(spread: Spread, draw: int) -> _Drawn:
    matrix = scattered(spread, draw)
    return _Drawn(matrix, float(matrix.sum(axis=0).max()), *_outside(spread, matrix))


def _railed(spread: Spread, draw: int) -> _Drawn:
    rails, inside = railed(spread, draw)
    sent = float(spread.to_domain[draw].sum()) if rails.any() else 0.0
    return _Drawn(rails + inside, sent + float(inside.sum(axis=0).max()), *_outside(spread, rails))


def _outside(spread: Spread, matrix: Floats) -> tuple[float, float]:
    """What the busiest rank sends to or receives from other domains, and what goes to one rank there at most."""
    away = np.where(spread.domain[:, None] != spread.domain, matrix, 0.0)
    return float(max(away.sum(axis=0).max(), away.sum(axis=1).max())), float(away.max())


def _counts(way: Way, domains: int) -> Counts:
    if way == "scattered":
        return "token_expert_pairs"
    return "token_node_pairs_incl_own" if domains > 1 else "token_rank_pairs"


def _counted(spread: Spread, counts: Counts) -> float:
    pairs = {
        "token_expert_pairs": spread.copies,
        "token_rank_pairs": spread.to_rank,
        "token_node_pairs_incl_own": spread.to_domain,
    }
    return float(pairs[counts].sum(axis=1).mean())
