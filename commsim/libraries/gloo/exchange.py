"""Who waits for whom when gloo's ranks send to each other?

Gloo has one connection for each pair of ranks, and nothing overtakes on it. A rank sends its data only when it has been
told that the other is ready to receive; and that word stands behind whatever the other is sending on the same
connection.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from commsim.collectives.kinds import BROADCAST, Collective
from commsim.libraries.gloo.flows import Messages

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.random import Generator
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

_NONE = -1


@dataclass(frozen=True)
class Chance:
    """What differs from one all-to-all to the next: the order in which ranks come, and how TCP shares links.

    `waiting` is the share of those pairs whose later rank makes the other wait that do so, `unfairness` the standard
    deviation of the logarithm of what connections get of a link.
    """

    waiting: float
    unfairness: float
    rng: Generator


def messages(op: Collective, n: int, chance: Chance, arrivals: Floats | None = None) -> Messages:
    """Return the messages of a broadcast or of an all-to-all, whose ranks come at arrivals[rank] (all at 0)."""
    return broadcast(n) if op is BROADCAST else all_to_all(n, chance, arrivals)


def together(groups: Sequence[Messages], ranks: Ints) -> Messages:
    """Return the messages of several groups, whose members are ranks[group, place], that act at once."""
    before = np.cumsum([0, *(len(one.share) for one in groups)])
    after = [np.where(one.after == _NONE, _NONE, one.after + first) for one, first in zip(groups, before)]
    source = np.concatenate([own[one.source] for one, own in zip(groups, ranks)])
    target = np.concatenate([own[one.target] for one, own in zip(groups, ranks)])
    share, weight = (np.concatenate([getattr(one, name) for one in groups]) for name in ("share", "weight"))
    return Messages(source, target, share, np.concatenate(after), weight)


@lru_cache(maxsize=64)
def broadcast(n: int) -> Messages:
    """Return the messages of a broadcast: down a binomial tree, whose parents send to all their children at once."""
    target = np.arange(1, n)
    parent = target - (1 << np.array([int(place).bit_length() - 1 for place in target], dtype=np.int64))
    return Messages(parent, target, np.ones(n - 1), parent - 1, np.ones(n - 1))


def all_to_all(n: int, chance: Chance, arrivals: Floats | None = None) -> Messages:
    """Return the messages of an all-to-all; those ranks that come at the same time do so in an order drawn at random.

    Rank r sends to r + 1, r + 2, ... and makes itself ready to receive from r - 1, r - 2, ..., in turns. Of a pair, the
    later one finds the other ready and sends at once. When it turns to that receive after the send (the target is at
    most n / 2 places on), the other has to wait for all of the message.
    """
    source, target = np.divmod(np.arange(n * n), n)
    source, target = source[source != target], target[source != target]
    rng, far = chance.rng, (source - target) % n
    order = np.argsort(np.lexsort((rng.random(n), np.zeros(n) if arrivals is None else arrivals)))
    behind = (order[source] < order[target]) & (2 * far <= n) & (rng.random(len(source)) < chance.waiting)
    number = np.full((n, n), _NONE)
    number[source, target] = np.arange(len(source))
    after = np.where(behind, number[target, source], _NONE)
    weight = rng.lognormal(0.0, chance.unfairness, len(source))
    return Messages(source, target, np.full(len(source), 1 / n), after, weight)
