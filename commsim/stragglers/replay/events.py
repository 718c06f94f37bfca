"""Who came late to what ranks do together, and what would the steps be if nobody had?

Each rank works by itself from the end of one meeting to its arrival at the next; a meeting begins when its last member
is there, and then takes its transfer. Ideally work takes the mean over the ranks and steps that do it, and a transfer
the median, as in replays of pipelines.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from commsim.measurement.traces.events import ALONE
from commsim.stragglers.replay.causes import HALF, SLOW
from commsim.stragglers.replay.result import (
    COMMUNICATION,
    NO_CAUSE,
    ONE_WORKER,
    UNKNOWN,
    Finding,
    Replay,
    Waiting,
    Worker,
)
from commsim.stragglers.replay.work import Work, work_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from commsim.measurement.traces.events import EventTrace
    from commsim.measurement.traces.steps import Floats, Ints

WORST = 0.03
_BLOCK = 64
"""Scenarios that are solved at once."""


def replay_events(trace: EventTrace) -> Replay:
    """Return what the events say; of ranks that never meet it cannot tell who is late."""
    if not np.any(trace.meeting != ALONE):
        return _alone(trace)
    return _WhatIf(trace, work_of(trace)).replay()


def _alone(trace: EventTrace) -> Replay:
    """What the events of one rank, or of ranks that share nothing, do not say."""
    span = float((trace.end.max() - trace.start.min()) / len(trace.steps))
    who = f"rank {trace.ranks[0]} alone" if len(trace.ranks) == 1 else "ranks that share no collective"
    said = f"a trace of {who}: time in collectives holds waiting, and whom it waits for is not to be seen"
    return Replay(trace.source, Finding(UNKNOWN, (said,)), measured=span, repairs=trace.repairs)


@dataclass(frozen=True, eq=False)
class _WhatIf:
    """Arrivals, and the mean step if some of them are as late as they were."""

    trace: EventTrace
    work: Work

    def replay(self) -> Replay:
        trace, work = self.trace, self.work
        worst = self.workers[: math.ceil(len(self.workers) * WORST)]
        shares = self._shares(worst)
        said = [f"{work.backwards} collectives that would have ended before all were there: their transfer is 0"]
        return Replay(
            source=trace.source,
            finding=self._finding(shares, worst),
            actual=self._both[0],
            ideal=self._both[1],
            by_rank={one.rank: one.slowdown for one in self.workers if one.slowdown is not None},
            by_op=self._by_op,
            workers=self.workers,
            worst=worst,
            shares=shares,
            measured=float(trace.end.max() - trace.start.min()) / len(trace.steps),
            transfers=self._transfers(),
            waiting=self.waiting,
            repairs=(*trace.repairs, *said[: bool(work.backwards)]),
        )

    def _means(self, columns: Sequence[tuple[Floats, Floats]]) -> list[float]:
        """The mean step of scenarios, s."""
        blocks = [columns[first : first + _BLOCK] for first in range(0, len(columns), _BLOCK)]
        ends = np.concatenate([self.work.ends(block) for block in blocks])
        found: list[float] = (ends / len(self.trace.steps)).tolist()
        return found

    @cached_property
    def _was(self) -> Floats:
        found: Floats = self.work.parts.sum(axis=1)
        return found

    @cached_property
    def _would(self) -> Floats:
        found: Floats = self.work.ideal.sum(axis=1)
        return found

    @cached_property
    def _both(self) -> list[float]:
        """The mean step as it was, and as it would be."""
        return self._means([(self._was, self.work.transfer), (self._would, self.work.ideal_transfer)])

    def _of(self, ranks: Ints, of: Floats, other: Floats) -> Floats:
        """One kind of work for some ranks, another for the others."""
        return np.where(np.isin(self.work.rank, ranks), of, other)

    @cached_property
    def workers(self) -> tuple[Worker, ...]:
        """Each rank, the slowest first."""
        ranks = np.arange(len(self.trace.ranks))[:, None]
        steps = self._means([(self._of(one, self._was, self._would), self.work.ideal_transfer) for one in ranks])
        found = [Worker(rank, 0, rank, _over(step, self._both[1])) for rank, step in zip(self.trace.ranks, steps)]
        return tuple(sorted(found, key=lambda one: (-(one.slowdown or 0.0), one.rank)))

    @cached_property
    def _by_op(self) -> Mapping[str, float]:
        """The slowdown that each operation makes alone, the largest first."""
        work = self.work
        found: dict[str, tuple[Floats, Floats]] = {}
        for part, name in enumerate(work.names):
            if work.parts[:, part].any():
                found[name] = (self._would + work.parts[:, part] - work.ideal[:, part], work.ideal_transfer)
        for name in dict.fromkeys(work.op[:-1]):
            own = np.array([one == name for one in work.op])
            found[name] = (self._would, np.where(own, work.transfer, work.ideal_transfer))
        slowdowns = {name: _over(step, self._both[1]) for name, step in zip(found, self._means(list(found.values())))}
        return dict(sorted(slowdowns.items(), key=lambda item: -item[1]))

    def _shares(self, worst: Sequence[Worker]) -> Mapping[str, float]:
        actual, ideal = self._both
        if not actual > ideal:
            return {}
        ranks = np.array([self.trace.ranks.index(one.rank) for one in worst])
        mended = [(self._of(ranks, self._would, self._was), self.work.transfer), (self._was, self.work.ideal_transfer)]
        won = [(actual - step) / (actual - ideal) for step in self._means(mended)]
        return dict(zip(("M_W", "communication"), won))

    @cached_property
    def waiting(self) -> tuple[Waiting, ...]:
        """How each rank met the others, who waits least first."""
        work, ranks = self.work, len(self.trace.ranks)
        met = work.meeting < work.meetings
        rank = work.rank[met]
        count = np.maximum(np.bincount(rank, minlength=ranks), 1)
        means = [
            np.bincount(rank, one[met], minlength=ranks) / count for one in (self._was, work.waits, work.waits == 0)
        ]
        found = [Waiting(name, *one) for name, one in zip(self.trace.ranks, zip(*(mean.tolist() for mean in means)))]
        return tuple(sorted(found, key=lambda one: (-one.last, one.waits)))

    def _transfers(self) -> Mapping[str, float]:
        """The median transfer of each collective, s."""
        op = np.array(self.work.op)
        return {
            str(name): float(np.median(self.work.transfer[op == name])) for name in dict.fromkeys(self.work.op[:-1])
        }

    def _finding(self, shares: Mapping[str, float], worst: Sequence[Worker]) -> Finding:
        slowdown, who = _over(*self._both), self._met(worst)
        if slowdown < SLOW:
            return Finding(NO_CAUSE, (f"slowdown {slowdown:.4f}: less than {SLOW:g}, which jitter makes", who))
        if shares["M_W"] >= HALF or self._is_usually_last(shares["M_W"], worst):
            named = ", ".join(f"rank {one.rank}" for one in worst)
            said = f"M_W {shares['M_W']:.4f}: mending {named} alone wins so much of the time lost"
            return Finding(ONE_WORKER, (said, *self._where(), who))
        if shares["communication"] >= HALF:
            return Finding(
                COMMUNICATION, (f"even transfers would win {shares['communication']:.1%} of the time lost", who)
            )
        return Finding(UNKNOWN, (f"no single cause explains half of the time lost (M_W {shares['M_W']:.4f})", who))

    def _where(self) -> tuple[str, ...]:
        """The operation that makes the largest slowdown alone, if it makes one."""
        name, slowdown = next(iter(self._by_op.items()))
        return (f"of all operations {name} is slowest: alone it makes a slowdown of {slowdown:.4f}",) * (
            slowdown > SLOW
        )

    def _is_usually_last(self, share: float, worst: Sequence[Worker]) -> bool:
        """Whether the others wait for the same rank in most meetings, and mending it wins something."""
        late = next(one for one in self.waiting if one.rank == worst[0].rank)
        return late.last >= max(HALF, 2 / len(self.trace.ranks)) and share >= HALF / 2

    def _met(self, worst: Sequence[Worker]) -> str:
        """How the slowest rank met the others, and how the one that waits longest did."""
        late = next(one for one in self.waiting if one.rank == worst[0].rank)
        waits = max(self.waiting, key=lambda one: one.waits)
        return (
            f"rank {late.rank} comes last to {late.last:.1%} of {self.work.meetings} collectives and waits "
            f"{late.waits * 1e3:.3g} ms in each; rank {waits.rank} waits {waits.waits * 1e3:.3g} ms"
        )


def _over(actual: float, ideal: float) -> float:
    return actual / ideal if ideal > 0 else 1.0
