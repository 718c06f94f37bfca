"""How long would each operation take if nobody were late?"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from commsim.measurement.traces.steps import COMMUNICATION, MESSAGES, OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from commsim.measurement.traces.steps import Floats, StepTrace
    from commsim.stragglers.replay.graph import Meeting

BACKWARDS = -0.01
"""Transfers down to this are clocks that disagree a little; what is further below zero is set to 0 (as OSDI 2025)."""


class Parts(NamedTuple):
    """What operations take without waiting, [stage, turn, step, replica], what each would take ideally, and repairs."""

    seconds: Mapping[str, Floats]
    ideal: Mapping[str, float]
    repairs: tuple[str, ...]


def parts(trace: StepTrace, meetings: Iterable[Meeting]) -> Parts:
    """Return the transfers and computations of a trace: the ideal is the mean of what computes, over all there is.

    Of what communicates it is the median (OSDI 2025, section 3.2), messages sent and received apart.
    """
    seconds, backwards = _transfers(trace, meetings)
    ideal = {op: _ideal(op, seconds[op]) for op in OPERATIONS if op in seconds}
    said = (
        f"{backwards} transfers that would have ended {-BACKWARDS * 1e3:g} ms or more before all were there: set to 0"
    )
    return Parts(seconds, ideal, (said,) if backwards else ())


def _ideal(op: str, seconds: Floats) -> float:
    return float(np.nanmedian(seconds) if op in COMMUNICATION else np.nanmean(seconds))


def _transfers(trace: StepTrace, meetings: Iterable[Meeting]) -> tuple[Mapping[str, Floats], int]:
    """The time from the latest start among peers to the end: what is left of communication without waiting."""
    if trace.starts is None:
        return trace.seconds, 0
    found = {op: seconds.copy() for op, seconds in trace.seconds.items()}
    backwards = 0
    for one in meetings:
        if not (one.synced or len(one.members) > 1 or one.members[0].op in MESSAGES):
            continue
        if one.members[0].op not in trace.starts:
            continue
        start = np.max([trace.starts[node.op][node.stage, node.turn] for node in one.members], axis=0)
        together = start.max(axis=1, keepdims=True) if one.synced else start
        for op, stage, turn in one.members:
            transfer = trace.starts[op][stage, turn] + trace.seconds[op][stage, turn] - together
            late = transfer <= BACKWARDS
            backwards += int(np.count_nonzero(late))
            found[op][stage, turn] = np.where(late, 0.0, transfer)
    return found, backwards
