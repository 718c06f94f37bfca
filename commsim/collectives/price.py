"""What does a schedule ask of the machine's links?

A price is counts, not seconds: how many links of each kind one byte crosses one after another, and which share of the
bytes the busiest link of each kind carries. Time comes afterwards (see `libraries`), so that sizes, calibrations and the
low and high of uncertain figures are numpy axes on one price.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
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

    `hops`[stage, kind]: links of that kind that one byte crosses in sequence. `steps`[stage, 2]: messages that follow one
    another, inside the machine and through the network. `load`[stage, kind]: bytes on the busiest
    link of that kind, per byte of the collective's size. `depth`[stage]: rounds that are under way at once (what fills the
    pipeline). `streaming`: the stages overlap chunk by chunk. `busiest`[stage, kind]: the edge of the cell that carries
    the load. `even`: False when several groups' maxima were added, so that the load is an upper bound.
    """

    kinds: tuple[Link, ...]
    hops: Floats
    steps: Floats
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
    stages = [_together([rows[stage] for rows in priced if stage < len(rows)]) for stage in range(max(map(len, priced)))]
    busiest = [topology.numbering.busiest(stage.load, len(topology.kinds)) for stage in stages]
    return Cost(
        kinds=topology.kinds,
        hops=np.array([stage.way.hops for stage in stages]),
        steps=np.array([stage.way.steps for stage in stages]),
        load=np.array([load for load, _ in busiest]),
        depth=np.array([stage.depth for stage in stages], dtype=np.float64),
        streaming=all(schedule.streaming for schedule, _ in acting),
        busiest=tuple(tuple(map(topology.numbering.name, edges)) for _, edges in busiest),
    )


@dataclass(frozen=True, eq=False)
class _Way:
    """What one byte passes on its way: hops[kind] of links, steps[inside, network] of messages; `latency` orders ways."""

    hops: Floats
    steps: Floats
    latency: float

    def times(self, repeat: float) -> _Way:
        return _Way(self.hops * repeat, self.steps * repeat, self.latency * repeat)

    def then(self, other: _Way) -> _Way:
        return _Way(self.hops + other.hops, self.steps + other.steps, self.latency + other.latency)


@dataclass(frozen=True, eq=False)
class _Stage:
    """One stage of a schedule: the load on every link, the longest way, the rounds under way at once."""

    load: Floats
    way: _Way
    depth: int


def _together(stages: list[_Stage]) -> _Stage:
    """The stage in which several schedules act at once: loads add up, the longest way counts."""
    load = np.sum([stage.load for stage in stages], axis=0)
    way = max((stage.way for stage in stages), key=lambda way: way.latency)
    return _Stage(load, way, max(stage.depth for stage in stages))


def _stages(schedule: Schedule, ranks: Ints, topology: Topology) -> list[_Stage]:
    return [stage for phase in schedule.phases for stage in _phase(phase, ranks, topology)]


def _phase(phase: Phase, ranks: Ints, topology: Topology) -> list[_Stage]:
    """One stage for each round, or one for all of them when they stream into each other."""
    stages = [_round(one, ranks, topology) for one in phase.rounds]
    if not phase.streaming or not stages:
        return stages
    load = np.sum([stage.load for stage in stages], axis=0)
    return [_Stage(load, reduce(_Way.then, (stage.way for stage in stages)), sum(one.repeat for one in phase.rounds))]


def _round(one: Round, ranks: Ints, topology: Topology) -> _Stage:
    done = [_transfer(transfer, ranks, topology, cyclic=one.repeat > 1) for transfer in one.transfers]
    load = np.sum([load for load, _ in done], axis=0)
    way = max((way for _, way in done), key=lambda way: way.latency)
    return _Stage(load * one.repeat, way.times(one.repeat), 1)


def _transfer(one: Transfer, ranks: Ints, topology: Topology, *, cyclic: bool) -> tuple[Floats, _Way]:
    """The load on every link and the way of one byte: the longest, or the mean one of a round that repeats.

    When ranks pass on what they got, a byte takes each way in turn (a ring crosses the network once a node, not in every
    round), so what it meets in all rounds is the repeats times the mean.
    """
    if one.complete:
        load, hops, network = exchange(topology, ranks, float(one.share[0]))
        return load, _way(hops, network, topology)
    if (one.source < 0).all() or (one.target < 0).all():
        return _switched(one, ranks, topology)
    source, target = (ranks[:, end].reshape(-1) for end in (one.source, one.target))
    share = np.broadcast_to(one.share, (len(ranks), len(one.share))).reshape(-1)
    routes = topology.route(source, target)
    return _load(routes, share, topology), _mean(routes, ranks, topology) if cyclic else _longest(routes, topology)


def _switched(one: Transfer, ranks: Ints, topology: Topology) -> tuple[Floats, _Way]:
    """A transfer that ends or begins in the switches which join the group."""
    down = bool((one.source < 0).all())
    members = ranks[:, one.target if down else one.source]
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


def _latency(topology: Topology) -> Floats:
    return np.array([float(link.latency) for link in topology.kinds])


def _way(hops: Floats, network: float, topology: Topology) -> _Way:
    return _Way(hops, np.array([1.0 - network, network]), float(hops @ _latency(topology)))


def _longest(routes: Routes, topology: Topology) -> _Way:
    if not len(routes.hops):
        return _way(np.zeros(len(topology.kinds)), 0.0, topology)
    longest = int(np.argmax(routes.hops @ _latency(topology)))
    return _way(routes.hops[longest].astype(np.float64), float(routes.network[longest]), topology)


def _mean(routes: Routes, ranks: Ints, topology: Topology) -> _Way:
    """The mean way within a group, of the group for which it is longest."""
    hops = routes.hops.reshape(len(ranks), -1, routes.hops.shape[1]).mean(axis=1)
    longest = int(np.argmax(hops @ _latency(topology)))
    return _way(hops[longest], float(routes.network.reshape(len(ranks), -1)[longest].mean()), topology)
