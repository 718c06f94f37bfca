"""Which links does a transfer cross?

All shortest paths of equal cost share a transfer, and at each vertex it splits in proportion to the parallel cables, as
hardware that sprays over its links does. Cost is latency. GPUs do not forward (unless the part says so), and a transfer
enters the network only through the NICs of its own two GPUs, and only when no path inside the machine exists.

Two GPUs whose nodes meet at level l are routed in the *doubled cell*: every vertex below level l twice (the source's
copy and the target's), every vertex from level l on once. It holds every path that does not pass through a third node.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import networkx as nx

from commsim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Edge = tuple[str, str]
Vertex = tuple[str, int]
"""A vertex of the doubled cell: its name and its side (0 the source's, 1 the target's)."""
ENDPOINTS = ("gpu", "lpu")
"""The parts that are ranks: the endpoints of every transfer."""
UP, DOWN = 0, 1
_NONE: frozenset[Vertex] = frozenset()
_FAR = float("inf")


@dataclass(frozen=True)
class Path:
    """The way of one transfer: which edges of the cell, on whose side, with which share; and one path's edges in order.

    `network` says whether it passes a NIC.
    """

    edges: tuple[Edge, ...] = ()
    sides: tuple[int, ...] = ()
    shares: tuple[float, ...] = ()
    chain: tuple[Edge, ...] = ()
    network: bool = False


@dataclass(frozen=True)
class _Reach:
    """What lies before a target: the cost to it from every vertex that may send to it, and who passes it on."""

    cost: Mapping[Vertex, float]
    forwards: set[Vertex]


def between(cell: nx.DiGraph[str], a: int, b: int, level: int) -> Path:
    """Return the way from GPU `a` to GPU `b` of nodes that meet at `level`. InputError when there is none."""
    gpus = gpus_of(cell)
    source, target = (gpus[a], 0), (gpus[b], 1 if level else 0)
    if source == target:
        return Path()
    graph = doubled(cell, level)
    inside = _before(graph, target)
    if source in inside.cost:
        return _split(graph, (source, target), inside)
    through = _before(graph, target, _ports(cell, source) | _ports(cell, target))
    if source not in through.cost:
        where = "of one node" if level == 0 else f"of two nodes that meet {level} tiers up"
        raise InputError("topology", f"{gpus[a]} and {gpus[b]}", f"no path joins these two {where}: a link is missing")
    return _split(graph, (source, target), through)


@lru_cache(maxsize=1024)
def to_switch(
    cell: nx.DiGraph[str], members: tuple[int, ...], above: tuple[int, bool], direction: int
) -> tuple[Path, ...]:
    """Return the ways between GPUs (places in a node) and the nearest switch that joins them, `UP` to it or `DOWN`.

    `above`: the level from which on it stands, and whether the way there may pass the GPUs' NICs. It reduces and
    multicasts. InputError when there is none.
    """
    ends = [(gpus_of(cell)[local], 0) for local in members]
    graph = doubled(cell, 0) if direction == UP else _turned(doubled(cell, 0))
    farthest: dict[Vertex, float] = {}
    for name, data in cell.nodes(data=True):
        if data.get("reduces") and data.get("multicasts") and data["tier"] >= above[0]:
            costs = [_before(graph, (name, 0), _entry(cell, gpu, above)).cost.get(gpu, _FAR) for gpu in ends]
            farthest[name, 0] = max(costs)
    if min(farthest.values(), default=_FAR) == _FAR:
        raise InputError("in-network reduction", f"{len(ends)} places of a node", "no switch that reduces joins them")
    switch = min(farthest, key=lambda vertex: farthest[vertex])
    # The way down is found from the GPU as well, on the graph turned round.
    return tuple(_split(graph, (gpu, switch), _before(graph, switch, _entry(cell, gpu, above))) for gpu in ends)


def _entry(cell: nx.DiGraph[str], gpu: Vertex, above: tuple[int, bool]) -> frozenset[Vertex]:
    return _ports(cell, gpu) if above[1] else _NONE


@lru_cache(maxsize=1024)
def gpus_of(cell: nx.DiGraph[str]) -> list[str]:
    """Return the GPUs (or LPUs) of a cell in order."""
    return [name for name, data in cell.nodes(data=True) if data["part"] in ENDPOINTS]


@lru_cache(maxsize=1024)
def doubled(cell: nx.DiGraph[str], level: int) -> nx.DiGraph[Vertex]:
    """Return the cell with the vertices below `level` drawn for the source's and for the target's node."""
    graph: nx.DiGraph[Vertex] = nx.DiGraph()
    tier = {name: data["tier"] for name, data in cell.nodes(data=True)}

    def on(name: str, side: int) -> Vertex:
        return (name, side if tier[name] < level else 0)

    for side in (0, 1) if level else (0,):
        graph.add_nodes_from((on(name, side), data) for name, data in cell.nodes(data=True))
        for u, v, data in cell.edges(data=True):
            if not data.get("peers"):
                graph.add_edge(on(u, side), on(v, side), **_traversal(u, v, side, data))
            elif tier[u] + 1 == level:
                graph.add_edge((u, side), (v, 1 - side), **_traversal(u, v, side, data))
    return graph


def _traversal(u: str, v: str, side: int, data: Mapping[str, Any]) -> dict[str, Any]:
    """What an edge of the doubled cell carries; the cost is whole picoseconds, so that equal paths are equal."""
    cost = round(float(data["link"].latency) * 1e12) + 1
    return {"edge": (u, v), "side": side, "cost": cost, "count": data.get("count", 1)}


@lru_cache(maxsize=64)
def _before(graph: nx.DiGraph[Vertex], target: Vertex, nics: frozenset[Vertex] = _NONE) -> _Reach:
    """What may send to the target when no GPU forwards (unless the part says so) and of the NICs only `nics` do.

    A switch as a target is reached from below, not through switches of its own part beside it.
    """
    beside = {graph.nodes[target]["part"]}.difference(ENDPOINTS)
    ways = {vertex for vertex, data in graph.nodes(data=True) if _forwards(data) and data["part"] not in beside}
    forwards = ways | nics | {target}

    def cost(after: Vertex, _: Vertex, data: Mapping[str, Any]) -> int | None:
        return int(data["cost"]) if after in forwards else None

    return _Reach(nx.single_source_dijkstra_path_length(_turned(graph), target, weight=cost), forwards)


def _forwards(data: Mapping[str, Any]) -> bool:
    return data["part"] != "nic" and bool(data.get("forwards", data["part"] not in ENDPOINTS))


@lru_cache(maxsize=1024)
def _turned(graph: nx.DiGraph[Vertex]) -> nx.DiGraph[Vertex]:
    """The graph with every edge turned round; an edge still carries the name of the edge that it turns."""
    turned: nx.DiGraph[Vertex] = nx.DiGraph()
    turned.add_nodes_from(graph.nodes(data=True))
    turned.add_edges_from((v, u, data) for u, v, data in graph.edges(data=True))
    return turned


def _split(graph: nx.DiGraph[Vertex], ends: tuple[Vertex, Vertex], reach: _Reach) -> Path:
    """Let one unit flow from end to end along all shortest paths, split by the number of cables."""
    source, target = ends
    flow, front = {source: 1.0}, {source}
    taken: dict[tuple[Edge, int], float] = {}
    while front - {target}:
        vertex = max(front, key=lambda v: reach.cost[v])
        front.remove(vertex)
        onward = list(_onward(graph, vertex, reach))
        cables = sum(data["count"] for _, data in onward)
        for w, data in onward:
            key, part = (data["edge"], data["side"]), flow[vertex] * data["count"] / cables
            taken[key] = taken.get(key, 0.0) + part
            flow[w] = flow.get(w, 0.0) + part
            front.add(w)
    edges, sides = zip(*taken)
    network = any(graph.nodes[vertex]["part"] == "nic" for vertex in flow)
    return Path(edges, sides, tuple(taken.values()), _chain(graph, ends, reach), network)


def _onward(graph: nx.DiGraph[Vertex], vertex: Vertex, reach: _Reach) -> Iterator[tuple[Vertex, Any]]:
    """The next vertices on shortest paths, each with what its edge carries."""
    here, cost = reach.cost[vertex], reach.cost
    steps = ((w, data) for w, data in graph[vertex].items() if w in reach.forwards and w in cost)
    return ((w, data) for w, data in steps if cost[w] + data["cost"] == here)


def _chain(graph: nx.DiGraph[Vertex], ends: tuple[Vertex, Vertex], reach: _Reach) -> tuple[Edge, ...]:
    """The edges of one shortest path, in order: what one byte crosses."""
    vertex, chain = ends[0], []
    while vertex != ends[1]:
        vertex, data = next(_onward(graph, vertex, reach))
        chain.append(data["edge"])
    return tuple(chain)


def _ports(cell: nx.DiGraph[str], gpu: Vertex) -> frozenset[Vertex]:
    """The NICs of a GPU, on its side."""
    return frozenset((nic, gpu[1]) for nic in _nics(cell)[gpu[0]])


@lru_cache(maxsize=1024)
def _nics(cell: nx.DiGraph[str]) -> dict[str, list[str]]:
    """The NICs of each GPU: the nearest ones, dealt out among the GPUs that share them, as NCCL does.

    With k nearest NICs shared by g GPUs each takes ceil(k / g) of them (NCCL's NCCL_NETDEVS_POLICY=AUTO).
    """
    nics = [name for name, data in cell.nodes(data=True) if data["part"] == "nic"]
    costs = {nic: _before(doubled(cell, 0), (nic, 0)).cost for nic in nics}
    near = {gpu: _nearest(gpu, costs) for gpu in gpus_of(cell)}
    sharing: dict[tuple[str, ...], list[str]] = {}
    for gpu, names in near.items():
        sharing.setdefault(names, []).append(gpu)
    dealt: dict[str, list[str]] = {}
    for names, gpus in sharing.items():
        each = -(-len(names) // len(gpus))
        for place, gpu in enumerate(gpus):
            first = place * len(names) // len(gpus)
            dealt[gpu] = [names[(first + i) % len(names)] for i in range(each)] if names else []
    return dealt


def _nearest(gpu: str, costs: Mapping[str, Mapping[Vertex, float]]) -> tuple[str, ...]:
    """The NICs with the least cost from this GPU, without passing another NIC."""
    reach = {nic: cost.get((gpu, 0), _FAR) for nic, cost in costs.items()}
    near = min(reach.values(), default=_FAR)
    return tuple(nic for nic, cost in reach.items() if cost == near < _FAR)


def nics_of(cell: nx.DiGraph[str], local: int) -> tuple[str, ...]:
    """Return the NICs through which GPU `local` of a node speaks to the network."""
    return tuple(_nics(cell)[gpus_of(cell)[local]])
