"""Which times can no software beat?

Bounds by cuts: what must leave a GPU, a node or a scale-up domain, over everything that it could leave by. They hold
for every algorithm, so a measurement below them is wrong whatever library made it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from commsim.collectives.kinds import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, REDUCE_SCATTER, Collective
from commsim.figures import at
from commsim.hardware.routing import gpus_of, nics_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from commsim.hardware.topology import Topology
    from commsim.units import BytesPerSecond, Share

Cut = tuple[int, float, bool]
"""A unit of the machine: its GPUs, the rate at which bytes can leave it (B/s), and whether switches outside reduce."""


def least_time_per_byte(op: Collective, ranks: int, topology: Topology) -> float:
    """Return the seconds that each byte of the size takes at least, s/B, on the first so many GPUs of a machine."""
    bounds = [moved(op, inside, ranks, reduced=reduced) / rate for inside, rate, reduced in _cuts(topology, ranks)]
    return max(bounds, default=0.0)


def moved(op: Collective, inside: int, ranks: int, *, reduced: bool = False) -> Share:
    """Return what must leave one unit of so many of the ranks, on average over the units, for each byte of the size.

    Without reduction in switches an all-reduce of k units passes each byte on k - 1 times until it is summed and k - 1
    times until all have the sum: 2 (k - 1)/k each. All-gather, reduce-scatter and all-to-all follow from who must have
    what in the end; for the others one unit must at least send everything once.
    """
    outside = (ranks - inside) / ranks
    if op is ALL_REDUCE:
        return 1.0 if reduced else 2 * outside
    if op in {ALL_GATHER, REDUCE_SCATTER}:
        return outside
    return inside * outside if op is ALL_TO_ALL else 1.0


@lru_cache(maxsize=256)
def _cuts(topology: Topology, ranks: int) -> tuple[Cut, ...]:
    return tuple(_found(topology, ranks))


def _found(topology: Topology, ranks: int) -> Iterator[Cut]:
    """The units of which the ranks span more than one: a GPU, a node, a scale-up domain."""
    cell, node, domain = topology.cell, topology.gpus_per_node, topology.domain_size
    if ranks > 1:
        yield 1, max(_of_gpu(topology, gpu) for gpu in gpus_of(cell)), _reduces(topology, -1)
    if ranks > node:
        yield node, _leaving(topology, 0), _reduces(topology, 0)
    if ranks > domain > node:
        yield domain, _leaving(topology, topology.domain), _reduces(topology, topology.domain)


def _of_gpu(topology: Topology, gpu: str) -> BytesPerSecond:
    """The rate at which bytes can leave a GPU."""
    return sum(_rate(data) * _others(topology, gpu, data) for *_, data in topology.cell.out_edges(gpu, data=True))


def _leaving(topology: Topology, level: int) -> BytesPerSecond:
    """The rate at which bytes can leave a unit of a level: of NICs those that the GPUs used speak through."""
    cell, spans = topology.cell, topology.spans
    used = {nic for gpu in range(topology.gpus_per_node) for nic in nics_of(cell, gpu)}
    total = 0.0
    for lower, upper, data in cell.edges(data=True):
        tier = cell.nodes[lower]["tier"]
        idle = cell.nodes[lower]["part"] == "nic" and lower not in used
        beside = data.get("peers") and tier == level
        if tier <= level and (cell.nodes[upper]["tier"] > level or beside) and not idle:
            total += _rate(data) * (spans[level] // spans[tier]) * _others(topology, lower, data)
    return total


def _others(topology: Topology, name: str, edge: Mapping[str, Any]) -> int:
    """How many vertices an edge joins a vertex with: its copies in all sibling units, or one."""
    return topology.tiers[topology.cell.nodes[name]["tier"]].units - 1 if edge.get("peers") else 1


def _reduces(topology: Topology, level: int) -> bool:
    """Whether any switch above a level can reduce."""
    return any(data.get("reduces") and data["tier"] > level for _, data in topology.cell.nodes(data=True))


def _rate(edge: Mapping[str, Any]) -> BytesPerSecond:
    """The rate of all cables of an edge, at the fast end of what is known of them."""
    return float(at(edge["link"].bandwidth, "high") * edge["count"])
