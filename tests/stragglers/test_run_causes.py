"""Do causes cost what they must, exactly where that is known?"""

from __future__ import annotations

import numpy as np
import pytest

from commsim.stragglers.effects import Effect, Target
from commsim.stragglers.kinds import (
    DataLoading,
    Effected,
    Jitter,
    LastStage,
    OsNoise,
    Pause,
    SlowLink,
    SlowRank,
    Variation,
)
from commsim.stragglers.laws import Constant, Lognormal
from commsim.stragglers.maxima import Maximum, hit_at_all
from commsim.stragglers.parts import parts
from commsim.stragglers.propagation import between_barriers
from commsim.stragglers.run import run
from tests.stragglers.stages import APART, FLAT, bare, drawn, step


def test_everything_slower_is_a_longer_step_by_as_much() -> None:
    stage = bare(4, 8, 2)
    twice = Effected((Effect("compute", "job", Constant(2.0), Target("all")),))
    assert drawn(stage, twice, 2) == pytest.approx(np.full(2, 2 * (8 + 3) * 2.0))


def test_gpus_that_vary_meet_the_exact_integral() -> None:
    """Without a pipeline the step waits for the slowest of all ranks; only what is computed is slower."""
    known, sigma = parts(step(APART)), 0.05
    found = run(step(APART), [Variation(sigma)], steps=4000)
    slowest = Maximum(Lognormal(sigma), 32).mean
    passes = known.program.dims[2] * (known.said.sum() + known.compute.sum() * slowest)
    assert found.mean == pytest.approx(known.before + passes + float((known.data + known.rest)[0]), abs=3 * found.error)


def test_causes_of_one_rank_multiply_before_its_group_waits() -> None:
    """Two lognormal factors of each rank are one with the square sum of their sigmas (facts of a product)."""
    both = run(step(FLAT), [Variation(0.03), Variation(0.04)], steps=4000)
    one = run(step(FLAT), [Variation(0.05)], steps=4000)
    assert both.mean == pytest.approx(one.mean, abs=3 * np.hypot(both.error, one.error))


def test_jitter_without_a_pipeline_is_a_barrier_once_a_step() -> None:
    replicas, microbatches, law = 16, 4, Lognormal(0.1)
    found = drawn(bare(1, microbatches, replicas), Jitter(0.1), 3000)
    expected = between_barriers(law, replicas, 2 * microbatches, 3000, np.random.default_rng(32))
    assert found.mean() == pytest.approx(expected.mean(), abs=3 * np.hypot(found.std(), expected.std()) / 3000**0.5)


@pytest.mark.parametrize(
    ("sigma", "shape", "replicas", "expected"),
    [
        (0.05, (4, 8), 1, 1.0165),
        (0.05, (4, 8), 16, 1.0340),
        (0.05, (4, 8), 64, 1.0400),
        (0.05, (8, 24), 1, 1.0278),
        (0.05, (8, 24), 16, 1.0372),
        (0.05, (8, 24), 64, 1.0409),
        (0.1, (8, 24), 1, 1.0572),
        (0.1, (8, 24), 16, 1.0756),
        (0.1, (8, 24), 64, 1.0816),
    ],
)
def test_jitter_of_pipelines_that_wait_for_each_other(
    sigma: float, shape: tuple[int, int], replicas: int, expected: float
) -> None:
    """Backward twice as long as forward: ratios to the step without noise, simulated elsewhere, to 0.0003."""
    stage = bare(*shape, replicas, 1.0, 2.0)
    found = drawn(stage, Jitter(sigma), 1600 if replicas == 1 else 150) / stage.seconds
    assert found.mean() == pytest.approx(expected, abs=3 * np.hypot(0.0003, found.std() / found.size**0.5))


@pytest.mark.parametrize(("slow", "expected"), [(0, 118.5), (3, 123.0), (7, 129.0)])
def test_an_early_slow_rank_hides_in_its_warmup(slow: int, expected: float) -> None:
    """8 stages, 24 micro-batches, forward 1 and backward 2: 93 when healthy, and 1.5 times as slow on one stage."""
    stage = bare(8, 24, 2, 1.0, 2.0)
    assert stage.seconds == pytest.approx(93.0)
    assert drawn(stage, SlowRank(factor=1.5, ranks=(slow + 8,)), 2) == pytest.approx(np.full(2, expected))


@pytest.mark.parametrize("link", [0, 2])
def test_a_slow_link_delays_nearly_every_micro_batch(link: int) -> None:
    """2 d (floor((m - (p - 1 - s)) / 2) + 1), exact for equal stages."""
    stages, microbatches, delay = 4, 8, 0.1
    found = drawn(bare(stages, microbatches, 3), SlowLink(delay=delay, links=(link,)), 2)
    late = 2 * delay * ((microbatches - (stages - 1 - link)) // 2 + 1)
    assert found == pytest.approx(np.full(2, 2.0 * (microbatches + stages - 1) + late))


@pytest.mark.parametrize(("microbatches", "expected"), [(4, 1.1749), (8, 1.2598), (16, 1.3223)])
def test_the_loss_on_the_last_stage(microbatches: int, expected: float) -> None:
    """ByteDance's job ST by its published factors, over the step in which each pass takes the mean of all stages."""
    slow, forward, backward = LastStage(2.07, 1.41), 1.0, 2.0
    found = drawn(bare(4, microbatches, 1, forward, backward), slow, 1)[0]
    mean = (3 * (forward + backward) + 2.07 * forward + 1.41 * backward) / 4
    share = found / ((microbatches + 3) * mean)
    assert share == pytest.approx(expected, abs=5.1e-5)


def test_pauses_of_ranks_that_do_not_plan_them() -> None:
    """Without a pipeline: g (1 - (1 - 1/n)^N) more than without pauses, planned g / n."""
    every, lasting, ranks = 50.0, 0.5, 64
    stage = bare(1, 4, ranks)
    alone = drawn(stage, Pause(every=every, seconds=lasting), 20_000)
    error = alone.std() / alone.size**0.5
    assert alone.mean() - stage.seconds == pytest.approx(lasting * hit_at_all(1 / every, ranks), abs=3 * error)
    planned = drawn(bare(4, 8, 16), Pause(every=1.0, share=0.5, planned=True), 2)
    assert planned == pytest.approx(np.full(2, 1.5 * bare(4, 8, 16).seconds))


def test_late_data_delays_the_first_forward() -> None:
    found = drawn(bare(4, 8, 2), DataLoading(Constant(0.7)), 2)
    assert found == pytest.approx(np.full(2, bare(4, 8, 2).seconds + 0.7))


def test_interruptions_take_their_share_of_the_work() -> None:
    """A lone rank: rate x duration of all that it does, within three errors."""
    found = drawn(bare(1, 8, 1), OsNoise(100.0, Lognormal(0.5, mean=1e-4), seen=0.5), 2000)
    assert found.mean() == pytest.approx(16 * (1 + 100 * 1e-4 * 0.5), abs=3 * found.std() / 2000**0.5)
    sums = 16 * 50 * (Lognormal(0.5, mean=1e-4).sd ** 2 + 1e-8)  # variance of a compound Poisson sum
    assert found.var() == pytest.approx(sums, rel=0.15)
