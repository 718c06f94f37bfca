"""Which cause costs how much, alone and among the others, and which group makes more of it?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from commsim.stragglers.closed import Closed, closed
from commsim.stragglers.simulate import Work

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commsim.stragglers.drawing import Drawing
    from commsim.stragglers.kinds import Straggler
    from commsim.stragglers.laws.law import Floats
    from commsim.stragglers.simulate import Stage


@dataclass(frozen=True)
class Attributed:
    """What one of the causes does to the mean step, as slowdowns over the ideal one.

    alone: only it at work (break only this). without: all but it (fix only this), of `together`, all of them. The draws
    are the same, so that the differences are the cause's own; they do not add up. closed: `alone` by a formula.
    """

    cause: Straggler
    alone: float
    without: float
    together: float
    closed: Closed | None

    @property
    def saved(self) -> float:
        """What is saved without it, in parts of the ideal step."""
        return self.together - self.without


def attributed(stage: Stage, causes: Sequence[Straggler], drawing: Drawing) -> tuple[Attributed, ...]:
    """Return what each of the causes does, alone and among the others."""
    every = range(len(causes))
    if not every:
        return ()
    together = _slowdown(stage, causes, drawing, list(every))
    found = []
    for one in every:
        others = [other for other in every if other != one]
        alone = together if not others else _slowdown(stage, causes, drawing, [one])
        without = _slowdown(stage, causes, drawing, others)
        found.append(Attributed(causes[one], alone, without, together, closed(stage, causes[one])))
    return tuple(found)


def _slowdown(stage: Stage, causes: Sequence[Straggler], drawing: Drawing, some: list[int]) -> float:
    """The mean slowdown with some of the causes; exactly 1 without any effect."""
    if not any(causes[one].effects for one in some):
        return 1.0
    return float((drawing.steps(stage, causes, some) / stage.seconds).mean())


@dataclass(frozen=True)
class Amplified:
    """Where the time above the ideal step comes from, s: who waits adds to what is slower on average.

    slower: operations and messages take longer on average. pipeline: stages wait for each other, for they do so at
    other times. data: replicas wait for the last one. tensor: in each operation the group waits for its slowest rank,
    experts' exchange included.
    Together they are the mean step less the ideal one; each but the first is never negative but for its error.
    """

    slower: float
    pipeline: float
    data: float
    tensor: float


def amplified(stage: Stage, causes: Sequence[Straggler], drawing: Drawing) -> Amplified:
    """Return where the time of causes comes from: the step with everybody waiting, and with fewer and fewer who do."""
    shared = replace(stage, cast=replace(stage.cast, waits=False))
    whole = float(drawing.steps(stage, causes).mean())
    total, alone, means = _shared(shared, causes, drawing)
    steady = float(stage.parts.finished(stage.ends(means))[0])
    return Amplified(steady - stage.seconds, alone - steady, total - alone, whole - total)


def _shared(stage: Stage, causes: Sequence[Straggler], drawing: Drawing) -> tuple[float, float, Work]:
    """The mean step of groups that share their work, that of replicas alone, and the mean of their work."""
    total = alone = 0.0
    means = [0.0, 0.0, 0.0]
    for work in drawing.work(stage, causes):
        ends, trials = stage.ends(work), work.slower.shape[1]
        total += float(stage.parts.finished(ends).sum()) / drawing.number
        alone += float(stage.parts.finished(ends.alone).mean()) * trials / drawing.number
        for place, part in enumerate(_mean(work)):
            means[place] = means[place] + part * trials / drawing.number
    return total, alone, Work(*map(np.asarray, means))


def _mean(work: Work) -> tuple[Floats, ...]:
    """The work of the mean micro-batch, step and replica, in the same axes."""
    durations, delays = (part.mean(axis=(3, 4, 5), keepdims=True) for part in work[:2])
    return durations, delays, work.slower.mean(axis=(1, 2), keepdims=True)
