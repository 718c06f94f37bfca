"""How long do replays take? Run by name: `pytest bench/speed/test_replay_speed.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commsim.measurement.traces.events import UNNUMBERED, Rows, assembled
from commsim.measurement.traces.steps import BACKWARD, CLIP, FORWARD, OPTIMIZER, StepTrace
from commsim.stragglers.replay.events import replay_events
from commsim.stragglers.replay.steps import replay_steps

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture


def test_steps_of_1024_workers(benchmark: BenchmarkFixture) -> None:
    """8 stages x 128 replicas, 32 micro-batches, 20 steps: 1.3 million passes in 153 scenarios."""
    rng, size, once = np.random.default_rng(0), (8, 32, 20, 128), (8, 1, 20, 128)
    seconds = {FORWARD: rng.lognormal(0, 0.05, size), BACKWARD: 2 * rng.lognormal(0, 0.05, size)}
    seconds |= {CLIP: np.full(once, 0.01), OPTIMIZER: np.full(once, 0.1)}
    trace = StepTrace(seconds, np.arange(1024).reshape(8, 128), tuple(range(20)))
    found = benchmark(replay_steps, trace)
    assert found.slowdown > 1


def test_collectives_of_64_ranks(benchmark: BenchmarkFixture) -> None:
    """2,000 collectives: 128,000 arrivals in 70 scenarios."""
    ranks, meetings = 64, 2000
    work = np.random.default_rng(0).lognormal(0, 0.05, (meetings, ranks))
    ends = np.cumsum(work.max(axis=1) + 0.1)
    start = np.append(0.0, ends[:-1])[:, None] + work
    size = start.size
    rows = Rows(
        rank=np.tile(np.arange(ranks), meetings),
        step=np.repeat(np.arange(meetings), ranks) // 10,
        name=np.full(size, "all_reduce"),
        group=np.full(size, "all"),
        number=np.full(size, UNNUMBERED),
        start=start.ravel(),
        seconds=(ends[:, None] - start).ravel(),
    )
    trace = assembled(rows, "made up")
    found = benchmark(replay_events, trace)
    assert found.slowdown is not None
