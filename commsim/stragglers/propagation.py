"""Who is late because of whom?

Max-plus: whoever needs something starts when the last of what it needs is there. One interpreter runs any schedule of
`collectives`, with the times at which ranks arrive as rows of an array [rank, ...trials], s; pipelines are run by
`training.pipeline`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from commsim.errors import InputError
from commsim.stragglers.laws import Normal
from commsim.stragglers.laws.law import Floats, Law, Size
from commsim.stragglers.maxima import Maximum

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from commsim.collectives.schedule import Round, Schedule, Transfer

    Ints = NDArray[np.int64]

Shape = tuple[int, ...]
Noise = float | Floats | Callable[[Shape], Floats]
"""What each of something costs, s: always the same, one for each, or drawn anew for each (given the shape)."""
Receive = Callable[["_State"], None]


def drawn(law: Law, rng: Generator, times: float = 1.0) -> Callable[[Shape], Floats]:
    """Return noise drawn from a law, times a scale (s, where the law is a factor)."""

    def draw(size: Size) -> Floats:
        found = law.sample(rng, size)
        return found if times == 1 else found * times

    return draw


def through(schedule: Schedule, arrivals: Floats, *, work: Noise = 0.0, latency: Noise = 0.0) -> Floats:
    """Return when each rank leaves a collective, [rank, ...trials] in s, given when each arrives.

    In every round a rank that receives waits until the data is there, `latency` [message] after its sender was ready,
    and for what it did before; then `work` [rank] occupies it. What the switches reduce or copy waits for all of it.
    Phases that stream are taken as one chunk, the first to go through.
    """
    state = _State(np.array(arrivals, dtype=float), work, latency)
    if not np.isfinite(state.ready).all():
        raise InputError("arrivals", "not finite", "times in seconds belong here")
    for phase in schedule.phases:
        for one in phase.rounds:
            receive = [_receiving(transfer) for transfer in one.transfers]
            for _ in range(one.repeat):
                state.run(one, receive)
    return state.ready


class _State:
    """When each rank, and each switch, is ready: [rank, ...trials] and [switch, ...trials]."""

    def __init__(self, ready: Floats, work: Noise, latency: Noise) -> None:
        self.ready = ready
        self.switches = ready[:0]
        self.before = ready
        self.work, self.latency = work, latency
        self.reached = np.zeros(len(ready), dtype=bool)

    def run(self, one: Round, receive: list[Receive]) -> None:
        """Let the transfers of a round happen at once, and those that have received work."""
        self.before, self.reached[:] = self.ready.copy(), False
        for each in receive:
            each(self)
        if self.reached.all():
            self.ready += self.noise(self.work, self.ready.shape)
        elif self.reached.any() and one.transfers:
            work = np.broadcast_to(self.noise(self.work, self.ready.shape), self.ready.shape)
            self.ready[self.reached] += work[self.reached]

    def sent(self, source: Ints) -> Floats:
        """Return when the messages of these ranks, [...message], are there."""
        ready = self.before[source]
        shape = ready.shape if callable(self.latency) else ready.shape[: source.ndim]
        return ready + self.noise(self.latency, shape)

    def noise(self, noise: Noise, shape: Shape) -> Floats:
        """Return noise for the shape; one for each of the first axis is spread over the trials."""
        if callable(noise):
            return noise(shape)
        found = np.asarray(noise, dtype=float)
        return found.reshape(found.shape + (1,) * (self.ready.ndim - found.ndim)) if found.ndim else found


def _receiving(transfer: Transfer) -> Receive:
    """What a transfer does to the state, ready to be repeated."""
    source, target = transfer.source, transfer.target
    if transfer.how == "exchange":
        return lambda state: _exchange(state, source)
    if target.size == 1 and target[0, 0] < 0:
        return lambda state: _raise(state, source)
    if source.size == 1 and source[0, 0] < 0:
        return lambda state: _lower(state, target)
    order = np.argsort(target.ravel(), kind="stable")
    sender, receiver = source.ravel()[order], target.ravel()[order]
    first = np.flatnonzero(np.append(True, np.diff(receiver) > 0))
    return lambda state: _unicast(state, sender, receiver[first], first)


def _unicast(state: _State, sender: Ints, receiver: Ints, first: Ints) -> None:
    came = state.sent(sender)
    if first.size < sender.size:
        came = np.maximum.reduceat(came, first, axis=0)
    state.ready[receiver] = np.maximum(state.ready[receiver], came)
    state.reached[receiver] = True


def _exchange(state: _State, members: Ints) -> None:
    """Each member of a row waits for all others of it."""
    for row in members:
        if callable(state.latency):
            everything = state.sent(np.repeat(row[None], row.size, axis=0))  # [receiver, sender, ...trials]
            own = np.arange(row.size)
            everything[own, own] = state.before[row]
            came = everything.max(axis=1)
        else:
            came = np.broadcast_to(state.sent(row).max(axis=0), state.ready[row].shape)
        state.ready[row] = np.maximum(state.ready[row], came)
        state.reached[row] = True


def _raise(state: _State, members: Ints) -> None:
    state.switches = np.stack([state.sent(row).max(axis=0) for row in members])


def _lower(state: _State, members: Ints) -> None:
    for row, ready in zip(members, state.switches):
        down = state.noise(state.latency, state.ready[row].shape)
        state.ready[row] = np.maximum(state.ready[row], ready + down)
        state.reached[row] = True


def between_barriers(law: Law, ranks: int, operations: int, size: int, rng: Generator) -> Floats:
    """Return draws [size] of the time, s, that the slowest of the ranks takes for so many operations in a row.

    One operation is a maximum, drawn directly. A tensor group that waits for its slowest in each operation is the law
    `Maximum(law, group)`; the optimizer steps between two synchronisations of local SGD are operations.
    """
    if operations == 1:
        return Maximum(law, ranks).sample(rng, size)
    found = np.empty(size)
    block = max(1, _DRAWS // ranks)
    for first in range(0, size, block):
        total = np.zeros((min(block, size - first), ranks))
        for _ in range(operations):
            total += law.sample(rng, total.shape)
        found[first : first + block] = total.max(axis=1)
    return found


_DRAWS = 2**18
"""Draws in memory at a time: they stay in cache."""


def near_barriers(law: Law, ranks: int, operations: int) -> float:
    """Return about how long it takes from barrier to barrier, s: exact for one operation, else by the central limit.

    The sum over the operations is taken as normal, which is low for skewed laws and few operations.
    """
    if operations == 1:
        return Maximum(law, ranks).mean
    return operations * law.mean + math.sqrt(operations) * law.sd * Maximum(Normal(), ranks).mean


def steps_of(makespans: Floats, after: Floats | float = 0.0) -> Floats:
    """Return the time of each step, [...trials] in s, of data-parallel pipelines that wait for each other at its end.

    makespans[...trials, replica] are theirs, `after` what follows once all are there.
    """
    found: Floats = makespans.max(axis=-1) + after
    return found


def bucketed(ready: Floats, transfer: Floats) -> Floats:
    """Return when data-parallel replicas are synchronised, [...trials] in s, bucket by bucket behind the backward pass.

    ready[bucket, ...trials, replica] is when a replica has the gradients of a bucket, transfer[bucket] how long it is
    under way; it starts when all replicas are there and the bucket before is through. Whoever is late with early
    buckets is hidden as long as the last one does not wait.
    """
    done = np.full(ready.shape[1:-1], -np.inf)
    for each, seconds in zip(ready.max(axis=-1), transfer):
        done = np.maximum(done, each) + seconds
    return done


def detours(grain: float, every: float, lasting: float, ranks: int, rng: Generator) -> float:
    """Return the slowdown of barriers every `grain` s of work on ranks each interrupted `every` so many s.

    Each interruption lasts `lasting` s, and comes at times of the rank's own (Ferreira, Bridges and Brightwell 2008).
    """
    if not 0 < lasting < every or grain <= 0:
        raise InputError("detours", (grain, every, lasting), "0 < lasting < every, and a positive grain, belong here")
    start = rng.random((_TRIALS, ranks)) * every
    return float((_ends(start, grain, every, lasting) - start).max(axis=1).mean() / grain)


_TRIALS = 64


def _ends(start: Floats, grain: float, every: float, lasting: float) -> Floats:
    """When so much work ends that starts at these times; a detour begins at each multiple of `every`."""
    free = every - lasting
    period, into = np.divmod(start, every)
    done = period * free + np.maximum(into - lasting, 0.0) + grain
    whole, rest = np.divmod(done, free)
    ended: Floats = whole * every + lasting + rest
    return ended
