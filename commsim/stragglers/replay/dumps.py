"""Which rank is missing, does something else, or is stuck?

Entries of one group and number must agree in operation, sizes and types; a rank whose last number is lower than that
of others did not come; what is enqueued and not completed is stuck (PyTorch's rules for flight-recorder dumps).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from commsim.measurement.traces.calls import CallTrace
from commsim.measurement.traces.dumps import Group
from commsim.stragglers.replay.calls import replay_calls
from commsim.stragglers.replay.result import NO_CAUSE, Finding, Replay, Worker

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from commsim.measurement.traces.dumps import DumpTrace, Entry


def replay_dumps(trace: DumpTrace) -> Replay:
    """Return what hangs, and on whom; where nothing does and collectives were timed, who was late."""
    found = [one for name in trace.groups for one in _found(name, _with_idle(trace, name))]
    if found:
        cause, ranks = found[0][0], found[0][1]
        evidence = tuple(said for _, _, said in found) + tuple(one[0] for one in found[1:])
        worst = tuple(Worker(rank, 0, rank, None) for rank in ranks)
        return Replay(trace.source, Finding(cause, evidence), worst=worst, repairs=trace.repairs)
    timed = _timed(trace)
    if timed:
        return replay_calls(timed)
    done = max((group.last for ranks in trace.groups.values() for group in ranks.values()), default=0)
    said = f"nothing hangs: {len(trace.ranks)} ranks agree in all that they recorded, up to seq {done}"
    untimed = "no durations were recorded (TORCH_NCCL_ENABLE_TIMING=1 does): who is late is not identifiable"
    return Replay(trace.source, Finding(NO_CAUSE, (said, untimed)), repairs=trace.repairs)


def _with_idle(trace: DumpTrace, name: str) -> Mapping[int, Group]:
    """What each member of a group says, those too who have begun nothing."""
    idle = {rank: Group({}, 0, -1) for rank in trace.members.get(name, ()) if rank in trace.ranks}
    return idle | dict(trace.groups[name])


def _found(name: str, ranks: Mapping[int, Group]) -> Iterator[tuple[str, tuple[int, ...], str]]:
    """What is wrong in a group, the first number first: the cause, the ranks, a sentence."""
    last = max(group.last for group in ranks.values())
    problems = [*_mismatched(ranks), *_missing(ranks, last)]
    for number, who, what, said in sorted(problems):
        yield f"rank {_listed(who)} {what} at seq {number}", who, f"group {name}: {said}"
    if not problems:
        yield from _stuck(name, ranks)


def _missing(ranks: Mapping[int, Group], last: int) -> Iterator[tuple[int, tuple[int, ...], str, str]]:
    """Those who enqueued less than others, by the first number that they lack."""
    behind: dict[int, list[int]] = {}
    for rank, group in ranks.items():
        if group.last < last:
            behind.setdefault(group.last + 1, []).append(rank)
    for number, who in behind.items():
        op = next((group.entries[number].op for group in ranks.values() if number in group.entries), "a collective")
        yield number, tuple(who), "missing", f"the others have begun {op}, up to seq {last}"


def _mismatched(ranks: Mapping[int, Group]) -> Iterator[tuple[int, tuple[int, ...], str, str]]:
    """Those who do something else than most under one number: the first such number."""
    for number in sorted({number for group in ranks.values() for number in group.entries}):
        own = {rank: group.entries[number] for rank, group in ranks.items() if number in group.entries}
        for what, field in (("mismatched op", "op"), ("mismatched dtype", "dtypes"), ("mismatched sizes", "sizes")):
            usual, odd = _odd(own, field)
            if odd:
                given = getattr(own[odd[0]], field)
                yield number, odd, what, f"rank {_listed(odd)} has {given} where the others have {usual}"
                return


def _odd(own: Mapping[int, Entry], field: str) -> tuple[str, tuple[int, ...]]:
    """What most have, and the ranks that do not; what may differ by rank (all_to_all, gather) is left aside."""
    if field == "sizes" and any(
        word in one.op for one in own.values() for word in ("all_to_all", "alltoall", "gatherv")
    ):
        return "", ()
    values = {rank: str(getattr(one, field)) for rank, one in own.items()}
    usual = Counter(values.values()).most_common(1)[0][0]
    return usual, tuple(rank for rank, value in values.items() if value != usual)


def _stuck(name: str, ranks: Mapping[int, Group]) -> Iterator[tuple[str, tuple[int, ...], str]]:
    """The first that is enqueued and that no rank has completed; what one has completed, all have begun."""
    done, enqueued = (max(getattr(group, what) for group in ranks.values()) for what in ("completed", "enqueued"))
    if 0 <= done < enqueued:
        who = tuple(rank for rank, group in ranks.items() if group.enqueued > done)
        op = next((group.entries[done + 1].op for group in ranks.values() if done + 1 in group.entries), "not recorded")
        said = f"group {name}: {done} completed, {enqueued} enqueued on rank {_listed(who)}; seq {done + 1} is {op}"
        yield f"stuck at seq {done + 1}", who, said


def _timed(trace: DumpTrace) -> CallTrace | None:
    """The collectives that several ranks timed."""
    rows = [
        (group.entries[number].op, [_seconds(of.get(rank), number) for rank in trace.ranks])
        for of in trace.groups.values()
        for group in list(of.values())[:1]
        for number in sorted(group.entries)
    ]
    seconds = np.array([row for _, row in rows], dtype=np.float64).reshape(len(rows), len(trace.ranks))
    if not np.any(np.count_nonzero(~np.isnan(seconds), axis=1) > 1):
        return None
    none = np.full(len(rows), np.nan)
    op, count = tuple(name for name, _ in rows), np.ones(len(rows), dtype=np.int64)
    meets = np.ones(len(rows), dtype=bool)
    return CallTrace(op, count, seconds, meets, trace.ranks, none, none, source=trace.source, repairs=trace.repairs)


def _seconds(group: Group | None, number: int) -> float:
    entry = group.entries.get(number) if group else None
    return np.nan if entry is None or entry.seconds is None else entry.seconds


def _listed(ranks: tuple[int, ...]) -> str:
    few = 8
    shown = ", ".join(map(str, ranks[:few]))
    return shown if len(ranks) <= few else f"{shown} and {len(ranks) - few} more"
