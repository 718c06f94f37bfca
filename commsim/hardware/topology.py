"""What is joined to what, and how fast?

A machine is a *cell* that repeats. The cell is a networkx graph of one node (one host) and one switch of each tier
above it; `tiers` say how many units of the tier below each tier joins. Every vertex of the cell carries its tier: a
vertex of tier 0 exists once a node, a vertex of tier t once for each unit of tier t. Links are numbered by arithmetic
on these coordinates, so that 100,000 GPUs need no graph of 100,000 GPUs; any other graph (a NCCL XML, a machine with a
broken link) is a cell that stands once.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from commsim.errors import InputError
from commsim.hardware import routing
from commsim.hardware.atlas import Atlas
from commsim.hardware.numbering import Numbering
from commsim.units import BytesPerSecond, Seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
ENDPOINTS = routing.ENDPOINTS
MOST_GPUS = 2**18
"""GPUs of a machine at most: prices hold some arrays over all of them (20 s and 2 GB for so many)."""


@dataclass(frozen=True)
class Link:
    """One direction of one cable (or lane) of a kind: its bandwidth and the time a byte takes to cross it."""

    kind: str
    bandwidth: BytesPerSecond
    latency: Seconds

    def __post_init__(self) -> None:
        """Refuse a link that could carry nothing; InputError."""
        if not 0 < self.bandwidth < float("inf"):
            raise InputError(f"link {self.kind}: bandwidth", float(self.bandwidth), "a bandwidth above 0 belongs here")
        if not 0 <= self.latency < float("inf"):
            raise InputError(
                f"link {self.kind}: latency", float(self.latency), "a time that is not negative belongs here"
            )


@dataclass(frozen=True)
class Tier:
    """A level of the hardware above the node: `units` of the level below stand under one unit of it."""

    name: str
    units: int


@dataclass(frozen=True)
class Routes:
    """Where transfers go: `links` int[transfer, hop] (padded with 0 share), `share` of the transfer on each of them.

    `hops`[transfer, kind] counts the links that one byte crosses one after another; `network`[transfer] is 1 where it
    passes a NIC.
    """

    links: Ints
    share: Floats
    hops: Floats
    network: Floats


@dataclass(frozen=True, eq=False)
class Topology:
    """The machine as a graph: a cell, how often it repeats, and which tiers form the scale-up domain.

    `cell` is a directed graph. Vertices carry `part` (gpu, nvswitch, nic, ...), `tier`, and may carry `reduces` and
    `multicasts` (what a switch does in the network), `forwards` (default: everything but gpus) and `stands_for` (how
    many parallel switches one vertex draws). Edges carry `link` (a Link), `count` (parallel cables) and may carry
    `peers` (the edge joins the copies of its ends in all sibling units: a mesh of racks, a HyperX dimension).
    """

    cell: nx.DiGraph[str]
    tiers: tuple[Tier, ...] = ()
    nodes: int = 1
    gpus_per_node: int = 0
    domain: int = 0
    about: dict[str, Any] = field(default_factory=dict)
    gpus_per_domain: int = 0

    def __post_init__(self) -> None:
        """Fill `gpus_per_node` when it is 0, and refuse what is no machine; InputError."""
        present = len(routing.gpus_of(self.cell))
        if present == 0:
            raise InputError("topology", sorted(self.cell)[:4], "at least one gpu (or lpu) belongs in a machine")
        if self.gpus_per_node == 0:
            object.__setattr__(self, "gpus_per_node", present)
        if not 1 <= self.gpus_per_node <= present:
            raise InputError("gpus per node", self.gpus_per_node, f"1 to {present} belong here (a node has {present})")
        room = int(np.prod([tier.units for tier in self.tiers], dtype=float)) if self.tiers else 1
        if not 1 <= self.nodes <= room:
            raise InputError("nodes", self.nodes, f"1 to {room} nodes can be joined by this fabric")
        if self.size > MOST_GPUS:
            raise InputError("gpus", self.size, f"at most {MOST_GPUS:,} can be laid out")

    @property
    def size(self) -> int:
        """The number of GPUs."""
        return self.nodes * self.gpus_per_node

    @cached_property
    def spans(self) -> tuple[int, ...]:
        """Nodes in one unit of each level: 1 for the node itself, then for each tier."""
        return tuple(int(span) for span in np.cumprod([1, *(tier.units for tier in self.tiers)]))

    @cached_property
    def domain_size(self) -> int:
        """GPUs of one full scale-up domain (a box, a rack of NVL72)."""
        return self.gpus_per_domain or min(self.spans[self.domain], self.nodes) * self.gpus_per_node

    @cached_property
    def kinds(self) -> tuple[Link, ...]:
        """The kinds of link, each once, in the order in which the cell names them. InputError when two share a name."""
        links: dict[str, Link] = {}
        for _, _, data in self.cell.edges(data=True):
            link: Link = data["link"]
            if links.setdefault(link.kind, link) != link:
                raise InputError("link", link, f"another name: {links[link.kind]} is a kind already")
        return tuple(links.values())

    @cached_property
    def latency(self) -> Floats:
        """The latency of each kind, s."""
        return np.array([float(link.latency) for link in self.kinds])

    @cached_property
    def meshed(self) -> bool:
        """Whether some GPUs are wired to each other, without a switch between."""
        gpus = set(routing.gpus_of(self.cell))
        return any(u in gpus and v in gpus for u, v in self.cell.edges)

    @cached_property
    def numbering(self) -> Numbering:
        """How links are numbered."""
        kinds, units = [link.kind for link in self.kinds], [tier.units for tier in self.tiers]
        return Numbering.of(self.cell, kinds, units, self.nodes)

    @cached_property
    def atlas(self) -> Atlas:
        """The ways between GPUs that were asked for so far."""
        shape = (self.gpus_per_node, self.gpus_per_node, len(self.spans) + 1)
        return Atlas(partial(routing.between, self.cell), self.numbering, shape, len(self.kinds))

    def locate(self, ranks: Ints) -> tuple[Ints, Ints]:
        """Return node and local index of GPUs 0 .. size-1 (node by node); InputError when one is outside."""
        if ranks.size and (ranks.min() < 0 or ranks.max() >= self.size):
            outside = ranks.max() if ranks.max() >= self.size else ranks.min()
            raise InputError("rank", int(outside), f"the machine has the ranks 0 to {self.size - 1}")
        node, local = np.divmod(ranks, self.gpus_per_node)
        return node, local

    def level(self, a: Ints, b: Ints) -> Ints:
        """Return the lowest level whose unit holds both nodes (0 = the same node)."""
        level = np.zeros(a.shape, dtype=np.int64)
        for span in self.spans:
            level += a // span != b // span
        return level

    def route(self, sources: Ints, targets: Ints) -> Routes:
        """Return the routes of the transfers sources[t] -> targets[t] (ranks). InputError when there is no path."""
        (node_a, a), (node_b, b) = self.locate(sources), self.locate(targets)
        ways, way = self.atlas.ways(a, b, self.level(node_a, node_b))
        table = ways.rows(way)
        links = self.numbering.links(table.edge, table.side, (node_a, node_b))
        return Routes(links, table.share, table.hops, table.network)

    def graph(self) -> nx.DiGraph[str]:
        """Return the whole machine as one graph, for people and small machines: the same edges, every copy drawn.

        Its GPUs stand in the order of their ranks, node by node, those that are not used at the end.
        """
        whole: nx.DiGraph[str] = nx.DiGraph()
        used = routing.gpus_of(self.cell)[: self.gpus_per_node]
        whole.add_nodes_from(self.copy_name(name, node) for node in range(self.nodes) for name in used)
        for name, data in self.cell.nodes(data=True):
            for unit in range(-(-self.nodes // self.spans[data["tier"]])):
                whole.add_node(self.copy_name(name, unit), **(data | {"tier": 0}))
        for u, v, data in self.cell.edges(data=True):
            whole.add_edges_from(self._copies(u, v, data))
        return whole

    def flat(self) -> Topology:
        """Return the same machine as one big cell, every vertex drawn: to break a link, or to check the tiling."""
        if not self.tiers:
            return self
        drawn = replace(self, cell=self.graph(), tiers=(), nodes=1, gpus_per_node=self.size, domain=0)
        return replace(drawn, gpus_per_domain=self.domain_size)

    def without(self, a: str, b: str) -> Topology:
        """Return the machine, drawn out, with the link between two vertices cut. InputError when there is none."""
        changed = self.flat()
        cell = changed.cell.copy()
        joined = [f"{u} {v}" for u, v in cell.edges]
        if f"{a} {b}" not in joined:
            raise InputError("topology: link", f"{a} {b}", "no link joins these two", among=joined)
        cell.remove_edges_from([(a, b), (b, a)])
        return replace(changed, cell=cell)

    def copy_name(self, name: str, unit: int) -> str:
        """Return the name of one copy of a vertex in the whole graph: `node3/gpu0`, `rack1/nvswitch0`."""
        tier = self.cell.nodes[name]["tier"]
        return f"{'node' if tier == 0 else self.tiers[tier - 1].name}{unit}/{name}"

    def _copies(self, u: str, v: str, data: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
        tier_u, tier_v = (self.cell.nodes[end]["tier"] for end in (u, v))
        low = self.spans[min(tier_u, tier_v)]
        plain = {key: value for key, value in data.items() if key != "peers"}
        units = -(-self.nodes // low)
        for unit in range(units):
            ends = (unit * low // self.spans[tier] for tier in (tier_u, tier_v))
            if not data.get("peers"):
                yield self.copy_name(u, next(ends)), self.copy_name(v, next(ends)), plain
                continue
            siblings = self.tiers[tier_u].units
            first = unit // siblings * siblings
            for other in range(first, min(first + siblings, units)):
                if other != unit:
                    yield self.copy_name(u, unit), self.copy_name(v, other), plain
