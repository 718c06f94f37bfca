"""Which passes of a stage are longer than others of the same worker, and what do they have in common?"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from commsim.measurement.traces.steps import BACKWARD, FORWARD, PAUSE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from commsim.measurement.traces.steps import Floats, StepTrace
    from commsim.stragglers.replay.ideal import Parts

    Bools = NDArray[np.bool_]


class Alike(NamedTuple):
    """How forward and backward passes of one micro-batch vary together, beside what is the worker's and the step's own.

    `correlation` of their times (OSDI 2025, section 5.3), and the relative `spread` of the forward times.
    """

    correlation: float
    spread: float


OUTLIER, FAR = 1.1, 6.0
"""A pause makes a pass so many times as long as it usually is, and so many robust standard deviations longer."""
MAD = 1.4826
"""Standard deviations of a normal law in its median absolute deviation."""


def alike(trace: StepTrace, seconds: Mapping[str, Floats]) -> Alike:
    """Return how the two passes vary together; no correlation where nothing varies or there is no backward pass."""
    if BACKWARD not in seconds:
        return Alike(0.0, 0.0)
    forward, backward = (_own(array) for array in _matched(trace, seconds))
    spread = float(forward.std())
    both = spread * float(backward.std())
    return Alike(float((forward * backward).mean()) / both if both > 0 else 0.0, spread)


def _matched(trace: StepTrace, seconds: Mapping[str, Floats]) -> tuple[Floats, Floats]:
    """Both passes of the same micro-batches, [stage, turn, step, replica], chunk by chunk."""
    found = (seconds[op] for op in (FORWARD, BACKWARD))
    sort = (np.argsort(trace.chunk[op], axis=1, kind="stable") for op in (FORWARD, BACKWARD))
    forward, backward = (np.take_along_axis(one, by[:, :, None, None], axis=1) for one, by in zip(found, sort))
    return forward, backward


def _own(seconds: Floats) -> Floats:
    """What is a pass's own, relative to the mean of its worker, and without what all of a step have in common."""
    ratio = seconds / seconds.mean(axis=(1, 2), keepdims=True)
    found: Floats = ratio - ratio.mean(axis=(0, 1, 3), keepdims=True)
    return found


def without_pauses(trace: StepTrace, parts: Parts) -> Parts:
    """Return the parts with long forward passes as long as they usually are, and without pauses that are recorded.

    Long is what is far from the worker's median while the backward pass of the same micro-batch is not.
    """
    calm = dict(parts.seconds)
    if BACKWARD in calm:
        where, usual = paused(trace, parts.seconds)
        calm[FORWARD] = np.where(where, usual, calm[FORWARD])
    if PAUSE in calm:
        calm[PAUSE] = np.zeros_like(calm[PAUSE])
    return parts._replace(seconds=calm)


def paused(trace: StepTrace, seconds: Mapping[str, Floats]) -> tuple[Bools, Floats]:
    """Return which forward passes are too long, [stage, turn, step, replica], and what is usual for each worker, s."""
    forward, backward = _matched(trace, seconds)
    sort = np.argsort(np.argsort(trace.chunk[FORWARD], axis=1, kind="stable"), axis=1)[:, :, None, None]
    where = np.take_along_axis(_long(forward) & ~_long(backward), sort, axis=1)
    return where, np.median(forward, axis=(1, 2), keepdims=True)


def _long(seconds: Floats) -> Bools:
    usual = np.median(seconds, axis=(1, 2), keepdims=True)
    away = np.median(np.abs(seconds - usual), axis=(1, 2), keepdims=True) * MAD
    found: Bools = seconds > np.maximum(usual * OUTLIER, usual + FAR * away)
    return found
