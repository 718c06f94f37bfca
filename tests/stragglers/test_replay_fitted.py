"""Are laws and causes recovered from steps that were drawn from them?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from commsim.errors import InputError
from commsim.measurement.traces import npz
from commsim.measurement.traces.calls import CallTrace
from commsim.measurement.traces.events import ALONE
from commsim.measurement.traces.steps import BACKWARD, FORWARD
from commsim.stragglers.causes import causes
from commsim.stragglers.kinds import Jitter, LastStage, Pause, SequenceImbalance, SharedJitter, SlowRank, Variation
from commsim.stragglers.laws import Gamma, Lognormal, Normal, Pareto, Weibull
from commsim.stragglers.replay.fitted import fitted, write
from commsim.stragglers.replay.goodness import fits
from tests.stragglers.test_replay_events import events
from tests.stragglers.traced import REPLICAS, SHAPE, STAGES, STEPS, even, trace

if TYPE_CHECKING:
    from pathlib import Path

    from commsim.stragglers.kinds import Straggler
    from commsim.stragglers.laws import Law
    from commsim.stragglers.replay.fitted import Fitted


@pytest.mark.parametrize(
    "law",
    [Normal(5.0, 0.5), Lognormal(0.8, 2.0), Gamma(2.5, 3.0), Weibull(0.7, 2.0), Weibull(4.0, 2.0), Pareto(3.0, 2.0)],
)
def test_the_law_that_was_drawn_is_the_best(law: Law) -> None:
    best = fits(law.sample(np.random.default_rng(0), 20_000))[0]
    assert type(best.law) is type(law)
    assert vars(best.law)[next(iter(vars(law)))] == pytest.approx(vars(law)[next(iter(vars(law)))], rel=0.03)
    assert best.law.mean == pytest.approx(law.mean, rel=0.03)
    assert best.chance > 0.01
    assert best.distance < 0.02


def test_what_no_law_describes_is_empirical() -> None:
    rng = np.random.default_rng(0)
    best = fits(np.concatenate([rng.normal(1.0, 0.01, 3000), rng.normal(2.0, 0.01, 1000)]))[0]
    assert best.name == "empirical"
    assert best.aic is None
    assert best.law.mean == pytest.approx(1.25, rel=0.01)
    assert best.distance < 0.01


def test_likelihood_is_that_of_scipy() -> None:
    from scipy import stats

    samples = np.random.default_rng(1).gamma(3.0, 2.0, 500)
    found = {one.name: one for one in fits(samples)}
    gamma, weibull = found["gamma"].law, found["weibull"].law
    assert isinstance(gamma, Gamma)
    assert isinstance(weibull, Weibull)
    by_gamma = stats.gamma.logpdf(samples, gamma.shape, scale=gamma.scale).sum()
    by_weibull = stats.weibull_min.logpdf(samples, weibull.shape, scale=weibull.scale).sum()
    assert found["gamma"].aic == pytest.approx(4 - 2 * by_gamma)
    assert found["weibull"].aic == pytest.approx(4 - 2 * by_weibull)
    assert stats.kstest(samples, "gamma", (gamma.shape, 0, gamma.scale)).statistic == pytest.approx(
        found["gamma"].distance
    )


def test_constant_times() -> None:
    assert fits([2.0] * 10)[0].law.mean == 2.0


@pytest.mark.parametrize("samples", [[1.0] * 7, [1.0] * 10 + [np.nan]])
def test_too_few_or_no_figures(samples: list[float]) -> None:
    with pytest.raises(InputError, match="at least 8"):
        fits(samples)


def of(kind: type[Straggler], found: Fitted) -> Straggler:
    """Return the one cause of a kind."""
    (one,) = (cause for cause in found.causes if isinstance(cause, kind))
    return one


@pytest.fixture(scope="module")
def drawn() -> Fitted:
    """Return what is found in steps with workers of 2 %, steps of 3 % and operations of 5 %, and one slow worker."""
    rng, seconds = np.random.default_rng(2), even()
    factors = rng.lognormal(0, 0.02, (STAGES, 1, 1, REPLICAS)) * rng.lognormal(0, 0.03, (1, 1, STEPS, 1))
    factors[2, :, :, 5] *= 1.4
    for op in (FORWARD, BACKWARD):
        seconds[op] = seconds[op] * factors * rng.lognormal(0, 0.05, SHAPE)
    return fitted(trace(seconds))


def test_spreads_are_told_apart(drawn: Fitted) -> None:
    """Within two standard errors of so few workers and steps."""
    variation, shared, jitter = of(Variation, drawn), of(SharedJitter, drawn), of(Jitter, drawn)
    assert vars(variation)["sigma"] == pytest.approx(0.02, rel=2 / np.sqrt(2 * STAGES * REPLICAS))
    assert vars(shared)["sigma"] == pytest.approx(0.03, rel=2 / np.sqrt(2 * STEPS))
    assert vars(jitter)["sigma"] == pytest.approx(0.05, rel=0.03)


def test_a_slow_worker_is_no_variation(drawn: Fitted) -> None:
    slow = of(SlowRank, drawn)
    assert vars(slow)["ranks"] == (2 * REPLICAS + 5,)
    assert vars(slow)["factor"] == pytest.approx(1.4, rel=0.05)


def test_causes_are_written_for_stragglers(drawn: Fitted, tmp_path: Path) -> None:
    write(drawn.causes, tmp_path / "causes.yaml")
    assert causes(tmp_path / "causes.yaml") == drawn.causes


def test_a_place_that_cannot_be_written(drawn: Fitted, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        write(drawn.causes, tmp_path / "absent" / "causes.yaml")


def test_pauses_and_sequences(tmp_path: Path) -> None:
    seconds, rng = even(), np.random.default_rng(1)
    length = rng.choice([0.8, 1.0, 1.9], (1, *SHAPE[1:]))
    for op in (FORWARD, BACKWARD):
        seconds[op] = seconds[op] * length * rng.lognormal(0, 0.01, SHAPE)
    found = fitted(trace(seconds))
    law = vars(of(SequenceImbalance, found))["law"]
    assert law.support == pytest.approx((0.8 / length.mean(), 1.9 / length.mean()), rel=0.02)
    seconds = even()
    seconds[FORWARD] = np.where(rng.random(SHAPE) < 0.01, 6.0, seconds[FORWARD])
    found = fitted(trace(seconds))
    assert vars(of(Pause, found))["seconds"] == pytest.approx(5.0)
    assert vars(of(Pause, found))["every"] == pytest.approx(
        STAGES * STEPS * REPLICAS / (seconds[FORWARD] == 6).sum(), 1e-3
    )
    write(found.causes, tmp_path / "c.yaml")
    assert causes(tmp_path / "c.yaml") == found.causes


@pytest.mark.data
def test_published_factors_of_the_last_stage(data: Path) -> None:
    """The loss layer makes the last stage 2.07 times as long forward, 1.41 backward (OSDI 2025, section 5.2)."""
    found = of(LastStage, fitted(npz.read(data / "stragglers/bytedance_opdur_ST.npz")))
    assert vars(found)["forward"] == pytest.approx(2.07, rel=0.01)
    assert vars(found)["backward"] == pytest.approx(1.41, rel=0.01)


def test_events_are_fitted_alike() -> None:
    rng = np.random.default_rng(2)
    work = np.array([1.0, 2.0])[None, :, None] * rng.lognormal(0, 0.03, (200, 2, 8))
    work[:, :, 3] *= 1.5
    found = fitted(events(work, np.full((200, 2), 0.1)))
    assert vars(of(SlowRank, found))["ranks"] == (3,)
    assert vars(of(Jitter, found))["sigma"] == pytest.approx(0.03, rel=0.05)


def test_events_that_nobody_shares_are_not_fitted() -> None:
    found = events(np.ones((20, 2, 8)), np.full((20, 2), 0.1))
    with pytest.raises(InputError, match="met the others"):
        fitted(replace(found, meeting=np.full_like(found.meeting, ALONE)))


def test_durations_alone_are_not_fitted() -> None:
    none = np.full(1, np.nan)
    calls = CallTrace(("x",), np.ones(1, dtype=int), np.ones((1, 2)), np.ones(1, dtype=bool), (0, 1), none, none)
    with pytest.raises(InputError, match="when each rank worked"):
        fitted(calls)


def test_jitter_is_no_variation() -> None:
    """Means over 96 passes of 10 % each differ by 1 % without anybody being slower."""
    rng = np.random.default_rng(7)
    seconds = {op: one * rng.lognormal(0, 0.1, one.shape) for op, one in even().items()}
    found = [vars(one)["sigma"] for one in fitted(trace(seconds)).causes if isinstance(one, Variation)]
    assert all(sigma < 0.006 for sigma in found)
