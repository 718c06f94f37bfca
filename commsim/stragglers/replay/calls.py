"""Who was late, where a trace says how long operations took but not when?

Who comes last to a collective waits least: the shortest time is the transfer, what others take longer is waiting
(DeepSpeed's latency minus minimum holds for each call, over all ranks). Times that are alike tell nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from commsim.stragglers.replay.result import ONE_WORKER, UNKNOWN, Finding, Replay, Waiting, Worker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commsim.measurement.traces.calls import CallTrace
    from commsim.measurement.traces.steps import Floats

CLEAR = 0.05
"""Times that differ by less do not tell ranks apart: passes of healthy ranks differ by up to 2.2 %."""
_PAIR = 2
_FEW = 4
"""No more than one rank in so many stands out from the others; else nobody does."""
_MS = 1e3


class Suspect(NamedTuple):
    """The ranks that stand out, by so many seconds in each call, and what shows it."""

    ranks: tuple[int, ...]
    away: float
    said: str


def replay_calls(trace: CallTrace) -> Replay:
    """Return who stands out, and what collectives take once all are there."""
    waiting = _waiting(trace)
    suspect = max(_suspects(trace, waiting), key=lambda one: one.away, default=None)
    finding = Finding(ONE_WORKER, (suspect.said, *_skews(trace))) if suspect else _unknown(trace)
    total = np.nansum(trace.seconds * trace.count[:, None], axis=0)
    known = trace.steps is not None and total.size
    return Replay(
        source=trace.source,
        finding=finding,
        worst=tuple(Worker(rank, 0, rank, None) for rank in suspect.ranks) if suspect else (),
        measured=float(total.max()) / (trace.steps or 1) if known else None,
        transfers=_transfers(trace),
        waiting=waiting,
        repairs=trace.repairs,
    )


def _transfer(trace: CallTrace) -> Floats:
    """What each call takes once all are there, [call] in s: as the trace says, else the shortest of its ranks."""
    if not trace.ranks:
        return trace.transfer
    several = (~np.isnan(trace.seconds)).sum(axis=1) >= _PAIR
    least = np.nanmin(np.where(several[:, None], trace.seconds, np.inf), axis=1)
    return np.where(np.isnan(trace.transfer), np.where(several & trace.meets, least, np.nan), trace.transfer)


def _transfers(trace: CallTrace) -> dict[str, float]:
    """The median transfer of each collective, s."""
    transfer, op = _transfer(trace), np.array(trace.op)
    known = ~np.isnan(transfer)
    return {
        name: float(np.median(np.repeat(transfer[own], np.maximum(trace.count[own], 1))))
        for name in dict.fromkeys(trace.op)
        if (own := known & (op == name)).any()
    }


def _waiting(trace: CallTrace) -> tuple[Waiting, ...]:
    """How long each rank waits in collectives, who waits least first; empty where none is shared."""
    met = trace.meets & ((~np.isnan(trace.seconds)).sum(axis=1) >= _PAIR)
    if not trace.ranks or not met.any():
        return ()
    seconds, count = trace.seconds[met], trace.count[met, None] * ~np.isnan(trace.seconds[met])
    least = np.nanmin(seconds, axis=1, keepdims=True)
    waits = np.nansum((seconds - least) * count, axis=0) / np.maximum(count.sum(axis=0), 1)
    last = ((seconds == least) * count).sum(axis=0) / np.maximum(count.sum(axis=0), 1)
    found = [Waiting(rank, None, *one) for rank, one in zip(trace.ranks, zip(waits.tolist(), last.tolist()))]
    return tuple(sorted(found, key=lambda one: (one.waits, one.rank)))


def _suspects(trace: CallTrace, waiting: tuple[Waiting, ...]) -> Iterator[Suspect]:
    """The ranks that stand out: by more time in work, or by less where others wait; by less waiting in collectives."""
    for op in dict.fromkeys(name for name, meets in zip(trace.op, trace.meets) if not meets):
        yield from _outlier(trace, op)
    if len(waiting) >= _PAIR:
        first, second = waiting[:_PAIR]
        transfer = float(np.nanmean(np.repeat(_transfer(trace), trace.count)))
        if second.waits - first.waits > CLEAR * transfer:
            most = waiting[-1]
            said = (
                f"rank {first.rank} waits least in collectives: {first.waits * _MS:.3g} ms in each, the next (rank "
                f"{second.rank}) {second.waits * _MS:.3g}, rank {most.rank} {most.waits * _MS:.3g}; it is there last"
            )
            yield Suspect((first.rank,), most.waits - first.waits, said)


def _outlier(trace: CallTrace, op: str) -> Iterator[Suspect]:
    """The few ranks that take clearly longer than the others, which are alike; else those that take clearly less."""
    own = np.array([name == op for name in trace.op])
    weight = trace.count[own, None] * ~np.isnan(trace.seconds[own])
    mean = np.nansum(trace.seconds[own] * weight, axis=0) / np.maximum(weight.sum(axis=0), 1)
    there = weight.sum(axis=0) > 0
    usual = float(np.median(mean[there]))
    for sign, what in ((1, "takes"), (-1, "waits least: it takes")):
        away = np.where(there, sign * (mean - usual), -np.inf)
        clear = away > CLEAR * usual
        some, ranks = np.flatnonzero(clear), int(np.count_nonzero(there))
        if ranks > _PAIR and 1 <= some.size <= max(1, ranks // _FEW):
            who = ", ".join(str(trace.ranks[rank]) for rank in some)
            said = f"rank {who} {what} {mean[some].mean() * _MS:.4g} ms in {op}, the others {usual * _MS:.4g}"
            yield Suspect(tuple(trace.ranks[rank] for rank in some), float(away[some].max()), said)
            return


def _skews(trace: CallTrace) -> list[str]:
    """What the trace itself says of how far apart ranks come."""
    known = np.flatnonzero(~np.isnan(trace.skew))
    if not known.size:
        return []
    worst = int(known[np.argmax(trace.skew[known])])
    transfer = trace.transfer[worst] * _MS
    return [
        f"ranks come {trace.skew[worst] * _MS:.3g} ms apart to {trace.op[worst]}, which takes {transfer:.4g} ms itself"
    ]


def _unknown(trace: CallTrace) -> Finding:
    """Why the times do not tell who is late."""
    if not trace.ranks:
        return Finding(UNKNOWN, ("the trace does not tell ranks apart", *_skews(trace)))
    if len(trace.ranks) == 1:
        return Finding(UNKNOWN, (f"a trace of rank {trace.ranks[0]} alone: whom it waits for is not to be seen",))
    spread = max((_spread(row) for row in trace.seconds), default=0.0)
    said = (
        f"times of the ranks differ by {spread:.1%} at most, and no rank stands out: waiting for the latest is part of "
        "them, so wall time cannot tell who is late; record when ranks arrive at collectives, or what comes before"
    )
    return Finding(UNKNOWN, (said,))


def _spread(row: Floats) -> float:
    known = row[~np.isnan(row)]
    return float(np.ptp(known) / known.max()) if known.size and known.max() > 0 else 0.0
