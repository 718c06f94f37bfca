"""What is a trace of events: who did what from when to when, and where did they have to meet?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from commsim.errors import InputError
from commsim.measurement.traces.names import TOGETHER

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from commsim.measurement.traces.steps import Floats, Ints

ALONE = -1
"""The meeting of what a rank does by itself."""
UNNUMBERED = -1
APART = 0.01
"""Clocks that disagree by less are left as they are, s; collectives end within 0.1 to 0.5 ms of each other."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Events as a profiler lists them, arrays [event]: `group` names who takes part ("" for nobody else).

    `number` counts what the group does, UNNUMBERED where the profiler does not. Times in s by the clock of each rank.
    """

    rank: Ints
    step: Ints
    name: NDArray[np.str_]
    group: NDArray[np.str_]
    number: Ints
    start: Floats
    seconds: Floats


@dataclass(frozen=True, eq=False)
class EventTrace:
    """Events of several ranks on one clock, arrays [event] by start.

    `rank`, `name` and `step` are places in `ranks`, `names` and `steps`; `meeting` numbers what ranks do together,
    ALONE for what a rank does by itself. `world` is how many ranks there should be, where that is known.
    """

    rank: Ints
    step: Ints
    name: Ints
    meeting: Ints
    start: Floats
    seconds: Floats
    ranks: tuple[int, ...]
    names: tuple[str, ...]
    steps: tuple[int, ...]
    world: int | None = None
    source: str = ""
    repairs: tuple[str, ...] = ()

    @property
    def end(self) -> Floats:
        """When each event is over, [event] in s."""
        found: Floats = self.start + self.seconds
        return found


def assembled(rows: Rows, source: str, *, world: int | None = None, repairs: tuple[str, ...] = ()) -> EventTrace:
    """Return the trace of events, each with its meeting, on one clock; InputError where there is none.

    Events of a group are matched by their number, else by their order in the step.
    """
    if not rows.rank.size:
        raise InputError(source, "no event", "events of ranks belong here")
    rows = _sorted(rows)
    ranks, rank = np.unique(rows.rank, return_inverse=True)
    names, name = np.unique(rows.name, return_inverse=True)
    steps, step = np.unique(rows.step, return_inverse=True)
    meeting, said = _meetings(rows)
    trace = EventTrace(
        rank=rank,
        step=step,
        name=name,
        meeting=meeting,
        start=rows.start,
        seconds=rows.seconds,
        ranks=tuple(ranks.tolist()),
        names=tuple(names.tolist()),
        steps=tuple(steps.tolist()),
        world=world,
        source=source,
        repairs=(*repairs, *said, *_absent(ranks, world)),
    )
    return on_one_clock(trace)


def _sorted(rows: Rows) -> Rows:
    by = np.argsort(rows.start, kind="stable")
    return Rows(*(getattr(rows, field)[by] for field in Rows.__dataclass_fields__))


def _absent(ranks: Ints, world: int | None) -> list[str]:
    missing = (world or 0) - ranks.size
    return [f"{missing} of {world} ranks have no trace here: only the others are judged"] if missing > 0 else []


def _meetings(rows: Rows) -> tuple[Ints, list[str]]:
    """The number of each event's meeting, in the order in which they begin."""
    together = np.flatnonzero(rows.group != "")
    meeting = np.full(rows.rank.size, ALONE)
    if not together.size:
        return meeting, []
    group = np.unique(rows.group[together], return_inverse=True)[1]
    numbered = rows.number[together] != UNNUMBERED
    step = np.where(numbered, 0, rows.step[together])
    number = np.where(numbered, rows.number[together], _occurrence(group, step, rows.rank[together]))
    keys = np.stack([group, step, number, numbered])
    place, size = np.unique(keys, axis=1, return_inverse=True, return_counts=True)[1:]
    place = place.ravel()
    met = size[place] > 1
    meeting[together[met]] = np.unique(place[met], return_inverse=True)[1]
    alone = int(np.count_nonzero(~met))
    several = rows.rank.min() != rows.rank.max()
    said = [f"{alone} collectives that only one rank has: taken as its own work"] if alone and several else []
    return meeting, said


def _occurrence(group: Ints, step: Ints, rank: Ints) -> Ints:
    """The place of each event among those of its group, step and rank, in their order."""
    sort = np.lexsort((np.arange(group.size), group, step, rank))
    together = np.stack([group, step, rank])[:, sort]
    new = np.append(True, (np.diff(together, axis=1) != 0).any(axis=0))
    first = np.maximum.accumulate(np.where(new, np.arange(sort.size), 0))
    found = np.empty_like(sort)
    found[sort] = np.arange(sort.size) - first
    return found


def on_one_clock(trace: EventTrace) -> EventTrace:
    """Return the trace with clocks set by the ends of what ranks end together, and says so; as it was if they agree.

    Clocks disagree when they are APART, or when somebody would leave before another comes. InputError where clocks
    disagree and some ranks never meet the others.
    """
    ends = [place for place, name in enumerate(trace.names) if name in TOGETHER]
    common = (trace.meeting != ALONE) & np.isin(trace.name, ends)
    if not common.any():
        return trace
    off = _offsets(trace.rank[common], trace.meeting[common], trace.end[common], len(trace.ranks))
    if np.ptp(off) < APART and not _leave_early(trace, common):
        return trace
    start = trace.start - off[trace.rank]
    shared = np.unique(trace.meeting[common]).size
    said = f"clocks up to {np.ptp(off):.3g} s apart: set by the ends of {shared} collectives"
    by = np.argsort(start, kind="stable")
    arrays = {name: getattr(trace, name)[by] for name in ("rank", "step", "name", "meeting", "seconds")}
    return replace(trace, **arrays, start=start[by], repairs=(*trace.repairs, said))


_ROUNDS = 100


def _offsets(rank: Ints, meeting: Ints, end: Floats, ranks: int) -> Floats:
    """How much each clock is ahead, [rank] in s: medians over meetings, until ends agree (groups overlap)."""
    off = np.zeros(ranks)
    places = [np.flatnonzero(rank == one) for one in range(ranks)]
    count = np.bincount(meeting, minlength=meeting.max() + 1)
    for _ in range(_ROUNDS):
        now = end - off[rank]
        mean = np.bincount(meeting, now - now[0], minlength=count.size) / np.maximum(count, 1) + now[0]
        change = np.array([np.median(now[own] - mean[meeting[own]]) if own.size else 0.0 for own in places])
        off += change
        if np.ptp(change) < APART / 1000:
            break
    return off - np.median(off)


def _leave_early(trace: EventTrace, common: NDArray[np.bool_]) -> bool:
    meeting = trace.meeting[common]
    last = np.full(meeting.max() + 1, -np.inf)
    np.maximum.at(last, meeting, trace.start[common])
    return bool(np.median(trace.end[common] - last[meeting]) < 0 or np.any(trace.end[common] - last[meeting] < -APART))
