"""Do causes add up to what others measured on whole clusters?"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pytest

from commsim.errors import InputError
from commsim.stragglers.drawing import Drawing
from commsim.stragglers.effects import Episodes
from commsim.stragglers.kinds import ExpertImbalance
from commsim.stragglers.laws import Lognormal
from commsim.stragglers.laws.integral import Place, expected
from commsim.stragglers.parts import expert_shares
from commsim.stragglers.presets import POPULATION, preset
from commsim.stragglers.run import run
from commsim.training.axes import Data, Expert, Pipeline, Tensor
from tests.stragglers.stages import FLAT, bare, step
from tests.training.settings import estimated

if TYPE_CHECKING:
    from commsim.training.estimate import Estimate


def test_how_slow_jobs_are() -> None:
    """3,079 jobs of ByteDance (OSDI 2025, section 4), within 15 %: how many, how much is wasted, p90 and p99 of it."""
    wasted = expected(POPULATION, lambda above: above / (1 + above), power=0, place=Place(1, 1))
    p90, p99 = (float(above / (1 + above)) for above in POPULATION.quantile([0.9, 0.99]))
    many = float(POPULATION.above(0.1))
    rest = expected(POPULATION, lambda above: above * (above >= 0.1), power=1, place=Place(1, 1))
    assert (many, wasted, p90, p99) == pytest.approx((0.425, 0.104, 0.213, 0.450), rel=0.15)
    assert 1 + rest / many == pytest.approx(1.28, rel=0.15)


def test_steps_of_a_large_job() -> None:
    """PRISM (2025): p5, p50, p95 of 18.6, 18.8 and 19.3 s in production on 64K GPUs, within 5 %."""
    stage = bare(8, 16, 1024, 1.0, 2.0)
    wide = replace(stage, cast=replace(stage.cast, members=8))
    seconds = Drawing(60, 1, 9).steps(wide, preset("dedicated").causes)
    p5, p50, p95 = np.quantile(seconds, [0.05, 0.5, 0.95])
    assert (p5 / p50, p95 / p50) == pytest.approx((18.6 / 18.8, 19.3 / 18.8), rel=0.05)


def test_how_often_a_shared_network_is_congested() -> None:
    """42 of 107 jobs of four nodes and five hours (Greyhound, ATC 2025, table 1): 0.1 times an hour."""
    assert -np.expm1(-0.1 * 5) == pytest.approx(42 / 107, rel=0.05)
    assert Episodes(0.1, 24 * 60).share == pytest.approx(0.04, rel=0.05)


def test_ranks_of_experts_are_as_uneven_as_measured() -> None:
    """DeepSeek-R1 on 32 ranks: 491.65 tokens of 1,024 on average are the standard deviation (TensorRT-LLM), to 5 %."""
    load = Lognormal(1.07).sample(np.random.default_rng(3), (3000, 32, 8)).sum(axis=2)
    spread = (load.std(axis=1) / load.mean(axis=1)).mean()
    assert spread == pytest.approx(491.65 / 1024, rel=0.05)


@cache
def experts(imbalance: float = 1.0) -> Estimate:
    axes = (Tensor(1), Expert(8), Data(16), Pipeline(2))
    return estimated("mixtral-8x7b", *axes, global_batch=256, imbalance=imbalance)


@pytest.mark.parametrize("excess", [0.5, 1.0])
def test_shares_of_experts_are_the_estimates(excess: float) -> None:
    """A run with the imbalance as a cause takes as long as the estimate with it in its recipe."""
    found = run(experts(), [ExpertImbalance(excess=excess)], steps=2)
    assert found.mean == pytest.approx(experts(1 + excess).step_time, rel=0.01)
    (cause,) = found.causes
    assert isinstance(cause, ExpertImbalance)
    assert (cause.share, cause.exchange) == pytest.approx(expert_shares(experts()))


def test_shares_that_are_given_stay() -> None:
    given = ExpertImbalance(share=0.3, exchange=0.0)
    assert given.on(experts()) is given
    assert ExpertImbalance(share=0.3).on(experts()).share == 0.3


def test_a_model_without_experts_has_no_share() -> None:
    assert expert_shares(step(FLAT)) == (0.0, 0.0)
    with pytest.raises(InputError, match="a model with experts"):
        run(step(FLAT), [ExpertImbalance()], steps=1)
