"""Which links does a transfer cross?

All shortest paths of equal cost share a transfer, and at each vertex it splits in proportion to the parallel cables, as
hardware that sprays over its links does. Cost is latency. GPUs do not forward (unless the part says so), and a transfer
enters the network only through the NICs of its own two GPUs, and only when no path inside the machine exists.

Two GPUs whose nodes meet at level l are routed in the *doubled cell*: every vertex below level l twice (the source's copy
and the target's), every vertex from level l on once. It holds every path that does not pass through a third node.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from commsim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Edge = tuple[str, str]
Vertex = tuple[str, int]
"""A vertex of the doubled cell: its name and its side (0 the source's, 1 the target's)."""
UP, DOWN = 0, 1
_REMEMBERED = 65_536


@dataclass(frozen=True)
class Path:
    """The way of one transfer: which edges of the cell, on whose side, with which share; and one path's edges in order.

    `network` tells whether it leaves the machine through a NIC.
    """

    edges: tuple[Edge, ...]
    sides: tuple[int, ...]
    shares: tuple[float, ...]
    chain: tuple[Edge, ...]
    network: bool = False


PathOf = Callable[["nx.DiGraph[str]", int, int, int], Path]


@dataclass(frozen=True)
class Table:
    """Paths as arrays, one row each, padded to the longest: edge, side, share [path, hop]; hops [path, kind], network."""

    edge: NDArray[np.int64]
    side: NDArray[np.int64]
    share: NDArray[np.float64]
    hops: NDArray[np.int64]
    network: NDArray[np.bool_]


def padded(paths: list[Path], order: Mapping[Edge, int], kind_index: NDArray[np.int64]) -> Table:
    """Return the paths as a Table; `order` numbers the edges of the cell and `kind_index` tells their kinds."""
    width = max((len(path.edges) for path in paths), default=0)
    kinds = int(kind_index.max(initial=-1)) + 1
    edge = np.zeros((len(paths), width), dtype=np.int64)
    side, share = np.zeros_like(edge), np.zeros(edge.shape)
    hops = np.zeros((len(paths), kinds), dtype=np.int64)
    for row, path in enumerate(paths):
        used = len(path.edges)
        edge[row, :used] = [order[pair] for pair in path.edges]
        side[row, :used], share[row, :used] = path.sides, path.shares
        np.add.at(hops[row], [int(kind_index[order[pair]]) for pair in path.chain], 1)
    return Table(edge, side, share, hops, np.array([path.network for path in paths], dtype=np.bool_))


def on_side(path: Path, side: int) -> Path:
    """Return what of a path lies on the source's (0) or the target's (1) side; the chain stays whole."""
    kept = [i for i, where in enumerate(path.sides) if where == side]
    return Path(*(tuple(values[i] for i in kept) for values in (path.edges, path.sides, path.shares)), path.chain, path.network)


@lru_cache(maxsize=_REMEMBERED)
def between(cell: nx.DiGraph[str], a: int, b: int, level: int) -> Path:
    """Return the way from GPU `a` to GPU `b` of nodes that meet at `level`. InputError when there is none."""
    gpus = _gpus(cell)
    source, target = (gpus[a], 0), (gpus[b], 1 if level else 0)
    if source == target:
        return Path((), (), (), ())
    ends = (source, target)
    inside, own = frozenset[Vertex](), frozenset((nic, side) for gpu, side in ends for nic in _nics(cell)[gpu])
    found = _split(_doubled(cell, level), ends, inside) or _split(_doubled(cell, level), ends, own)
    if found is None:
        raise InputError("topology", f"{gpus[a]} and {gpus[b]}", "no path joins these two GPUs; a link is missing")
    return found


@lru_cache(maxsize=1024)
def switched(direction: int, everyone: tuple[int, ...]) -> PathOf:
    """Return the function that finds the way between a GPU and the switch that reduces for `everyone` (GPUs of a node).

    `direction` is `UP` (to the switch) or `DOWN`.
    """

    @lru_cache(maxsize=_REMEMBERED)
    def path(cell: nx.DiGraph[str], local: int, _: int, level: int) -> Path:
        switch = (reducing_switch(cell, everyone, level), 0)
        gpu = (_gpus(cell)[local], 0)
        # The way down is found from the GPU as well, on the graph turned round.
        graph = _doubled(cell, 0) if direction == UP else _backwards(_doubled(cell, 0))
        found = _split(graph, (gpu, switch), _ports(cell, gpu[0]))
        if found is None:
            raise InputError("in-network reduction", gpu[0], f"no path joins it to {switch[0]}")
        return found

    return path


@lru_cache(maxsize=1024)
def reducing_switch(cell: nx.DiGraph[str], everyone: tuple[int, ...], level: int) -> str:
    """Return the nearest switch at `level` or above that reduces and that all these GPUs reach. InputError if none."""
    graph, gpus = _doubled(cell, 0), _gpus(cell)
    farthest: dict[str, float] = {}
    for name, data in cell.nodes(data=True):
        if data.get("reduces") and data["tier"] >= level:
            reach = [_reach(graph, (gpus[local], 0), (name, 0), _ports(cell, gpus[local])) for local in everyone]
            farthest[name] = max(reach)
    if not farthest or min(farthest.values()) == np.inf:
        raise InputError("in-network reduction", f"level {level}", "no switch that reduces joins all members there")
    return min(farthest, key=lambda name: farthest[name])


def _reach(graph: nx.DiGraph[Vertex], gpu: Vertex, switch: Vertex, nics: frozenset[Vertex]) -> float:
    return _distances(graph, (gpu, switch), nics).get(gpu, np.inf)


@lru_cache(maxsize=1024)
def _gpus(cell: nx.DiGraph[str]) -> list[str]:
    return [name for name, part in cell.nodes(data="part") if part in ("gpu", "lpu")]


@lru_cache(maxsize=1024)
def _doubled(cell: nx.DiGraph[str], level: int) -> nx.DiGraph[Vertex]:
    """The cell with the vertices below `level` drawn for the source's and for the target's node."""
    doubled: nx.DiGraph[Vertex] = nx.DiGraph()
    tier = dict(cell.nodes(data="tier"))

    def on(name: str, side: int) -> Vertex:
        return (name, side if tier[name] < level else 0)

    for side in (0, 1) if level else (0,):
        doubled.add_nodes_from((on(name, side), data) for name, data in cell.nodes(data=True))
        for u, v, data in cell.edges(data=True):
            if not data.get("peers"):
                doubled.add_edge(on(u, side), on(v, side), **_traversal(u, v, side, data))
            elif tier[u] + 1 == level:
                doubled.add_edge((u, side), (v, 1 - side), **_traversal(u, v, side, data))
    return doubled


def _traversal(u: str, v: str, side: int, data: Mapping[str, Any]) -> dict[str, Any]:
    """What an edge of the doubled cell carries; the cost is whole picoseconds, so that equal paths are exactly equal."""
    cost = round(float(data["link"].latency) * 1e12) + 1
    return {"edge": (u, v), "side": side, "cost": cost, "count": data.get("count", 1)}


def _distances(graph: nx.DiGraph[Vertex], ends: tuple[Vertex, Vertex], nics: frozenset[Vertex]) -> dict[Vertex, float]:
    """The cost to the second end from every vertex that the transfer may pass.

    Other GPUs do not forward (unless the part says so), and of the NICs only its own, `nics`, are its way.
    """
    parts = graph.nodes

    def passable(vertex: Vertex) -> bool:
        data = parts[vertex]
        own = vertex in nics if data["part"] == "nic" else data.get("forwards", data["part"] != "gpu")
        return bool(own) or vertex in ends

    def cost(_: Vertex, before: Vertex, data: Mapping[str, Any]) -> int | None:
        return int(data["cost"]) if passable(before) else None

    return dict(nx.single_source_dijkstra_path_length(_backwards(graph), ends[1], weight=cost))


@lru_cache(maxsize=1024)
def _backwards(graph: nx.DiGraph[Vertex]) -> nx.DiGraph[Vertex]:
    """The graph with every edge turned round; an edge still carries the name of the edge that it turns."""
    turned: nx.DiGraph[Vertex] = nx.DiGraph()
    turned.add_nodes_from(graph.nodes(data=True))
    turned.add_edges_from((v, u, data) for u, v, data in graph.edges(data=True))
    return turned


def _split(graph: nx.DiGraph[Vertex], ends: tuple[Vertex, Vertex], nics: frozenset[Vertex]) -> Path | None:
    """Let one unit flow from end to end along all shortest paths, split by the number of cables; None without a path."""
    source, target = ends
    distance = _distances(graph, ends, nics)
    if source not in distance:
        return None
    flow, front = {source: 1.0}, {source}
    taken: dict[tuple[Edge, int], float] = {}
    while front - {target}:
        vertex = max(front, key=lambda v: distance[v])
        front.remove(vertex)
        onward = _onward(graph, vertex, distance)
        cables = sum(data["count"] for _, data in onward)
        for w, data in onward:
            key, part = (data["edge"], data["side"]), flow[vertex] * data["count"] / cables
            taken[key] = taken.get(key, 0.0) + part
            flow[w] = flow.get(w, 0.0) + part
            front.add(w)
    edges, sides = zip(*taken, strict=True)
    network = any(graph.nodes[vertex]["part"] == "nic" for vertex in flow)
    return Path(edges, sides, tuple(taken.values()), _chain(graph, ends, distance), network)


def _onward(graph: nx.DiGraph[Vertex], vertex: Vertex, distance: Mapping[Vertex, float]) -> list[tuple[Vertex, Any]]:
    """The next vertices on shortest paths, each with what its edge carries."""
    here = distance[vertex]
    return [(w, data) for w, data in graph[vertex].items() if w in distance and here == data["cost"] + distance[w]]


def _chain(graph: nx.DiGraph[Vertex], ends: tuple[Vertex, Vertex], distance: Mapping[Vertex, float]) -> tuple[Edge, ...]:
    """The edges of one shortest path, in order: what one byte crosses."""
    vertex, chain = ends[0], []
    while vertex != ends[1]:
        vertex, data = _onward(graph, vertex, distance)[0]
        chain.append(data["edge"])
    return tuple(chain)


def _ports(cell: nx.DiGraph[str], gpu: str) -> frozenset[Vertex]:
    """The NICs of a GPU as vertices of the cell."""
    return frozenset((nic, 0) for nic in _nics(cell)[gpu])


@lru_cache(maxsize=1024)
def _nics(cell: nx.DiGraph[str]) -> dict[str, list[str]]:
    """The NICs of each GPU: the nearest ones, dealt out among the GPUs that share them, as NCCL does.

    With k nearest NICs shared by g GPUs each takes ceil(k / g) of them (facts: NCCL's NCCL_NETDEVS_POLICY=AUTO).
    """
    nics = [name for name, part in cell.nodes(data="part") if part == "nic"]
    near = {gpu: _nearest(cell, gpu, nics) for gpu in _gpus(cell)}
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


def _nearest(cell: nx.DiGraph[str], gpu: str, nics: list[str]) -> tuple[str, ...]:
    """The NICs with the least cost from this GPU, without passing another NIC."""
    graph = _doubled(cell, 0)
    reach = {nic: _reach(graph, (gpu, 0), (nic, 0), frozenset()) for nic in nics}
    near = min(reach.values(), default=np.inf)
    return tuple(nic for nic, cost in reach.items() if cost == near < np.inf)


def nics_of(cell: nx.DiGraph[str], local: int) -> tuple[str, ...]:
    """Return the NICs through which GPU `local` of a node speaks to the network."""
    return tuple(_nics(cell)[_gpus(cell)[local]])
