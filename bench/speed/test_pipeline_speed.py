"""How long does it take to compile and to solve a pipeline?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from commsim.training.pipeline import compiled, makespan, per_chunk, per_link
from commsim.training.pipeline.compiling import _compiled

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

STAGES, MICROBATCHES = 16, 32


@pytest.mark.parametrize(("schedule", "microbatches", "virtual"), [("1f1b", 32, 1), ("interleaved", 512, 8)])
def test_compile(benchmark: BenchmarkFixture, schedule: str, microbatches: int, virtual: int) -> None:
    def afresh() -> None:
        _compiled.cache_clear()
        compiled(schedule, STAGES, microbatches, virtual)

    benchmark(afresh)


@pytest.mark.parametrize("plans", [1, 64, 512, 4096])
def test_plans(benchmark: BenchmarkFixture, plans: int) -> None:
    """As a search asks: each plan with stages and links of its own. Plans per second are added to the record."""
    rng = np.random.default_rng(0)
    program = compiled("1f1b", STAGES, MICROBATCHES)
    durations = per_chunk(rng.random((STAGES, plans)), rng.random((STAGES, plans)))
    delays = per_link(program, rng.random((STAGES, plans)))
    benchmark(makespan, program, durations, delays)
    if benchmark.stats is not None:  # with --benchmark-disable it is run once and not timed
        benchmark.extra_info["per_second"] = plans / benchmark.stats.stats.median


@pytest.mark.parametrize("trials", [256, 4096])
def test_trials(benchmark: BenchmarkFixture, trials: int) -> None:
    """As stragglers ask: each operation with a duration of its own."""
    durations = np.random.default_rng(0).random((2, STAGES, MICROBATCHES, trials))
    program = compiled("1f1b", STAGES, MICROBATCHES)
    benchmark(makespan, program, durations, 0.01)
    if benchmark.stats is not None:  # with --benchmark-disable it is run once and not timed
        benchmark.extra_info["per_second"] = trials / benchmark.stats.stats.median
