"""How long do messages take that share links, and of which some wait for others?

A fluid: every message that is under way gets its share of the links that it crosses by its weight (weighted max-min
fairness, Bertsekas and Gallager 1992, section 6.5.2); whenever one ends, those that waited for it begin, and all shares
change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from commsim.libraries.calibration import rates

if TYPE_CHECKING:
    from commsim.hardware.topology import Topology
    from commsim.libraries.calibration import Case

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_NONE = -1
_DONE = 1e-12


@dataclass(frozen=True, eq=False)
class Messages:
    """Messages between ranks, source[m] -> target[m] of share[m] of the size; m begins when after[m] ended (-1: now).

    Where they share a link, each gets a part of it by its weight[m].
    """

    source: Ints
    target: Ints
    share: Floats
    after: Ints
    weight: Floats


@dataclass(frozen=True, eq=False)
class Crossed:
    """Which links messages cross: share[m, link] of each that goes over a link, and the room[link] for it, B/s."""

    share: Floats
    room: Floats


def crossed(messages: Messages, topology: Topology, case: Case) -> Crossed:
    """Return which links of a machine the messages cross; those that none crosses are left out."""
    routes, numbering = topology.route(messages.source, messages.target), topology.numbering
    used, place = np.unique(routes.links, return_inverse=True)
    share = np.zeros((len(messages.source), len(used)))
    np.add.at(share, (np.arange(len(share))[:, None], place.reshape(routes.links.shape)), routes.share)
    edge = np.searchsorted(numbering.offset, used, side="right") - 1
    bandwidth, _ = rates(topology.kinds, case)
    return Crossed(share, bandwidth[numbering.kind_index[edge]] * numbering.count[edge])


def ends(messages: Messages, over: Crossed, size: float = 1.0, ready: Floats | None = None) -> Floats:
    """Return when each message ends, [m] in s, for a size in bytes; it begins at ready[m] (0) at the earliest."""
    left, ended, now = messages.share * size, np.full(len(messages.share), np.inf), 0.0
    ready = np.zeros(len(left)) if ready is None else ready
    while (going := np.isinf(ended)).any():
        free = going & ((messages.after == _NONE) | ~going[messages.after])
        under_way = free & (ready <= now)
        rate = fair(over.share * under_way[:, None], messages.weight, over.room)
        needed = np.divide(left, rate, out=np.full(len(left), np.inf), where=rate > 0)
        step = min(float(needed.min()), float(ready[free & ~under_way].min(initial=np.inf)) - now)
        now, left = now + step, left - rate * step
        ended[under_way & (left <= _DONE * messages.share * size)] = now
    return ended


def fair(share: Floats, weight: Floats, room: Floats) -> Floats:
    """Return the rate of each message, [m] in B/s: nobody gets more unless someone who has no more would get less.

    Link by link, the fullest first: what crosses it gets its part of what is left there. `share`[m, link] of a message
    that is not under way is 0.
    """
    rate, open_, room = np.zeros(len(share)), share.any(axis=1), room.copy()
    weighed = share * weight[:, None]
    while open_.any():
        wanted = weighed[open_].sum(axis=0)
        each = np.divide(room, wanted, out=np.full(len(room), np.inf), where=wanted > 0)
        fullest = int(np.argmin(each))
        held = open_ & (share[:, fullest] > 0)
        rate[held] = each[fullest] * weight[held]
        room = np.maximum(room - each[fullest] * weighed[held].sum(axis=0), 0.0)
        open_ &= ~held
    return rate
