"""What do causes of lateness do to the time of a step?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from commsim.errors import InputError
from commsim.stragglers.cast import Cast, Drawn
from commsim.stragglers.kinds import Failures, Straggler
from commsim.stragglers.parts import parts
from commsim.stragglers.simulate import Stage
from commsim.units import show

if TYPE_CHECKING:
    from collections.abc import Iterable

    from commsim.stragglers.laws.law import Floats
    from commsim.training.estimate import Estimate

_MOST = 10**8


@dataclass(frozen=True, eq=False)
class Run:
    """Many steps of an estimate with causes at work, each at a random moment.

    `seconds` [step] are their times, `ideal` that of a step in which nobody is late. They are steps of so many `jobs`,
    as many of each: what lasts for a job is drawn once for it. As many jobs as steps make the quantiles those over
    jobs and steps together.
    """

    estimate: Estimate
    causes: tuple[Straggler, ...]
    seed: int
    jobs: int
    seconds: Floats
    ideal: float

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

    @cached_property
    def by_cause(self) -> tuple[tuple[Straggler, float, float], ...]:
        """Each cause with the slowdown of the mean step that it makes alone, and what remains of all without it.

        The draws are those of the run, so that the differences are the cause's own; they do not add up.
        """
        every = range(len(self.causes))
        return tuple(
            (self.causes[one], self._with([one]), self._with([other for other in every if other != one]))
            for one in every
        )

    def _with(self, some: list[int]) -> float:
        drawing = _Drawing(self.seconds.size, self.jobs, self.seed)
        drawn = drawing.steps(_stage(self.estimate), self.causes, some)
        return float((drawn / self.ideal).mean())

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


def run(
    estimate: Estimate, causes: Iterable[Straggler], *, steps: int = 10_000, seed: int = 0, jobs: int | None = None
) -> Run:
    """Return so many steps of an estimate with causes at work; the same seed draws the same.

    They are spread over so many jobs, each step one of its own unless said. InputError for what is no cause, for a
    rank, stage or link that is not there, for no steps, and for more jobs than steps.
    """
    listed = tuple(causes)
    for one in listed:
        if not isinstance(one, Straggler):
            raise InputError("causes", one, "causes such as Jitter(0.02) or SlowRank(factor=1.3) belong here")
    jobs = steps if jobs is None else jobs
    for name, given, least, most in (("steps", steps, 1, _MOST), ("seed", seed, 0, _MOST), ("jobs", jobs, 1, steps)):
        if not isinstance(given, int) or isinstance(given, bool) or not least <= given <= most:
            raise InputError(name, given, f"a whole number from {least} to {most} belongs here")
    stage = _stage(estimate)
    seconds = _Drawing(steps, jobs, seed).steps(stage, listed, list(range(len(listed))))
    return Run(estimate, listed, seed, jobs, seconds, stage.seconds)


def _stage(estimate: Estimate) -> Stage:
    known = parts(estimate)
    return Stage(known, Cast.of(estimate.setting.plan), known.seconds)


@dataclass(frozen=True)
class _Drawing:
    """How many steps are drawn, of how many jobs, from which seed."""

    number: int
    jobs: int
    seed: int

    def steps(self, stage: Stage, causes: tuple[Straggler, ...], some: list[int]) -> Floats:
        """Return the time of each step with some of the causes, s."""
        drawn = self._drawn(causes, some)
        if not drawn:
            return np.full(self.number, stage.seconds)
        if self.jobs == self.number:
            return stage.steps(drawn, self.number)
        sizes = [len(part) for part in np.array_split(np.arange(self.number), self.jobs)]
        return np.concatenate([stage.steps([_of_a_job(one) for one in drawn], size) for size in sizes])

    def _drawn(self, causes: tuple[Straggler, ...], some: list[int]) -> list[Drawn]:
        """Each effect with a generator of its own, whoever else is there."""
        seeds = np.random.SeedSequence(self.seed).spawn(len(causes))
        found = []
        for one in some:
            effects = causes[one].effects
            children = seeds[one].spawn(len(effects))
            found += [Drawn(effect, np.random.default_rng(child)) for effect, child in zip(effects, children)]
        return found


def _of_a_job(one: Drawn) -> Drawn:
    """What draws once for a job what lasts for it, and differently for the next."""
    return Drawn(one.effect, one.rng.spawn(1)[0], once=True) if one.effect.persistence == "job" else one
