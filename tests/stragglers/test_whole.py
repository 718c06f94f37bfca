"""Is a whole training as long as formulas and published trainings say, and do curves rise as they must?"""

from __future__ import annotations

import math

import numpy as np
import pytest

from commsim.errors import InputError
from commsim.stragglers.curve import curve
from commsim.stragglers.kinds import Failures, Jitter, SlowRank, Variation
from commsim.stragglers.kinds.failures import best_interval
from commsim.stragglers.laws import Lognormal
from commsim.stragglers.maxima import Maximum
from commsim.stragglers.parts import parts
from commsim.stragglers.run import run
from commsim.stragglers.whole import drawn_with, whole
from tests.stragglers.stages import APART, PIPED, step

HOUR = 3600.0


@pytest.mark.parametrize(
    ("restart", "checkpoint", "writing"), [(600.0, 1800.0, 0.0), (600.0, 1800.0, 60.0), (1800.0, 7200.0, 300.0)]
)
def test_failures_drawn_one_by_one_meet_the_formula(restart: float, checkpoint: float, writing: float) -> None:
    failures, gpus, work = Failures(restart, checkpoint, writing=writing), 16_384, 400 * checkpoint
    drawn = drawn_with(failures, work, gpus, np.random.default_rng(7))
    assert drawn.mean() / work == pytest.approx(1 + failures.lost(gpus), abs=4 * drawn.std() / drawn.size**0.5 / work)


def test_llama_3_made_use_of_more_than_nine_tenths_of_its_time() -> None:
    """54 days, 419 interruptions, 16,384 GPUs (section 3.3.4), as by restarts of 3 min and checkpoints of 10 s."""
    failures = Failures(restart=180.0, writing=10.0)
    assert failures.between(16_384) == pytest.approx(54 * 24 * HOUR / 419)
    assert 1 / (1 + failures.lost(16_384)) > 0.9
    assert failures.interval(16_384) == pytest.approx(math.sqrt(2 * 10 * 54 * 24 * HOUR / 419), rel=0.1)


@pytest.mark.parametrize("writing", [10.0, 60.0, 600.0])
def test_no_other_interval_costs_less(writing: float) -> None:
    best = Failures(restart=300.0, writing=writing)
    interval = best_interval(writing, best.between(16_384))
    for other in (0.8, 1.25):
        assert Failures(300.0, other * interval, writing=writing).lost(16_384) > best.lost(16_384)


def test_intervals_at_their_ends() -> None:
    assert best_interval(10.0, math.inf) == math.inf
    assert best_interval(300.0, 100.0) == 100.0
    assert Failures(60.0, 600.0, per_gpu_hour=0.0, writing=6.0).lost(8) == pytest.approx(0.01)
    assert Failures(60.0, writing=6.0, per_gpu_hour=0.0).lost(8) == 0.0


def test_a_whole_training() -> None:
    failures = Failures(restart=600.0, checkpoint=1800.0, per_gpu_hour=0.01)
    known = run(step(PIPED), [Jitter(0.02), failures], steps=200)
    found = whole(known, 1e12)
    assert found.steps == math.ceil(1e12 / known.estimate.setting.tokens_per_step)
    assert found.work == pytest.approx(found.steps * known.mean)
    assert found.mean == pytest.approx(found.work * (1 + known.lost))
    assert found.failures == pytest.approx(found.mean * 0.01 * 32 / HOUR)
    assert found.quantile(0.05) < found.quantile(0.5) < found.quantile(0.95)
    assert found.quantile(0.5) == pytest.approx(found.mean, rel=0.02)
    assert found.useful == pytest.approx(1 / (1 + known.lost))


def test_a_training_without_failures_is_its_work() -> None:
    found = whole(run(step(PIPED), [], steps=2), 1e9)
    assert (found.mean, found.failures, found.useful) == (found.work, 0.0, 1.0)
    assert found.quantile(0.95) == found.work


def test_more_gpus_never_help() -> None:
    points = curve(step(PIPED), [Jitter(0.05), Variation(0.05), Failures(600.0, 1800.0)], most=4096)
    assert [point.gpus for point in points] == [8 * 2**power for power in range(10)]
    means = [point.slowdown for point in points]
    assert np.all(np.diff(means) > -3 * np.array([point.error for point in points[1:]]))
    assert np.all(np.diff([point.lost for point in points]) > 0)
    assert all(1 < point.p50 <= point.p95 <= point.p99 for point in points[2:])


def test_a_curve_meets_the_exact_integral() -> None:
    """One stage: the largest of all ranks' factors, up to 100,000 GPUs."""
    known, points = parts(step(APART)), curve(step(APART), [Variation(0.03)])
    assert points[-1].gpus == 100_000
    compute = float(known.compute.sum()) * known.program.dims[2]
    for point in points:
        expected = 1 + (Maximum(Lognormal(0.03), point.gpus).mean - 1) * compute / known.seconds
        assert point.slowdown == pytest.approx(expected, abs=4 * point.error), point.gpus


def test_a_curve_begins_where_whoever_is_named_is_there() -> None:
    named, counted = SlowRank(ranks=(31,)), SlowRank(count=20)
    assert [point.gpus for point in curve(step(PIPED), [named], most=64)] == [32, 64]
    assert [point.gpus for point in curve(step(PIPED), [counted], most=64)] == [32, 64]


def test_curves_refuse_what_is_not_there() -> None:
    with pytest.raises(InputError, match="curve: most"):
        curve(step(PIPED), [], most=4)
    with pytest.raises(InputError, match="curve: causes"):
        curve(step(PIPED), [SlowRank(ranks=(31,))], most=16)
    for tokens in (0.0, -1.0, math.inf):
        with pytest.raises(InputError, match="tokens"):
            whole(run(step(PIPED), [], steps=2), tokens)
    both = run(step(PIPED), [Failures(1.0, 2.0), Failures(1.0, 3.0)], steps=2)
    with pytest.raises(InputError, match="2 kinds"):
        whole(both, 1e9)
    with pytest.raises(InputError, match="failures: checkpoint: nothing; the time between two"):
        Failures(restart=60.0)
