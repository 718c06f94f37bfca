"""What do causes cost on ever more GPUs?"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from commsim.errors import InputError
from commsim.stragglers.drawing import Drawing, staged
from commsim.stragglers.kinds import Failures

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from commsim.stragglers.kinds import Straggler
    from commsim.training.estimate import Estimate

FEWEST, MOST = 8, 100_000
"""GPUs from which and up to which a curve goes."""
_OPERATIONS = 4 * 10**6
_STEPS = (10, 2000)


@dataclass(frozen=True)
class Point:
    """The slowdown over the ideal step on so many GPUs: its mean with the standard error, and quantiles.

    lost: what failures lose, in parts of the time of the steps; infinite where a job never comes to its end.
    """

    gpus: int
    slowdown: float
    error: float
    p50: float
    p95: float
    p99: float
    lost: float


def curve(
    estimate: Estimate,
    causes: Sequence[Straggler],
    *,
    seed: int = 0,
    most: int = MOST,
    done: Callable[[int], object] | None = None,
) -> tuple[Point, ...]:
    """Return the slowdown against the number of GPUs, from the fewest up to `most`, by powers of two of the replicas.

    Replicas are added to those of the estimate or taken away, each with as many micro-batches; what one of them does,
    and what they say to each other, stays as estimated, so that a curve shows the causes alone. `done` is told the GPUs
    of each point. GPUs on which whoever is named or counted is not there have no point. InputError when there is none.
    """
    known, stage = tuple(one.on(estimate) for one in causes), staged(estimate)
    each = stage.cast.stages * stage.cast.members
    if each > most:
        raise InputError("curve: most", most, f"{each} GPUs or more, those of one replica, belong here")
    found = []
    for replicas in _replicas(each, most):
        wide = replace(stage, cast=stage.cast.of_replicas(replicas))
        if not all(wide.cast.has(effect.target) for one in known for effect in one.effects):
            continue
        steps = int(np.clip(_OPERATIONS // wide.operations, *_STEPS))
        slowdown = Drawing(steps, steps, seed).steps(wide, known) / stage.seconds
        p50, p95, p99 = np.quantile(slowdown, (0.5, 0.95, 0.99)).tolist()
        error = float(slowdown.std(ddof=1)) / math.sqrt(steps)
        lost = sum(_lost(one, replicas * each) for one in known if isinstance(one, Failures))
        found.append(Point(replicas * each, float(slowdown.mean()), error, p50, p95, p99, lost))
        if done:
            done(replicas * each)
    if not found:
        raise InputError("curve: causes", len(known), f"ranks, links and stages that are there on {most:,} GPUs")
    return tuple(found)


def _lost(failures: Failures, gpus: int) -> float:
    try:
        return failures.lost(gpus)
    except InputError:
        return math.inf


def _replicas(each: int, most: int) -> list[int]:
    """Replicas of so many GPUs each: powers of two, and as many as there can be."""
    first, last = -(-FEWEST // each), most // each
    powers = (2**power for power in range(last.bit_length()))
    return sorted({max(1, first), last, *(one for one in powers if first <= one <= last)} - {0})
