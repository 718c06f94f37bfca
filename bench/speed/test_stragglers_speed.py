"""How long does it take to draw what stragglers cost?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from commsim.collectives.algorithms import ALGORITHMS
from commsim.collectives.algorithms.table import Group
from commsim.collectives.kinds import ALL_GATHER, ALL_REDUCE
from commsim.stragglers.cast import Cast, Drawn
from commsim.stragglers.kinds import Jitter
from commsim.stragglers.laws import Gamma, Lognormal
from commsim.stragglers.maxima import Maximum, one_by_one
from commsim.stragglers.parts import Parts
from commsim.stragglers.propagation import drawn, through
from commsim.stragglers.simulate import Stage
from commsim.training.pipeline import compiled

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

    from commsim.collectives.kinds import Collective
    from commsim.stragglers.laws import Law

RANKS, STEPS = 16_384, 10_000


@pytest.mark.parametrize("law", [Lognormal(0.02), Gamma(100.0)], ids=["lognormal", "gamma"])
def test_barriers_by_direct_maxima(benchmark: BenchmarkFixture, law: Law) -> None:
    benchmark(Maximum(law, RANKS).sample, np.random.default_rng(0), STEPS)


def test_barriers_by_brute_force(benchmark: BenchmarkFixture) -> None:
    """Every rank of every step drawn, 164 million draws."""
    benchmark(one_by_one, Lognormal(0.02), RANKS, np.random.default_rng(0), STEPS)


@pytest.mark.parametrize("trials", [250, 1000])
def test_pipelines_with_jitter(benchmark: BenchmarkFixture, trials: int) -> None:
    """16 stages, 128 replicas, 32 micro-batches: 131 million operations for 1,000 trials, each with its own draw."""
    stages, replicas, microbatches = 16, 128, 32
    nothing = np.zeros(stages)
    compute = np.ones((2, 1, stages))
    known = Parts(compiled("1f1b", stages, microbatches), compute, 0 * compute, nothing, 0.0, nothing, nothing)
    stage = Stage(known, Cast(stages, replicas, 1, ()), known.seconds)
    (effect,) = Jitter(0.015).effects
    benchmark(stage.steps, [Drawn(effect, np.random.default_rng(0))], trials)


def test_exact_maximum(benchmark: BenchmarkFixture) -> None:
    benchmark(lambda: Maximum(Lognormal(0.02), RANKS).mean)


@pytest.mark.parametrize(
    ("algorithm", "op", "ranks", "trials"), [("ring", ALL_REDUCE, 576, 100), ("bruck", ALL_GATHER, 16_384, 10)]
)
def test_max_plus(benchmark: BenchmarkFixture, algorithm: str, op: Collective, ranks: int, trials: int) -> None:
    schedule = ALGORITHMS[algorithm].schedule(op, Group(ranks))
    noise = drawn(Lognormal(0.1), np.random.default_rng(0))
    benchmark(through, schedule, np.zeros((ranks, trials)), work=noise)
