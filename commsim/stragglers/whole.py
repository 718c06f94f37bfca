"""How long does a whole training take, with failures and restarts?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from commsim.errors import InputError
from commsim.stragglers.kinds import Failures

if TYPE_CHECKING:
    from numpy.random import Generator

    from commsim.stragglers.cast import Ints
    from commsim.stragglers.laws.law import Floats
    from commsim.stragglers.run import Run

_TRIALS = 2000
_MOST_FAILURES = 2 * 10**6
"""Failures drawn at most, over all trials."""


@dataclass(frozen=True, eq=False)
class Whole:
    """A training of so many tokens: its work, s, and how long it takes with failures, s: [trial] and on average.

    interval: work between two checkpoints, s; between: mean time between failures, s (both infinite without any).
    """

    tokens: float
    steps: int
    work: float
    mean: float
    seconds: Floats
    interval: float
    between: float

    @property
    def failures(self) -> float:
        """How many failures are expected."""
        return self.mean / self.between

    @property
    def useful(self) -> float:
        """The share of the time in which it gets on: what is called effective training time, or goodput."""
        return self.work / self.mean

    def quantile(self, chance: float) -> float:
        """Return the time that this share of the trainings does not exceed, s."""
        return float(np.quantile(self.seconds, chance))


def whole(run: Run, tokens: float, *, seed: int | None = None) -> Whole:
    """Return how long a training of so many tokens takes, in steps as long as the run's and with its failures.

    Its mean is Daly's formula, its trials are drawn failure by failure. InputError for no tokens, and for several kinds
    of failures.
    """
    if not 0 < tokens < math.inf:
        raise InputError("tokens", tokens, "a finite number above 0 belongs here")
    kinds = [cause for cause in run.causes if isinstance(cause, Failures)]
    if len(kinds) > 1:
        raise InputError("failures", f"{len(kinds)} kinds", "one kind of failures belongs in a training")
    steps = math.ceil(tokens / run.estimate.setting.tokens_per_step)
    work, gpus = steps * run.mean, run.estimate.setting.system.gpus
    if not kinds:
        return Whole(tokens, steps, work, work, np.full(1, work), math.inf, math.inf)
    (failures,) = kinds
    rng = np.random.default_rng(run.seed if seed is None else seed)
    drawn = drawn_with(failures, work, gpus, rng)
    return Whole(
        tokens, steps, work, work * (1 + failures.lost(gpus)), drawn, failures.interval(gpus), failures.between(gpus)
    )


def drawn_with(failures: Failures, work: float, gpus: int, rng: Generator, trials: int = _TRIALS) -> Floats:
    """Return how long so much work takes with failures on so many GPUs, [trial] in s.

    Each stretch of work with its checkpoint is begun again until no failure falls into it, and so is each restart.
    """
    between, interval = failures.between(gpus), min(failures.interval(gpus), work)
    stretch, stretches = interval + failures.writing, max(1, round(work / interval))
    if between == math.inf:
        return np.full(trials, stretches * stretch)
    trials = int(max(20, min(trials, _MOST_FAILURES * between / work)))
    failed = rng.negative_binomial(stretches, math.exp(-stretch / between), trials)
    again = _failed_restarts(failed, failures.restart / between, rng)
    lost = _until_failure(failed, stretch, between, rng) + _until_failure(again, failures.restart, between, rng)
    found: Floats = stretches * stretch + failed * failures.restart + lost
    return found


def _failed_restarts(failed: Ints, restart: float, rng: Generator) -> Ints:
    """How many restarts of each trial are hit by another failure."""
    found = np.zeros_like(failed)
    some = failed > 0
    if restart:
        found[some] = rng.negative_binomial(failed[some], math.exp(-restart))
    return found


def _until_failure(many: Ints, stretch: float, between: float, rng: Generator) -> Floats:
    """The time that so many stretches last until their failure, summed for each trial: exponential, cut off."""
    trial = np.repeat(np.arange(many.size), many)
    chance = rng.random(trial.size) * -math.expm1(-stretch / between)
    lost = np.bincount(trial, weights=-between * np.log1p(-chance), minlength=many.size)
    return np.asarray(lost, dtype=float)
