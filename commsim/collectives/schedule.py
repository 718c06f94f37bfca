"""What moves, from whom to whom, in which order?

A schedule is phases one after another; a phase is rounds, one after another or streaming into each other; a round is
transfers that happen together. Ranks are places in the group (0 .. n-1), shares are parts of the collective's size.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
SWITCH = np.array([-1], dtype=np.int64)
"""The far end of a transfer that stops in the network: the switches that join the group."""
How = Literal["unicast", "reduce", "multicast"]


@dataclass(frozen=True, eq=False)
class Transfer:
    """Messages source[t] -> target[t] of `share` of the size each; either end may be `SWITCH`.

    `reduce`: what members send up is added in the switches, so each link carries it once, however many are below it;
    `multicast`: the reverse. `complete`: every rank sends its share to every other one (the arrays stay empty).
    """

    source: Ints
    target: Ints
    share: Floats
    how: How = "unicast"
    complete: bool = False


@dataclass(frozen=True, eq=False)
class Round:
    """Transfers that happen together, `repeat` times one after another."""

    transfers: tuple[Transfer, ...]
    repeat: int = 1


@dataclass(frozen=True, eq=False)
class Phase:
    """Rounds one after another, or `streaming`: cut into chunks, all rounds are under way at once."""

    rounds: tuple[Round, ...]
    streaming: bool = False


@dataclass(frozen=True, eq=False)
class Schedule:
    """Phases one after another, or `streaming` into each other chunk by chunk (then the slowest sets the pace)."""

    phases: tuple[Phase, ...]
    streaming: bool = False

    def then(self, other: Schedule, *, streaming: bool | None = None) -> Schedule:
        """Return this schedule followed by another."""
        together = self.streaming or other.streaming if streaming is None else streaming
        return Schedule(self.phases + other.phases, together)

    def on(self, groups: Ints, scale: float = 1.0) -> Schedule:
        """Return the schedule done by several groups of places at once: groups int[group, place], sizes times `scale`."""
        return replace(self, phases=tuple(_phase_on(phase, groups, scale) for phase in self.phases))


def transfer(source: Ints, target: Ints, share: float | Floats, how: How = "unicast") -> Transfer:
    """Return a transfer with source, target and share broadcast against each other."""
    ends = np.broadcast_arrays(np.asarray(source), np.asarray(target), np.asarray(share, dtype=np.float64))
    return Transfer(ends[0].astype(np.int64), ends[1].astype(np.int64), ends[2], how)


def everyone(share: float) -> Transfer:
    """Return the transfer in which every rank sends `share` to every other rank."""
    none = np.zeros(0, dtype=np.int64)
    return Transfer(none, none, np.array([share]), complete=True)


def rounds(*transfers: Transfer, repeat: int = 1) -> Schedule:
    """Return a schedule in which each of the transfers is one round of its own, `repeat` times."""
    return Schedule((Phase(tuple(Round((one,), repeat) for one in transfers)),))


def _phase_on(phase: Phase, groups: Ints, scale: float) -> Phase:
    def moved(one: Round) -> Round:
        return replace(one, transfers=tuple(_transfer_on(t, groups, scale) for t in one.transfers))

    return replace(phase, rounds=tuple(map(moved, phase.rounds)))


def _transfer_on(one: Transfer, groups: Ints, scale: float) -> Transfer:
    """The transfer in every group; a complete exchange is written out, for its groups are only part of the whole."""
    if one.complete:
        a, b = np.divmod(np.arange(groups.shape[1] ** 2), groups.shape[1])
        pair = a != b
        one = transfer(a[pair], b[pair], one.share[0])
    source, target = (_ends_on(end, groups) for end in (one.source, one.target))
    share = np.broadcast_to(one.share * scale, (len(groups), len(one.share)))
    return replace(one, source=source.reshape(-1), target=target.reshape(-1), share=share.reshape(-1), complete=False)


def _ends_on(ends: Ints, groups: Ints) -> Ints:
    return np.where(ends < 0, -1, groups[:, np.maximum(ends, 0)])
