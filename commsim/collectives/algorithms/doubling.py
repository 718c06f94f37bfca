"""How do ranks exchange with partners at distances that double?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commsim.collectives.algorithms.table import Group, algorithm
from commsim.collectives.kinds import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, REDUCE_SCATTER, Collective
from commsim.collectives.schedule import Schedule, Transfer, rounds, transfer

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]


@algorithm("halving_doubling", ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER)
def halving_doubling(op: Collective, group: Group) -> Schedule:
    """Halve the vector while the distance doubles (reduce-scatter), then the reverse (all-gather).

    Rabenseifner 2004, "Optimization of collective reduction operations"; the largest messages go to the nearest
    places. Beyond a power of two, the places left over hand their data to a neighbour and fetch the result.
    """
    folded = _Folded(group.size, even=op is ALL_REDUCE)
    scatter = folded.exchanges(lambda step: folded.held(2 * step)[folded.core ^ step])
    gather = folded.exchanges(lambda step: folded.held(2 * step))[::-1]
    if op is REDUCE_SCATTER:
        return rounds(*folded.hand_over(1.0), *scatter, *folded.hand_back(1 / group.size))
    if op is ALL_GATHER:
        return rounds(*folded.hand_over(1 / group.size), *gather, *folded.hand_back(1.0))
    return rounds(*folded.hand_over(1.0), *scatter, *gather, *folded.hand_back(1.0))


@algorithm("recursive_doubling", ALL_REDUCE, ALL_GATHER)
def recursive_doubling(op: Collective, group: Group) -> Schedule:
    """Exchange all that one has with a partner at distance 1, 2, 4, ...

    Thakur, Rabenseifner and Gropp 2005, section 4 (allgather, allreduce).
    """
    folded = _Folded(group.size)
    if op is ALL_GATHER:
        doubling = folded.exchanges(folded.gathered)
        return rounds(*folded.hand_over(1 / group.size), *doubling, *folded.hand_back(1.0))
    whole = folded.exchanges(lambda _: np.ones(folded.size))
    return rounds(*folded.hand_over(1.0), *whole, *folded.hand_back(1.0))


@algorithm("bruck", ALL_GATHER, ALL_TO_ALL)
def bruck(op: Collective, group: Group) -> Schedule:
    """log2 n rounds whatever n: to the place 1, 2, 4, ... back, or on, all blocks that have to pass there.

    Bruck et al. 1997, "Efficient algorithms for all-to-all communications"; Thakur, Rabenseifner and Gropp 2005,
    section 4 (allgather, all-to-all). All-to-all sends in round j the blocks whose distance has bit j.
    """
    n, places = group.size, np.arange(group.size)
    steps = [1 << bit for bit in range((n - 1).bit_length())]
    if op is ALL_TO_ALL:
        return rounds(*(transfer(places, (places + step) % n, np.sum(places & step > 0) / n) for step in steps))
    return rounds(*(transfer(places, (places - step) % n, min(step, n - step) / n) for step in steps))


@algorithm("pat", ALL_GATHER, REDUCE_SCATTER)
def pat(op: Collective, group: Group) -> Schedule:
    """log2 n rounds of binomial trees, one rooted at each rank and all moved on alike, the farthest step first.

    Jeaugey 2025, "PAT: a new algorithm for all-gather and reduce-scatter operations at scale" (arXiv 2506.20252): few
    bytes go far and many go near. A reduce-scatter is the reverse.
    """
    n, places = group.size, np.arange(group.size)
    steps = [1 << bit for bit in reversed(range((n - 1).bit_length()))]
    blocks = [len(range(0, n - step, 2 * step)) for step in steps]
    if op is REDUCE_SCATTER:
        return rounds(*(transfer(places, (places - s) % n, b / n) for s, b in zip(steps[::-1], blocks[::-1])))
    return rounds(*(transfer(places, (places + s) % n, b / n) for s, b in zip(steps, blocks)))


class _Folded:
    """A group folded to a power of two: the `core` that exchanges, and the share of the data that each stands for.

    Place 2 i + 1 is folded into place 2 i for as many i as there are places too many; these stand for two blocks,
    unless the data is dealt out among the core alone (`even`).
    """

    def __init__(self, n: int, *, even: bool = False) -> None:
        self.n = n
        self.size = 1 << (n.bit_length() - 1)
        self.core = np.arange(self.size)
        self.extra = n - self.size
        self.place = np.where(self.core < self.extra, 2 * self.core, self.core + self.extra)
        self.blocks = np.full(self.size, 1 / self.size) if even else np.where(self.core < self.extra, 2, 1) / n

    def hand_over(self, share: float) -> list[Transfer]:
        """Return the round in which the places left over send to their neighbour; none for a power of two."""
        even = 2 * np.arange(self.extra)
        return [transfer(even + 1, even, share)] if self.extra else []

    def hand_back(self, share: float) -> list[Transfer]:
        """Return the round in which they receive from it."""
        even = 2 * np.arange(self.extra)
        return [transfer(even, even + 1, share)] if self.extra else []

    def exchanges(self, share: Callable[[int], Floats]) -> list[Transfer]:
        """Return the rounds in which the core exchanges at distance 1, 2, 4, ...: share(distance)[core] each."""
        steps = (1 << bit for bit in range(self.size.bit_length() - 1))
        return [transfer(self.place, self.place[self.core ^ step], share(step)) for step in steps]

    def held(self, period: int) -> Floats:
        """Return the share of the blocks of all members that agree with each one modulo the period."""
        return np.bincount(self.core % period, weights=self.blocks).astype(np.float64)[self.core % period]

    def gathered(self, step: int) -> Floats:
        """Return the share of the blocks that each one holds when all within the distance have exchanged."""
        return np.bincount(self.core // step, weights=self.blocks).astype(np.float64)[self.core // step]
