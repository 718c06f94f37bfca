"""What is joined to what, and how fast?

A machine is a *cell* that repeats. The cell is a networkx graph of one node (one host) and one switch of each tier above
it; `tiers` say how many units of the tier below each tier joins. Every vertex of the cell carries its tier: a vertex of
tier 0 exists once a node, a vertex of tier t once for each unit of tier t. Links are numbered by arithmetic on these
coordinates, so that 100,000 GPUs need no graph of 100,000 GPUs; any other graph (a NCCL XML, a machine with a broken
link) is a cell that stands once.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from commsim.errors import InputError
from commsim.hardware import routing
from commsim.units import BytesPerSecond, Seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
ENDPOINTS = ("gpu", "lpu")
"""The parts that are ranks: the endpoints of every transfer."""


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
            raise InputError(f"link {self.kind}: latency", float(self.latency), "a time that is not negative belongs here")


@dataclass(frozen=True)
class Tier:
    """A level of the hardware above the node: `units` of the level below stand under one unit of it."""

    name: str
    units: int


@dataclass(frozen=True)
class Routes:
    """Where transfers go: `links` int[transfer, hop] (padded with 0 share), `share` of the transfer on each of them.

    `hops` int[transfer, kind] counts the links that one byte crosses one after another, by kind; `network`[transfer]
    tells which transfers leave the machine through a NIC.
    """

    links: Ints
    share: Floats
    hops: Ints
    network: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Topology:
    """The machine as a graph: a cell, how often it repeats, and which tiers form the scale-up domain.

    `cell` is a directed graph. Vertices carry `part` (gpu, nvswitch, nic, ...), `tier`, and may carry `reduces` and
    `multicasts` (what a switch does in the network), `forwards` (default: everything but gpus) and `stands_for` (how many
    parallel switches one vertex draws). Edges carry `link` (a Link), `count` (parallel cables) and may carry `peers` (the
    edge joins the copies of its ends in all sibling units: a mesh of racks, a HyperX dimension).
    """

    cell: nx.DiGraph[str]
    tiers: tuple[Tier, ...] = ()
    nodes: int = 1
    gpus_per_node: int = 0
    domain: int = 0
    about: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Fill `gpus_per_node` when it is 0, and refuse what is no machine; InputError."""
        present = len(self._gpu_names)
        if present == 0:
            raise InputError("topology", sorted(self.cell)[:4], "at least one gpu (or lpu) belongs in a machine")
        if self.gpus_per_node == 0:
            object.__setattr__(self, "gpus_per_node", present)
        if not 1 <= self.gpus_per_node <= present:
            raise InputError("gpus per node", self.gpus_per_node, f"1 to {present} belong here (a node has {present})")
        room = int(np.prod([tier.units for tier in self.tiers], dtype=float)) if self.tiers else 1
        if not 1 <= self.nodes <= room:
            raise InputError("nodes", self.nodes, f"1 to {room} nodes can be joined by this fabric")

    @cached_property
    def _gpu_names(self) -> list[str]:
        return [name for name, part in self.cell.nodes(data="part") if part in ENDPOINTS]

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
        return min(self.spans[self.domain], self.nodes) * self.gpus_per_node

    @cached_property
    def kinds(self) -> tuple[Link, ...]:
        """The kinds of link, each once, in the order in which the cell names them."""
        links = {link.kind: link for _, _, link in self.cell.edges(data="link")}
        return tuple(links.values())

    @cached_property
    def numbering(self) -> Numbering:
        """How links are numbered."""
        return Numbering.of(self)

    def locate(self, ranks: Ints) -> tuple[Ints, Ints]:
        """Return node and local index of GPUs 0 .. size-1 (node by node); InputError when one is outside."""
        if ranks.size and (ranks.min() < 0 or ranks.max() >= self.size):
            outside = ranks.max() if ranks.max() >= self.size else ranks.min()
            raise InputError("rank", int(outside), f"the machine has the ranks 0 to {self.size - 1}")
        node, local = np.divmod(ranks, self.gpus_per_node)
        return node, local

    def level(self, a: Ints, b: Ints) -> Ints:
        """Return the lowest level whose unit holds both nodes (0 = the same node)."""
        apart = [a // span != b // span for span in self.spans]
        return np.sum(apart, axis=0, dtype=np.int64)

    def route(self, sources: Ints, targets: Ints) -> Routes:
        """Return the routes of the transfers sources[t] -> targets[t] (ranks). InputError when there is no path."""
        (node_a, a), (node_b, b) = self.locate(sources), self.locate(targets)
        return self._gathered(routing.between, (a, b, self.level(node_a, node_b)), (node_a, node_b))

    def to_switch(self, ranks: Ints, level: int) -> Routes:
        """Return the routes from each rank up to the switch that joins all units of `level` and can reduce."""
        return self._switched(ranks, level, routing.UP)

    def from_switch(self, ranks: Ints, level: int) -> Routes:
        """Return the routes from that switch down to each rank."""
        return self._switched(ranks, level, routing.DOWN)

    def _switched(self, ranks: Ints, level: int, direction: int) -> Routes:
        node, local = self.locate(ranks)
        everyone = tuple(np.unique(local).tolist())
        path = routing.switched(direction, everyone)
        return self._gathered(path, (local, np.zeros_like(local), np.full_like(local, level)), (node, node))

    def _gathered(self, path: routing.PathOf, key: tuple[Ints, Ints, Ints], nodes: tuple[Ints, Ints]) -> Routes:
        """Look each distinct (from, to, level) up once and spread the answer over the transfers."""
        shape = (self.gpus_per_node, self.gpus_per_node, len(self.spans) + 1)
        distinct, which = np.unique(np.ravel_multi_index(key, shape), return_inverse=True)
        paths = [path(self.cell, *map(int, row)) for row in zip(*np.unravel_index(distinct, shape), strict=True)]
        table = routing.padded(paths, self.numbering.order, self.numbering.kind_index)
        links = self.numbering.links(table.edge[which], table.side[which], nodes)
        return Routes(links, table.share[which], table.hops[which], table.network[which])

    def graph(self) -> nx.DiGraph[str]:
        """Return the whole machine as one graph, for people and for small machines: the same edges, every copy drawn."""
        whole: nx.DiGraph[str] = nx.DiGraph()
        for name, data in self.cell.nodes(data=True):
            for unit in range(-(-self.nodes // self.spans[data["tier"]])):
                whole.add_node(self.copy_name(name, unit), **(data | {"tier": 0}))
        for u, v, data in self.cell.edges(data=True):
            whole.add_edges_from(self._copies(u, v, data))
        return whole

    def flat(self) -> Topology:
        """Return the same machine as one big cell (every vertex drawn): to break a link in it, or to check the tiling."""
        return replace(self, cell=self.graph(), tiers=(), nodes=1, gpus_per_node=self.size, domain=0)

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


@dataclass(frozen=True)
class Numbering:
    """The number of every link: edges of the cell one after another, within an edge by the unit that it belongs to."""

    order: dict[tuple[str, str], int]
    names: list[tuple[str, str]]
    kind_index: Ints
    count: Floats
    offset: Ints
    span: Ints
    siblings: Ints
    total: int

    @classmethod
    def of(cls, topology: Topology) -> Numbering:
        """Return the numbering for a topology of so many nodes."""
        kinds = [link.kind for link in topology.kinds]
        edges = list(topology.cell.edges(data=True))
        tiers = [min(topology.cell.nodes[end]["tier"] for end in (u, v)) for u, v, _ in edges]
        siblings = [topology.tiers[t].units if d.get("peers") else 1 for t, (_, _, d) in zip(tiers, edges, strict=True)]
        span = np.array([topology.spans[tier] for tier in tiers], dtype=np.int64)
        copies = -(-topology.nodes // span) * np.array(siblings, dtype=np.int64)
        ends = np.cumsum(copies)
        return cls(
            order={(u, v): number for number, (u, v, _) in enumerate(edges)},
            names=[(u, v) for u, v, _ in edges],
            kind_index=np.array([kinds.index(d["link"].kind) for _, _, d in edges], dtype=np.int64),
            count=np.array([d.get("count", 1) for _, _, d in edges], dtype=np.float64),
            offset=ends - copies,
            span=span,
            siblings=np.array(siblings, dtype=np.int64),
            total=int(ends[-1]) if len(ends) else 0,
        )

    def links(self, edge: Ints, side: Ints, nodes: tuple[Ints, Ints]) -> Ints:
        """Return link numbers int[transfer, hop] for the edges of the cell on the source's or target's side."""
        node = np.where(side == 0, nodes[0][:, None], nodes[1][:, None])
        unit = node // self.span[edge]
        if self.siblings.max(initial=1) == 1:
            return self.offset[edge] + unit
        far = np.where(side == 0, nodes[1][:, None], nodes[0][:, None]) // self.span[edge]
        siblings = self.siblings[edge]
        return self.offset[edge] + np.where(siblings > 1, unit * siblings + far % siblings, unit)

    def name(self, edge: int) -> str:
        """Return an edge of the cell as people read it; empty for none."""
        return "" if edge < 0 else " -> ".join(self.names[edge])

    def busiest(self, load: Floats, kinds: int) -> tuple[Floats, Ints]:
        """Return, for a load on every link, the largest load per cable of each kind, and the edge that carries it."""
        by_edge = np.maximum.reduceat(load, self.offset) / self.count
        most, where = np.zeros(kinds), np.full(kinds, -1, dtype=np.int64)
        for edge in np.argsort(by_edge, kind="stable"):
            if by_edge[edge] > 0:
                kind = self.kind_index[edge]
                most[kind], where[kind] = by_edge[edge], edge
        return most, where

