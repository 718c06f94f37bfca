"""What do causes of lateness do to the time of a step?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from commsim.errors import InputError
from commsim.stragglers.attribution import Attributed, attributed
from commsim.stragglers.drawing import Drawing, staged
from commsim.stragglers.kinds import Failures, Straggler
from commsim.units import show

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from commsim.stragglers.laws.law import Floats
    from commsim.stragglers.simulate import Stage
    from commsim.training.estimate import Estimate


@dataclass(frozen=True, eq=False)
class Run:
    """Many steps of an estimate with causes at work, each at a random moment.

    `seconds` [step] are their times, `ideal` that of a step in which nobody is late. They are steps of so many `jobs`,
    as many of each: what lasts for a job is drawn once for it. As many jobs as steps make the quantiles those over
    jobs and steps together. Fewer steps than were `asked` for are there when the run was interrupted.
    """

    estimate: Estimate
    causes: tuple[Straggler, ...]
    seed: int
    jobs: int
    seconds: Floats
    ideal: float
    asked: int

    @property
    def mean(self) -> float:
        """Mean time of a step, s."""
        return float(self.seconds.mean())

    @property
    def error(self) -> float:
        """Standard error of the mean, s: by the means of jobs where there are several, for their steps are alike."""
        apart = self.by_job if self.jobs > 1 else self.seconds
        return float(apart.std(ddof=1) / math.sqrt(apart.size)) if apart.size > 1 else math.inf

    @cached_property
    def by_job(self) -> Floats:
        """The mean step of each job, [job] in s."""
        return np.array([float(steps.mean()) for steps in np.array_split(self.seconds, self.jobs)])

    def quantile(self, chance: float) -> float:
        """Return the time that this share of the steps does not exceed, s; InputError unless between 0 and 1."""
        if not 0 <= chance <= 1:
            raise InputError("quantile", chance, "between 0 and 1 belongs here")
        return float(np.quantile(self.seconds, chance))

    def quantile_error(self, chance: float) -> float:
        """Return the standard error of a quantile, s, for independent steps: half of what its own error spans."""
        away = math.sqrt(chance * (1 - chance) / self.seconds.size)
        low, high = (min(max(chance + sign * away, 0.0), 1.0) for sign in (-1, 1))
        return (self.quantile(high) - self.quantile(low)) / 2

    def slowdown(self, chance: float | None = None) -> float:
        """Return the mean step over the ideal one, or that of a quantile of the steps."""
        if chance is not None:
            return self.quantile(chance) / self.ideal
        return float((self.seconds / self.ideal).mean())  # of steps that nothing slows exactly 1

    @property
    def lost(self) -> float:
        """Time lost to failures, in parts of the time of the steps."""
        gpus = self.estimate.setting.system.gpus
        return sum(cause.lost(gpus) for cause in self.causes if isinstance(cause, Failures))

    @property
    def tokens_per_second(self) -> float:
        """Tokens per second that are expected of all GPUs, failures counted."""
        return self.estimate.setting.tokens_per_step / (self.mean * (1 + self.lost))

    @property
    def interrupted(self) -> bool:
        """Whether there are fewer steps than were asked for."""
        return self.seconds.size < self.asked

    @cached_property
    def stage(self) -> Stage:
        """Where the steps are drawn."""
        return staged(self.estimate)

    @property
    def drawing(self) -> Drawing:
        """How the steps are drawn."""
        return Drawing(self.seconds.size, self.jobs, self.seed)

    @cached_property
    def by_cause(self) -> tuple[Attributed, ...]:
        """What each cause does alone, and what remains without it; they do not add up."""
        return attributed(self.stage, self.causes, self.drawing.fewer(self.stage))

    def __str__(self) -> str:
        """The run in a few lines."""
        levels = ", ".join(f"p{100 * chance:g} {show(self.quantile(chance), 's', 4)}" for chance in (0.5, 0.95, 0.99))
        return "\n".join(
            [
                f"{self.seconds.size} steps, seed {self.seed}, {len(self.causes)} causes",
                f"nobody late {show(self.ideal, 's', 4)}; mean {show(self.mean, 's', 4)} +- {show(self.error, 's', 2)}",
                f"{levels}; slowdown {self.slowdown():.4f}",
            ]
        )


LONGEST = 1e12
"""Seconds of a step, 30,000 years, beyond which somebody made a mistake."""


def run(
    estimate: Estimate,
    causes: Iterable[Straggler],
    *,
    steps: int = 10_000,
    seed: int = 0,
    jobs: int | None = None,
    done: Callable[[int], object] | None = None,
) -> Run:
    """Return so many steps of an estimate with causes at work; the same seed draws the same.

    They are spread over so many jobs, each step one of its own unless said. `done` is told how many steps there are, as
    they come; a KeyboardInterrupt keeps those. InputError for what is no cause, for a rank, stage or link that is not
    there, for no steps, for more jobs than steps, and for steps without end.
    """
    listed = tuple(causes)
    for one in listed:
        if not isinstance(one, Straggler):
            raise InputError("causes", one, "causes such as Jitter(0.02) or SlowRank(factor=1.3) belong here")
    known = tuple(one.on(estimate) for one in listed)
    drawing, stage = Drawing(steps, steps if jobs is None else jobs, seed), staged(estimate)
    if stage.cast.stages == 1 and any(effect.target.each == "link" for one in known for effect in one.effects):
        raise InputError("cause: link", "1 stage", "a link joins stages: pipeline=N belongs in the plan")
    seconds = _collected(drawing, stage, known, done)
    if not seconds.max() < LONGEST:  # nor may it be no number at all
        raise InputError("causes", float(seconds.max()), f"steps that end within {LONGEST:g} s belong here")
    full = -(-steps // drawing.jobs)
    left = drawing.jobs if seconds.size == steps else max(1, seconds.size // full)
    return Run(estimate, known, seed, left, seconds, stage.seconds, steps)


def _collected(
    drawing: Drawing, stage: Stage, causes: tuple[Straggler, ...], done: Callable[[int], object] | None
) -> Floats:
    """The steps, or those that were there when somebody interrupted; KeyboardInterrupt when there were none."""
    found: list[Floats] = []
    try:
        for some in drawing.finished(stage, causes):
            found.append(some)
            if done:
                done(sum(map(len, found)))
    except KeyboardInterrupt:
        if not found:
            raise
    return np.concatenate(found)
