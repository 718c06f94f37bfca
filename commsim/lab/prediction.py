"""What does the model say of an operation in a lab, with or without something wrong?"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from commsim.collectives.algorithms import ALGORITHMS, Group
from commsim.collectives.kinds import ALL_TO_ALL, BROADCAST, REDUCE, Collective
from commsim.collectives.layout import Layout
from commsim.collectives.schedule import Phase, Schedule
from commsim.errors import InputError
from commsim.lab.shaping import HEADER
from commsim.libraries.calibration import NOMINAL
from commsim.libraries.gloo import Gloo, gloo_figures
from commsim.libraries.gloo.exchange import Chance, messages
from commsim.libraries.gloo.flows import crossed, ends
from commsim.libraries.gloo.library import WAYS
from commsim.stragglers.propagation import through

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from commsim.hardware.topology import Topology
    from commsim.lab.faults import Fault
    from commsim.measurement.launch.cases import Groups
    from commsim.units import Seconds

    Floats = NDArray[np.float64]

_TRIALS = {True: 64, False: 4096}
"""Draws of arrivals: where every message is followed, and where rounds are."""


def in_lab(ranks: int, calibration: str | None = None) -> Gloo:
    """Return gloo as so many ranks run it here: they share the processors, and the kernel shapes their links.

    The shapers count a frame without its check sum, preamble and gap.
    """
    known, crowd = gloo_figures(calibration or "gloo"), max(1.0, ranks / len(os.sched_getaffinity(0)))
    costs = {name: getattr(known, name) * crowd for name in ("message", "copy", "reduction")}
    return Gloo(figures=replace(known, framing=HEADER, **costs))


@dataclass(frozen=True, eq=False)
class Prediction:
    """How long an operation takes, from the first rank that comes to the last that leaves: one draw, or many, s."""

    seconds: Floats

    @property
    def typical(self) -> Seconds:
        """The median."""
        return float(np.median(self.seconds))


@dataclass(frozen=True, eq=False)
class Asked:
    """An operation of a size on a machine, by the library; `groups` act at once (none: one group of all)."""

    op: Collective
    size: float
    topology: Topology
    groups: Groups = ()

    @property
    def layout(self) -> Layout:
        """The groups as a layout; InputError for several groups that are not alike in shape."""
        return layout_of(self.groups) if self.groups else Layout.first(self.topology.size)


def predicted(asked: Asked, wrong: Fault, library: Gloo) -> Prediction:
    """Return what the model says with that fault; InputError for ranks that come apart in several groups."""
    seen = replace(asked, topology=wrong.seen(asked.topology))
    sizes = np.array([seen.size, 0.0])
    time, empty = library.time(seen.op, sizes, seen.layout, seen.topology).seconds.tolist()
    if wrong.held and seen.op in (BROADCAST, REDUCE):
        raise InputError(f"lab: {seen.op.name}", type(wrong).__name__, "only operations in which all wait for all tell")
    if not wrong.moves_arrivals:
        return Prediction(np.array([time + wrong.held]))
    if seen.groups:
        raise InputError("lab: fault", type(wrong).__name__, "ranks that come late belong to one group of all")
    followed = seen.op in (BROADCAST, ALL_TO_ALL)
    arrivals = wrong.arrivals(seen.topology.size, _TRIALS[followed], np.random.default_rng(0))
    arrivals = arrivals - arrivals.min(axis=0)
    if not followed:
        return Prediction(_by_rounds(seen, arrivals, time).max(axis=0))
    return Prediction(np.array([_by_messages(seen, each, library) for each in arrivals.T]) + empty)


def _by_rounds(asked: Asked, arrivals: Floats, time: Seconds) -> Floats:
    """When each rank leaves, [rank, trial], each round taking its part of the time: as many bytes as it moves."""
    way = WAYS[asked.op]
    schedule = ALGORITHMS[way.algorithm].schedule(way.op, Group(asked.topology.size))
    rounds = [one for phase in schedule.phases for one in phase.rounds]
    moved = np.array([max(float(each.share.max()) * _fan(each.target) for each in one.transfers) for one in rounds])
    each = time * moved / (moved * [one.repeat for one in rounds]).sum()
    for one, took in zip(rounds, each):
        arrivals = through(Schedule((Phase((one,)),)), arrivals, latency=float(took))
    return arrivals


def _fan(target: NDArray[np.int64]) -> int:
    """How many messages of a round come to the rank that receives most."""
    return int(np.bincount(target.ravel()).max())


def _by_messages(asked: Asked, arrivals: Floats, library: Gloo) -> Seconds:
    """When the last message has arrived; it begins when both its ranks are there."""
    figures = library.figures
    chance = Chance(figures.waiting, figures.unfairness, np.random.default_rng(0))
    sent = messages(asked.op, asked.topology.size, chance, arrivals)
    size = asked.size / figures.payload(both_ways=WAYS[asked.op].both_ways)
    ready = np.maximum(arrivals[sent.source], arrivals[sent.target])
    over = crossed(sent, asked.topology, NOMINAL)
    return float(ends(sent, over, size, ready).max())


def layout_of(groups: Groups) -> Layout:
    """Return groups that act at once as a layout; InputError when they are not one shape, moved on evenly."""
    if len(groups) == 1:
        return Layout.of(groups[0])
    ranks = np.array(groups)
    strides, apart = np.diff(ranks, axis=1), np.diff(ranks[:, 0])
    even = ranks.shape[1] > 1 and (strides == strides[0, 0]).all() and (apart == apart[0]).all()
    if not even or min(strides[0, 0], apart[0], 1 - ranks[0, 0]) < 1:
        raise InputError(
            "lab: groups", [list(one) for one in groups], "groups such as 0,2,4 1,3,5, from rank 0, belong here"
        )
    return Layout(((ranks.shape[1], int(strides[0, 0])),), ((len(groups), int(apart[0])),))
