"""Do causes say what they do, with the figures of those who measured them, and refuse what cannot be?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from commsim.errors import InputError
from commsim.stragglers.effects import Effect, Episodes, Target
from commsim.stragglers.kinds import (
    KINDS,
    Collisions,
    Congestion,
    DataLoading,
    Effected,
    ExpertImbalance,
    Failures,
    FlappingLink,
    Jitter,
    LastStage,
    OsNoise,
    Pause,
    SequenceImbalance,
    SharedJitter,
    SlowLink,
    SlowNetwork,
    SlowRank,
    Straggler,
    Throttling,
    Variation,
)
from commsim.stragglers.laws import Constant, Lognormal, Normal, Uniform
from commsim.stragglers.maxima import Maximum, hit_at_all
from commsim.stragglers.occupancy import expert_excess, loads
from commsim.stragglers.presets import PRESETS, preset

if TYPE_CHECKING:
    from collections.abc import Callable

EXAMPLES: dict[str, Straggler] = {
    "effects": Effected((Effect("compute", "job", Uniform(1.0, 1.2)),)),
    "variation": Variation(),
    "jitter": Jitter(),
    "shared-jitter": SharedJitter(),
    "slow-rank": SlowRank(),
    "slow-link": SlowLink(factor=2.0, delay=0.01),
    "slow-network": SlowNetwork(),
    "flapping-link": FlappingLink(outage=2.0, per_hour=0.1),
    "collisions": Collisions(32, 8),
    "congestion": Congestion(),
    "throttling": Throttling(),
    "os-noise": OsNoise(3350.0, Lognormal(0.5, mean=5.7e-6), seen=0.1),
    "pause": Pause(),
    "sequence-imbalance": SequenceImbalance(),
    "expert-imbalance": ExpertImbalance(share=0.4),
    "last-stage": LastStage(),
    "data-loading": DataLoading(Lognormal(1.0, mean=0.2), chance=0.01),
    "failures": Failures(restart=600.0, checkpoint=1800.0),
}


def test_every_kind_has_an_example_and_says_where_it_is_from() -> None:
    assert {name: type(one) for name, one in EXAMPLES.items()} == KINDS
    assert all((kind.__doc__ or "").strip() for kind in KINDS.values())


@pytest.mark.parametrize("name", KINDS)
def test_effects_are_values_that_never_shorten_to_nothing(name: str) -> None:
    cause = EXAMPLES[name]
    assert cause.effects == cause.effects
    assert hash(cause) == hash(cause)
    for effect in cause.effects:
        assert float(effect.law.quantile(1e-6)) >= 0
        assert effect.law.mean >= 0


@pytest.mark.parametrize(
    ("flows", "paths", "expected"),
    [
        (8, 8, 2.597),
        (16, 16, 3.078),
        (32, 32, 3.533),
        (64, 64, 3.959),
        (32, 8, 1.762),
        (128, 16, 1.669),
        (16, 4, 1.534),
    ],
)
def test_flows_on_paths_are_balls_in_bins(flows: int, paths: int, expected: float) -> None:
    """The first two are exact by generating function, the others simulated to 0.001."""
    assert loads(flows, paths).mean == pytest.approx(expected, abs=0.0021)


def test_two_flows_on_two_paths() -> None:
    assert loads(2, 2).values == (1.0, 2.0)
    assert loads(2, 2).chances == pytest.approx((0.5, 0.5))
    assert loads(5, 1).values == (1.0,)


@pytest.mark.parametrize(("ranks", "expected"), [(8, 0.41), (32, 1.56), (128, 5.97)])
def test_lognormal_experts_are_as_uneven_as_measured(ranks: int, expected: float) -> None:
    """1.564 on 32 ranks: DeepSeek-R1 (TensorRT-LLM, ep_load_balancer)."""
    found = expert_excess(256, ranks, np.random.default_rng(21), trials=1000)
    assert found == pytest.approx(expected, rel=0.03)


def test_pauses_of_many_ranks_fall_into_nearly_every_step() -> None:
    """1 - (1 - 1/n)^N: .9247, .7237, .2261, .1202 on 128 ranks."""
    expected = {50: 0.9247, 100: 0.7237, 500: 0.2261, 1000: 0.1202}
    for every, chance in expected.items():
        (effect,) = Pause(every=every, share=1.0).effects
        assert Maximum(effect.law, 128).mean == pytest.approx(chance, abs=5e-5)
        assert hit_at_all(1 / every, 128) == pytest.approx(chance, abs=5e-5)


def test_planned_pauses_cost_what_one_gains() -> None:
    """12.6 % on 128 data ranks (ByteDance, OSDI 2025) by pauses of 0.15 of a step in one of 70 steps."""
    (alone,), (together,) = Pause().effects, Pause(planned=True).effects
    gained = (1 + Maximum(alone.law, 128).mean) / (1 + together.law.mean)
    assert gained == pytest.approx(1.126, abs=0.003)


def test_episodes_that_overlap_count_once() -> None:
    assert Episodes(0.1, 24 * 60).share == pytest.approx(0.1 * 0.4, rel=0.03)
    assert Episodes(1000.0, 3600.0).share == pytest.approx(1.0)
    assert Episodes(0.0, 3600.0).share == 0.0


def test_failures_of_llama_3() -> None:
    """419 in 54 days on 16,384 GPUs are one in 3.1 hours; more than 90 % of the time was of use."""
    failures = Failures(restart=600.0, checkpoint=1800.0)
    assert failures.chance(16_384, 54 * 86400 / 419) == pytest.approx(1 - np.exp(-1), rel=1e-6)
    assert 1 / (1 + failures.lost(16_384)) > 0.85
    assert failures.lost(32_768) > 2 * failures.lost(16_384)
    with pytest.raises(InputError, match="failures: gpus"):
        failures.lost(10**8)


@pytest.mark.parametrize("name", PRESETS)
def test_presets_name_a_source_for_each_cause(name: str) -> None:
    assert len(preset(name).causes) == len(preset(name).sources)
    assert all(preset(name).sources)


def test_a_shared_cluster_is_a_dedicated_one_with_others_on_its_network() -> None:
    more = set(preset("shared").causes) - set(preset("dedicated").causes)
    assert {effect.place for cause in more for effect in cause.effects} == {"bandwidth"}


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: SlowRank(factor=-1.0), "slow rank: factor: -1.0"),
        (lambda: SlowRank(chance=0.1, count=2), "slow rank: count: 2; chance says already who is hit"),
        (lambda: SlowRank(ranks=[3]), "slow rank: ranks: [3]; a tuple of numbers"),  # type: ignore[arg-type]
        (lambda: SlowRank(chance=1.5), "slow rank: chance: 1.5; a number from 0 to 1"),
        (lambda: SlowRank(count=0).effects, "rank: count: 0"),
        (lambda: Jitter(-0.1).effects, "lognormal: sigma: -0.1"),
        (lambda: SlowLink(delay=float("nan")), "slow link: delay: nan"),
        (lambda: SlowNetwork(factor=0.0), "slow network: factor: 0.0"),
        (lambda: FlappingLink(outage=-1.0, per_hour=1.0), "flapping link: outage: -1.0"),
        (lambda: Pause(every=0.5), "pause: every: 0.5"),
        (lambda: Pause(seconds=-0.5), "pause: seconds: -0.5"),
        (lambda: ExpertImbalance(share=1.2), "expert imbalance: share: 1.2"),
        (lambda: ExpertImbalance(share=0.2, exchange=-1.0), "expert imbalance: exchange: -1.0"),
        (lambda: ExpertImbalance().effects, "expert imbalance: share: nothing"),
        (lambda: OsNoise(-1.0, Constant(1.0), 0.1), "os noise: rate: -1.0"),
        (lambda: DataLoading(Constant(1.0), chance=2.0), "data loading: chance: 2.0"),
        (lambda: Throttling(factor=float("inf")), "throttling: factor: inf"),
        (lambda: LastStage(backward=0.0), "last stage: backward: 0.0"),
        (lambda: Failures(restart=-1.0, checkpoint=1.0), "failures: restart: -1.0"),
        (lambda: Collisions(0, 8).effects, "collisions: flows: 0"),
        (lambda: Effect("compute", "job", Normal(1.0, 0.5)), "a lognormal law has none"),
        (lambda: Effect("compute", "job", Constant(-1.0)), "cause: law"),
        (lambda: Effect("cpu", "job", Constant(1.0)), "cause: place: 'cpu'"),  # type: ignore[arg-type]
        (lambda: Effect("bandwidth", "job", Constant(1.0), unit="s"), "bandwidth takes a factor"),
        (lambda: Effect("host", "operation", Constant(1.0), unit="step"), "parts of a step belong to what computes"),
        (lambda: Effect("host", "job", Constant(1.0), Target("link")), "a link has a latency and a bandwidth"),
        (lambda: Effect("host", "step", Constant(1.0), unit="s", rate=2.0), "a rate belongs to seconds of operations"),
        (lambda: Target("ranks"), "did you mean 'rank'?"),  # type: ignore[arg-type]
        (lambda: Target("rank", (1,), 2), "either a count or numbers"),
        (lambda: Episodes(-1.0, 1.0), "episodes: per_hour: -1.0"),
        (lambda: preset("dedicate"), "did you mean 'dedicated'?"),
        (lambda: expert_excess(100, 32, np.random.default_rng(0)), "experts: 100"),
    ],
)
def test_refuses(make: Callable[[], object], says: str) -> None:
    with pytest.raises(InputError) as refused:
        make()
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)
