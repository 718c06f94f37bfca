"""Does a schedule deliver? Schedules carry shares, not named data, so what can be delivered is a question of flow.

*Gathering* (all-gather, broadcast): data starts at some vertices, and everyone is to end with all of it. That is
possible exactly when, to each rank alone, everything can flow from where it starts, through the messages in their order
(Edmonds 1973 on disjoint arborescences; Bang-Jensen, Frank and Jackson 1995 for vertices that may keep what they have):
a maximum flow in the graph whose vertices are (rank, time). *Reducing* (reduce-scatter, reduce) is gathering with time
and direction reversed: where data was copied it is added. An all-reduce reduces to somewhere and gathers from there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import networkx as nx
import numpy as np
from networkx.algorithms.flow import build_residual_network, shortest_augmenting_path

from commsim.collectives.schedule import SWITCH, Schedule, Transfer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]

Vertex = int | frozenset[int]
"""A place of the group, or the switch that joins these places."""
_PARTS = 10**9


@dataclass(frozen=True)
class Message:
    """So much of the size from one vertex to another."""

    source: Vertex
    target: Vertex
    share: float


Step = list[Message]
"""Messages that move at the same time."""


def steps(schedule: Schedule) -> list[Step]:
    """Return what one byte may take, step by step: the rounds in order, their repetitions written out.

    Repetitions that stream carry one chunk each, so together as many as there are for every chunk.
    """
    found: list[Step] = []
    for phase in schedule.phases:
        for one in phase.rounds:
            chunks = one.repeat if phase.streaming else 1
            found += [[m for each in one.transfers for m in _messages(each, chunks)]] * one.repeat
    return found


def _messages(one: Transfer, times: float) -> Iterator[Message]:
    share = (one.share * times).tolist()
    if one.how == "exchange":
        pairs = ((a, b) for row in one.source.tolist() for a in row for b in row if a != b)
        yield from (Message(a, b, share[0]) for a, b in pairs)
    elif one.target is SWITCH:
        yield from (Message(a, frozenset(row), share[0]) for row in one.source.tolist() for a in row)
    elif one.source is SWITCH:
        yield from (Message(frozenset(row), b, share[0]) for row in one.target.tolist() for b in row)
    else:
        rows = zip(one.source.tolist(), one.target.tolist())
        yield from (Message(a, b, s) for a_row, b_row in rows for a, b, s in zip(a_row, b_row, share) if a != b)


def mirrored(moved: Sequence[Step]) -> list[Step]:
    """Return the steps in reversed order with every message turned round."""
    return [[Message(m.target, m.source, m.share) for m in step] for step in reversed(moved)]


def gathers(moved: Sequence[Step], have: Mapping[Vertex, float], ranks: Sequence[int]) -> bool:
    """Tell whether these ranks can end with everything when each vertex v starts with have[v]."""
    graph: nx.DiGraph[object] = nx.DiGraph()
    for vertex, share in have.items():
        _add(graph, "all", (vertex, 0), share)
    graph.add_nodes_from((rank, len(moved)) for rank in ranks)
    ends = {end for step in moved for m in step for end in (m.source, m.target)} | set(have) | set(ranks)
    for time, step in enumerate(moved):
        graph.add_edges_from(((vertex, time), (vertex, time + 1)) for vertex in ends)
        for m in step:
            _add(graph, (m.source, time), (m.target, time + 1), m.share)
    wanted = _PARTS * sum(have.values()) * (1 - 1e-6)
    residual = build_residual_network(graph, "capacity")
    flows = (
        nx.maximum_flow_value(graph, "all", (rank, len(moved)), flow_func=shortest_augmenting_path, residual=residual)
        for rank in ranks
    )
    return all(flow >= wanted for flow in flows)


def _add(graph: nx.DiGraph[object], a: object, b: object, share: float) -> None:
    """Add capacity, in whole parts so that the flow is exact."""
    before = graph.edges[a, b]["capacity"] if graph.has_edge(a, b) else 0
    graph.add_edge(a, b, capacity=before + round(share * _PARTS))


def heard(moved: Sequence[Step], n: int) -> Bools:
    """Return heard[rank, origin]: whether anything of the origin reaches the rank."""
    switches = {end for step in moved for m in step for end in (m.source, m.target) if isinstance(end, frozenset)}
    number: dict[Vertex, int] = {vertex: index for index, vertex in enumerate([*range(n), *switches])}
    known = np.eye(len(number), n, dtype=bool)
    for step in moved:
        ends = np.array([(number[m.source], number[m.target]) for m in step if m.share > 0]).reshape(-1, 2)
        np.logical_or.at(known, ends[:, 1], known[ends[:, 0]])
    return known[:n]


def carried(moved: Sequence[Step], n: int) -> tuple[Floats, Floats]:
    """Return what each rank sends and what it receives in all, in sizes."""
    out, into = np.zeros(n), np.zeros(n)
    for m in (m for step in moved for m in step):
        if isinstance(m.source, int):
            out[m.source] += m.share
        if isinstance(m.target, int):
            into[m.target] += m.share
    return out, into


def sums(moved: Sequence[Step], n: int) -> bool:
    """Tell whether messages of everything that one has so far add up to everyone's sum, with nothing counted twice.

    A rank adds what it receives, unless that holds all that it has already: then it takes it.
    """
    held = [frozenset((rank,)) for rank in range(n)]
    for step in moved:
        before = list(held)
        for m in step:
            if m.share != 1.0 or isinstance(m.source, frozenset) or isinstance(m.target, frozenset):
                return False
            more = before[m.source]
            if held[m.target] & more and not held[m.target] <= more:
                return False
            held[m.target] |= more
    return all(len(each) == n for each in held)


def exchanges(moved: Sequence[Step], n: int) -> bool:
    """Tell whether the block of each pair of ranks arrives, when each message carries as many blocks as its share says.

    It takes those that gain most: for which the fewest later messages lead to the target, against where they are.
    """
    at = np.repeat(np.arange(n), n)  # where the block of [origin, target] is
    target = np.tile(np.arange(n), n)
    for step, later in zip(moved, _distances(moved, n)[1:]):
        goes = at.copy()
        for a, b, share in _pairs(step):
            here = np.flatnonzero((at == a) & (goes == at) & np.isfinite(later[b, target]))
            gain = later[a, target[here]] - later[b, target[here]]
            taken = here[np.argsort(-gain, kind="stable")][: round(share * n)]
            if len(taken) != round(share * n):
                return False
            goes[taken] = b
        at = goes
    return bool((at == target).all())


def _pairs(step: Step) -> Iterator[tuple[int, int, float]]:
    """The messages of a step that knows no switches."""
    for m in step:
        assert isinstance(m.source, int)
        assert isinstance(m.target, int)
        yield m.source, m.target, m.share


def _distances(moved: Sequence[Step], n: int) -> list[Floats]:
    """For each step, and after the last: how many messages of this and of later steps lead from[.., to]."""
    found = [np.where(np.eye(n, dtype=bool), 0.0, np.inf)]
    for step in reversed(moved):
        nearest = found[-1].copy()
        for a, b, _ in _pairs(step):
            nearest[a] = np.minimum(nearest[a], 1 + found[-1][b])
        found.append(nearest)
    return found[::-1]
