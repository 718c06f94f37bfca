"""How do ranks do a collective together? The table of algorithms.

An algorithm is one decorated function that returns, for an operation and a group, a schedule: data, which one
interpreter (`price`) prices. The textbook formulas are not written down here; they follow, and the tests say so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from commsim.collectives.kinds import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    BROADCAST,
    REDUCE,
    REDUCE_SCATTER,
    SEND_RECV,
    Collective,
)
from commsim.collectives.schedule import Phase, Round, Schedule, everyone, transfer
from commsim.errors import InputError


@dataclass(frozen=True)
class Group:
    """What an algorithm knows of a group: how many ranks, and how many in a row share one scale-up domain (or node)."""

    size: int
    inner: int = 1

    @property
    def outer(self) -> int:
        """How many domains the group touches."""
        return self.size // self.inner


Build = Callable[[Collective, Group], Schedule]
Serves = Callable[[Group], bool]


@dataclass(frozen=True)
class Algorithm:
    """A way of doing some operations: the function that builds its schedule, and which groups it serves."""

    name: str
    ops: tuple[Collective, ...]
    build: Build
    serves: Serves
    needs: str

    def schedule(self, op: Collective, group: Group) -> Schedule:
        """Return the schedule; InputError when the algorithm does not do the operation or does not serve the group."""
        if op not in self.ops:
            raise InputError(f"algorithm {self.name}", op.name, f"it does {', '.join(o.name for o in self.ops)}")
        if not self.serves(group):
            raise InputError(f"algorithm {self.name}", f"{group.size} ranks", f"it needs {self.needs}")
        return self.build(op, group)


ALGORITHMS: dict[str, Algorithm] = {}


def algorithm(name: str, *ops: Collective, serves: Serves = lambda _: True, needs: str = "") -> Callable[[Build], Build]:
    """Enter the decorated function in the table; `needs` says in words what `serves` asks of a group."""

    def enter(build: Build) -> Build:
        ALGORITHMS[name] = Algorithm(name, ops, build, serves, needs)
        return build

    return enter


def serving(op: Collective, group: Group) -> list[Algorithm]:
    """Return the algorithms that do this operation in this group."""
    return [one for one in ALGORITHMS.values() if op in one.ops and one.serves(group)]


@algorithm("ring", ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, BROADCAST, REDUCE)
def ring(op: Collective, group: Group) -> Schedule:
    """Each rank passes a share of 1/n to the next: n - 1 rounds, twice for all-reduce (Patarasuk and Yuan 2009).

    Broadcast and reduce pass the whole through the open ring, chunk by chunk.
    """
    n = group.size
    places = np.arange(n)
    if op in (BROADCAST, REDUCE):
        steps = tuple(Round((transfer(place, place + 1, 1.0),)) for place in places[:-1, None])
        return Schedule((Phase(steps, streaming=True),))
    step = transfer(places, (places + 1) % n, 1 / n)
    return Schedule((Phase((Round((step,), (2 if op is ALL_REDUCE else 1) * (n - 1)),)),))


@algorithm("direct", ALL_TO_ALL, ALL_GATHER, REDUCE_SCATTER)
def direct(_: Collective, group: Group) -> Schedule:
    """Every rank sends every other its share at once."""
    return Schedule((Phase((Round((everyone(1 / group.size),)),)),))


@algorithm("tree", ALL_REDUCE, BROADCAST, REDUCE)
def tree(op: Collective, group: Group) -> Schedule:
    """Up and down a binomial tree, chunk by chunk (Thakur, Rabenseifner and Gropp 2005, section 3)."""
    n = group.size
    down = []
    for step in (1 << bit for bit in range((n - 1).bit_length())):
        senders = np.arange(min(step, n - step))
        down.append((senders, senders + step))
    going_up = [Round((transfer(b, a, 1.0),)) for a, b in reversed(down)]
    going_down = [Round((transfer(a, b, 1.0),)) for a, b in down]
    steps = {BROADCAST.name: going_down, REDUCE.name: going_up}.get(op.name, going_up + going_down)
    return Schedule((Phase(tuple(steps), streaming=True),))


@algorithm("pair", SEND_RECV)
def pair(_: Collective, group: Group) -> Schedule:
    """Each rank sends to the next and receives from the one before, as nccl-tests' sendrecv does."""
    places = np.arange(group.size)
    return Schedule((Phase((Round((transfer(places, (places + 1) % group.size, 1.0),)),)),))
