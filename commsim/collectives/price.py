"""What does a schedule ask of the machine's links?

A price is counts, not seconds: how many links of each kind one byte crosses one after another, and which share of the
bytes the busiest link of each kind carries. Time comes afterwards (see `libraries`), so that sizes, calibrations and the
low and high of uncertain figures are numpy axes on one price.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from commsim.collectives.schedule import Phase, Round, Schedule, Transfer
from commsim.hardware.exchange import exchange
from commsim.hardware.topology import Link, Routes, Topology

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commsim.collectives.layout import Layout

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Cost:
    """What a collective asks of the links, one row for each stage that follows another.

    `hops`[stage, kind]: links of that kind that one byte crosses in sequence. `load`[stage, kind]: bytes on the busiest
    link of that kind, per byte of the collective's size. `depth`[stage]: rounds that are under way at once (what fills the
    pipeline). `streaming`: the stages overlap chunk by chunk. `busiest`[stage, kind]: the edge of the cell that carries
    the load. `even`: False when several groups' maxima were added, so that the load is an upper bound.
    """

    kinds: tuple[Link, ...]
    hops: Floats
    load: Floats
    depth: Floats
    streaming: bool
    busiest: tuple[tuple[str, ...], ...]
    even: bool = True


def price(acting: Sequence[tuple[Schedule, Layout]], topology: Topology) -> Cost:
    """Return what the schedules, which act together on their layouts, ask of the links.

    Loads of different schedules add up stage by stage. InputError when a rank is outside the machine, when no path joins
    two ranks, and when a switch cannot reduce.
    """
    units = tuple(span * topology.gpus_per_node for span in topology.spans)
    layouts = [layout.folded(units) if len(acting) == 1 else layout for _, layout in acting]
    priced = [_stages(schedule, layout.ranks(), topology) for (schedule, _), layout in zip(acting, layouts)]
    stages = max(map(len, priced))
    load = np.zeros((stages, len(topology.kinds)))
    hops, depth, busiest = np.zeros_like(load), np.zeros(stages), []
    for stage in range(stages):
        present = [rows[stage] for rows in priced if stage < len(rows)]
        total = np.sum([row.load for row in present], axis=0)
        load[stage], edges = topology.numbering.busiest(total, len(topology.kinds))
        hops[stage] = np.max([row.hops for row in present], axis=0)
        depth[stage] = max(row.depth for row in present)
        busiest.append(tuple(topology.numbering.name(edge) for edge in edges))
    streaming = all(schedule.streaming for schedule, _ in acting)
    return Cost(topology.kinds, hops, load, depth, streaming, tuple(busiest))


@dataclass(frozen=True, eq=False)
class _Stage:
    """One stage of a schedule: the load on every link, the hops by kind, the rounds under way at once."""

    load: Floats
    hops: Floats
    depth: int


def _stages(schedule: Schedule, ranks: Ints, topology: Topology) -> list[_Stage]:
    return [stage for phase in schedule.phases for stage in _phase(phase, ranks, topology)]


def _phase(phase: Phase, ranks: Ints, topology: Topology) -> list[_Stage]:
    """One stage for each round, or one for all of them when they stream into each other."""
    stages = [_round(one, ranks, topology) for one in phase.rounds]
    if not phase.streaming or not stages:
        return stages
    load, hops = (np.sum([getattr(stage, name) for stage in stages], axis=0) for name in ("load", "hops"))
    return [_Stage(load, hops, sum(one.repeat for one in phase.rounds))]


def _round(one: Round, ranks: Ints, topology: Topology) -> _Stage:
    load, hops = np.zeros(topology.numbering.total), np.zeros(len(topology.kinds))
    latency = np.array([float(link.latency) for link in topology.kinds])
    for transfer in one.transfers:
        more, crossed = _transfer(transfer, ranks, topology)
        load += more
        hops = max(hops, crossed, key=lambda h: float(h @ latency))
    return _Stage(load * one.repeat, hops * one.repeat, 1)


def _transfer(one: Transfer, ranks: Ints, topology: Topology) -> tuple[Floats, Floats]:
    """The load on every link and the hops of the longest way."""
    if one.complete:
        return exchange(topology, ranks, float(one.share[0]))
    if (one.source < 0).all() or (one.target < 0).all():
        return _switched(one, ranks, topology)
    source, target = (ranks[:, end].reshape(-1) for end in (one.source, one.target))
    share = np.broadcast_to(one.share, (len(ranks), len(one.share))).reshape(-1)
    routes = topology.route(source, target)
    return _load(routes, share, topology), _longest(routes, topology)


def _switched(one: Transfer, ranks: Ints, topology: Topology) -> tuple[Floats, Floats]:
    """A transfer that ends or begins in the switches which join the group."""
    down = bool((one.source < 0).all())
    ends = one.target if down else one.source
    members = ranks[:, ends]
    node, _ = topology.locate(ranks)
    level = int(topology.level(node.min(axis=1), node.max(axis=1)).max())
    routes = (topology.from_switch if down else topology.to_switch)(members.reshape(-1), level)
    share = np.broadcast_to(one.share, members.shape).reshape(-1)
    if one.how == "unicast":
        return _load(routes, share, topology), _longest(routes, topology)
    return _shared_load(routes, share, members.shape, topology), _longest(routes, topology)


def _load(routes: Routes, share: Floats, topology: Topology) -> Floats:
    weights = routes.share * share[:, None]
    return np.bincount(routes.links.ravel(), weights=weights.ravel(), minlength=topology.numbering.total)


def _shared_load(routes: Routes, share: Floats, shape: tuple[int, ...], topology: Topology) -> Floats:
    """The load when members of one group share what crosses a link: reduced on the way up, copied on the way down."""
    total = topology.numbering.total
    group = np.repeat(np.arange(shape[0]), shape[1])[:, None]
    weights = (routes.share * share[:, None]).ravel()
    used = weights > 0
    once, which = np.unique((group * total + routes.links).ravel()[used], return_inverse=True)
    largest = np.zeros(len(once))
    np.maximum.at(largest, which, weights[used])
    return np.bincount(once % total, weights=largest, minlength=total)


def _longest(routes: Routes, topology: Topology) -> Floats:
    latency = np.array([float(link.latency) for link in topology.kinds])
    if not len(routes.hops):
        return np.zeros(len(latency))
    return routes.hops[int(np.argmax(routes.hops @ latency))].astype(np.float64)

