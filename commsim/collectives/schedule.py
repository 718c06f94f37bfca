"""What moves, from whom to whom, in which order?

A schedule is phases one after another; a phase is rounds, one after another or streaming into each other; a round is
transfers that happen together. Ranks are places in the group (0 .. n-1), shares are parts of the collective's size.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
SWITCH = np.array([[-1]], dtype=np.int64)
"""The far end of a transfer that stops in the network: the switch that joins the group."""
How = Literal["unicast", "exchange", "reduce", "multicast"]


@dataclass(frozen=True, eq=False)
class Transfer:
    """Messages between places of the group: source[group, t] -> target[group, t], each `share`[t] of the size.

    Several groups (rows) do the same at once. `exchange`: every member of a row sends `share` to every other one of it.
    Either end may be `SWITCH`; then `reduce` adds in the switches what the members of a row send up, so that a link
    carries it once however many are below it, `multicast` copies it on the way down, and `unicast` does neither.
    """

    source: Ints
    target: Ints
    share: Floats
    how: How = "unicast"

    def on(self, groups: Ints, scale: float) -> Transfer:
        """Return the transfer done at once by several groups, groups[group, place], with sizes times `scale`."""
        source, target = (_within(groups, end) for end in (self.source, self.target))
        return replace(self, source=source, target=target, share=self.share * scale)


@dataclass(frozen=True, eq=False)
class Round:
    """Transfers that happen together, `repeat` times one after another.

    `relayed`: what comes in with one repetition goes out with the next, as in a ring, so that a byte crosses the mean
    way of a transfer each time and nobody waits for the longest.
    """

    transfers: tuple[Transfer, ...] = ()
    repeat: int = 1
    relayed: bool = False


@dataclass(frozen=True, eq=False)
class Phase:
    """Rounds one after another, or `streaming`: cut into chunks, all rounds are under way at once."""

    rounds: tuple[Round, ...]
    streaming: bool = False


@dataclass(frozen=True, eq=False)
class Schedule:
    """Phases one after another, or `streaming` into each other chunk by chunk, so that all are under way at once."""

    phases: tuple[Phase, ...]
    streaming: bool = False

    def then(self, other: Schedule) -> Schedule:
        """Return this schedule followed by another; streaming when one of them is."""
        return Schedule(self.phases + other.phases, self.streaming or other.streaming)

    def on(self, groups: Ints, scale: float = 1.0) -> Schedule:
        """Return the schedule done by several groups of places at once: groups[group, place], sizes times `scale`."""
        return replace(self, phases=tuple(_phase_on(phase, groups, scale) for phase in self.phases))


NOTHING = Schedule((Phase((Round(),)),))
"""What a group of one does."""


def transfer(source: ArrayLike, target: ArrayLike, share: ArrayLike) -> Transfer:
    """Return the messages source[t] -> target[t] of share[t] each, broadcast against each other."""
    ends = np.broadcast_arrays(np.atleast_1d(source), target, np.asarray(share, dtype=np.float64))
    return Transfer(ends[0].astype(np.int64)[None], ends[1].astype(np.int64)[None], ends[2].astype(np.float64))


def everyone(size: int, share: float) -> Transfer:
    """Return the exchange in which each of `size` places sends `share` to every other one."""
    return Transfer(np.arange(size)[None], np.arange(size)[None], np.array([share]), "exchange")


def raised(size: int, share: float, how: How = "unicast") -> Transfer:
    """Return the transfer in which each of `size` places sends `share` to the switch that joins them."""
    return Transfer(np.arange(size)[None], SWITCH, np.array([share]), how)


def lowered(size: int, share: float, how: How = "unicast") -> Transfer:
    """Return the transfer in which each of `size` places receives `share` from the switch that joins them."""
    return Transfer(SWITCH, np.arange(size)[None], np.array([share]), how)


def rounds(*transfers: Transfer, streaming: bool = False) -> Schedule:
    """Return a schedule in which each of the transfers is a round of its own."""
    return Schedule((Phase(tuple(Round((one,)) for one in transfers), streaming),), streaming)


def _phase_on(phase: Phase, groups: Ints, scale: float) -> Phase:
    def moved(one: Round) -> Round:
        return replace(one, transfers=tuple(each.on(groups, scale) for each in one.transfers))

    return replace(phase, rounds=tuple(map(moved, phase.rounds)))


def _within(groups: Ints, end: Ints) -> Ints:
    """The end's places read as places in each of the groups; the switch stays what it is."""
    return end if end is SWITCH else groups[:, end].reshape(-1, end.shape[1])
