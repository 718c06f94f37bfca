"""What does each rank do between what ranks do together?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from commsim.measurement.traces.events import ALONE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commsim.measurement.traces.events import EventTrace
    from commsim.measurement.traces.steps import Floats, Ints

OTHER = "work"
"""What a rank does beside the operations of the trace."""
START = -1
"""The meeting before the first."""


@dataclass(frozen=True, eq=False)
class Work:
    """The arrivals of ranks at meetings, [arrival] by meeting, and the meetings, [meeting] in their order.

    `parts` [arrival, part] is what a rank does since the meeting `since` (START: the first event of anyone), in s by
    the operations `names`; `waits` [arrival], until the last has come. `first[m]` is the first arrival of meeting m;
    the last meeting is the end of the trace. `transfer` [meeting] in s; `op`, `kind` (alike in other steps) and `step`
    [meeting].
    """

    rank: Ints
    since: Ints
    parts: Floats
    waits: Floats
    names: tuple[str, ...]
    first: Ints
    transfer: Floats
    op: tuple[str, ...]
    kind: Ints
    step: Ints
    backwards: int

    @property
    def meetings(self) -> int:
        """The number of meetings, the end of the trace not counted."""
        return self.transfer.size - 1

    @cached_property
    def meeting(self) -> Ints:
        """The meeting of each arrival."""
        return np.repeat(np.arange(self.first.size), np.diff(np.append(self.first, self.rank.size)))

    @cached_property
    def ideal(self) -> Floats:
        """What the parts take in the mean over all arrivals at meetings of the same kind, [arrival, part] in s."""
        kind = self.kind[self.meeting]
        count = np.bincount(kind)
        means = [np.bincount(kind, part) / count for part in self.parts.T]
        found: Floats = np.stack(means, axis=1)[kind]
        return found

    @cached_property
    def ideal_transfer(self) -> Floats:
        """The median transfer of the meetings of the same kind, [meeting] in s."""
        median = np.array([np.median(self.transfer[self.kind == one]) for one in range(self.kind.max() + 1)])
        found: Floats = median[self.kind]
        return found

    def ends(self, columns: Sequence[tuple[Floats, Floats]]) -> Floats:
        """Return when the trace ends, [scenario] in s, for pairs of work [arrival] and transfers [meeting]."""
        work, transfer = (np.stack(one, axis=1) for one in zip(*columns))
        ends = np.zeros((self.first.size + 1, work.shape[1]))  # the last row is the beginning
        last = np.append(self.first, self.rank.size)[1:]
        for number, (begin, end) in enumerate(zip(self.first.tolist(), last.tolist())):
            arrives = ends[self.since[begin:end]] + work[begin:end]
            ends[number] = arrives.max(axis=0) + transfer[number]
        found: Floats = ends[-2]
        return found


def work_of(trace: EventTrace) -> Work:
    """Return the arrivals of a trace with at least one meeting."""
    met = np.flatnonzero(trace.meeting != ALONE)
    order = _order(trace, met)
    met = met[np.lexsort((trace.rank[met], order[trace.meeting[met]]))]
    arrivals = _Arrivals(trace, met, order[trace.meeting[met]])
    return arrivals.work()


def _order(trace: EventTrace, met: Ints) -> Ints:
    """The place of each meeting among all, by when its last member comes."""
    last = np.full(int(trace.meeting.max()) + 1, -np.inf)
    np.maximum.at(last, trace.meeting[met], trace.start[met])
    place = np.empty(last.size, dtype=np.int64)
    place[np.argsort(last, kind="stable")] = np.arange(last.size)
    return place


@dataclass(frozen=True, eq=False)
class _Arrivals:
    """The events of meetings, `met` [arrival], and the place of their meeting."""

    trace: EventTrace
    met: Ints
    place: Ints

    def work(self) -> Work:
        trace, place = self.trace, self.place
        first = np.searchsorted(place, np.arange(place.max() + 1))
        start, end = trace.start[self.met], trace.end[self.met]
        last = np.maximum.reduceat(start, first)
        transfer = (np.add.reduceat(end, first) / np.diff(np.append(first, start.size))) - last
        ranks = np.unique(trace.rank)
        found = [self._of_rank(int(rank), int(place.max()) + 1) for rank in ranks]
        since, parts = (np.concatenate([one[number] for one in found]) for number in (0, 1))
        own = np.concatenate([*(np.append(np.flatnonzero(trace.rank[self.met] == rank), -1) for rank in ranks)])
        tails = np.flatnonzero(own == -1)
        own[tails] = start.size + np.arange(ranks.size)
        back = np.argsort(own)
        op, kind = self._kinds(first)
        return Work(
            rank=np.append(trace.rank[self.met], ranks),
            since=since[back],
            parts=parts[back],
            waits=np.append(last[place] - start, np.zeros(ranks.size)),
            names=(*(trace.names[name] for name in self._kept), OTHER),
            first=np.append(first, start.size),
            transfer=np.append(np.maximum(transfer, 0.0), 0.0),
            op=op,
            kind=kind,
            step=np.append(trace.step[self.met[first]], trace.step.max()),
            backwards=int(np.count_nonzero(transfer < 0)),
        )

    @cached_property
    def _kept(self) -> Ints:
        """The names of work that take the longest in all; the others are no parts of their own."""
        alone = self.trace.meeting == ALONE
        total = np.bincount(self.trace.name[alone], self.trace.seconds[alone], minlength=len(self.trace.names))
        found: Ints = np.sort(np.argsort(-total, kind="stable")[: min(_MOST_PARTS, np.count_nonzero(total))])
        return found

    def _of_rank(self, rank: int, meetings: int) -> tuple[Ints, Floats]:
        """The meeting before each arrival of a rank, and before its end, and what it does between, [arrival, part]."""
        trace = self.trace
        own = np.flatnonzero(trace.rank[self.met] == rank)
        events, place = self.met[own], np.append(self.place[own], meetings)
        every = trace.rank == rank
        starts = np.append(trace.start[events], trace.end[every].max())
        by_end = np.argsort(trace.end[events], kind="stable")
        ends = trace.end[events][by_end]
        ends, earlier = np.append(trace.start.min(), ends), np.append(START, place[:-1][by_end])
        before = np.searchsorted(ends[1:], starts + _TOLERANCE, side="right")
        while np.any(later := earlier[before] >= place):  # what takes no time is not before itself
            before -= later
        since, begin = earlier[before], ends[before]
        return since, self._parts(rank, starts, np.minimum(begin, starts))

    def _parts(self, rank: int, starts: Floats, begin: Floats) -> Floats:
        """What the time from `begin` to `starts` goes to, by operation; the last part is what no event is there for."""
        trace = self.trace
        found = np.zeros((starts.size, self._kept.size + 1))
        place = np.full(len(trace.names), -1)
        place[self._kept] = np.arange(self._kept.size)
        alone = np.flatnonzero((trace.rank == rank) & (trace.meeting == ALONE) & (place[trace.name] >= 0))
        by = np.argsort(starts, kind="stable")
        gap = by[np.minimum(np.searchsorted(starts[by], trace.start[alone], side="right"), starts.size - 1)]
        inside = np.minimum(trace.end[alone], starts[gap]) - np.maximum(trace.start[alone], begin[gap])
        np.add.at(found, (gap, place[trace.name[alone]]), np.maximum(inside, 0.0))
        whole, busy = starts - begin, found.sum(axis=1)
        found *= np.divide(whole, busy, out=np.ones_like(busy), where=busy > whole)[:, None]
        found[:, -1] = whole - found.sum(axis=1)
        return found

    def _kinds(self, first: Ints) -> tuple[tuple[str, ...], Ints]:
        """The operation of each meeting, and the number of its kind: the same operation as often in its step before."""
        trace = self.trace
        members = np.split(trace.rank[self.met], first[1:])
        names = trace.name[self.met[first]].tolist()
        seen: dict[tuple[object, ...], int] = {}
        kinds: dict[tuple[object, ...], int] = {}
        found = []
        for name, step, group in zip(names, trace.step[self.met[first]].tolist(), members):
            key = (name, step, group.tobytes())
            seen[key] = seen.get(key, 0) + 1
            found.append(kinds.setdefault((name, seen[key], group.size), len(kinds)))
        op = (*(trace.names[name] for name in names), "end")
        return op, np.array([*found, len(kinds)])


_TOLERANCE = 1e-9
_MOST_PARTS = 64
