"""Do steps with causes at work take as long as they must, exactly where that is known?"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pytest

from commsim.errors import InputError
from commsim.stragglers.cast import Cast, Drawn
from commsim.stragglers.effects import Effect, Target
from commsim.stragglers.kinds import (
    Congestion,
    DataLoading,
    Effected,
    Failures,
    Jitter,
    LastStage,
    OsNoise,
    Pause,
    SharedJitter,
    SlowLink,
    SlowNetwork,
    SlowRank,
    Straggler,
    Variation,
)
from commsim.stragglers.laws import Constant, Lognormal
from commsim.stragglers.maxima import Maximum, hit_at_all
from commsim.stragglers.parts import Ends, Parts, parts
from commsim.stragglers.presets import preset
from commsim.stragglers.propagation import between_barriers
from commsim.stragglers.run import run
from commsim.stragglers.simulate import Stage
from commsim.training.axes import Data, Expert, Pipeline, Tensor
from commsim.training.pipeline import compiled
from commsim.training.plan import Plan
from tests.stragglers.test_kinds import EXAMPLES
from tests.training.settings import estimated

if TYPE_CHECKING:
    from commsim.training.estimate import Estimate

FLAT, PIPED, TURNED, SPLIT, APART = "flat", "piped", "interleaved", "zero-bubble", "nothing overlapped"
KINDS_OF_STEP = (FLAT, PIPED, TURNED, SPLIT, APART)


@cache
def step(kind: str) -> Estimate:
    """A small model on 32 GPUs, in the ways in which a step can be cut."""
    if kind in {FLAT, APART}:
        return estimated("llama3.1-8b", Tensor(2), Data(16), global_batch=64, overlap_data=kind == FLAT)
    pipeline = Pipeline(4, virtual=2 if kind == TURNED else 1)
    schedule = "zero-bubble" if kind == SPLIT else None
    return estimated("llama3.1-8b", Tensor(2), Data(4), pipeline, global_batch=32, schedule=schedule)


def bare(stages: int, microbatches: int, replicas: int, forward: float = 1.0, backward: float = 1.0) -> Stage:
    """A pipeline that does nothing but its passes, with messages that take no time."""
    program = compiled("1f1b", stages, microbatches)
    compute = np.stack([np.full((1, stages), forward), np.full((1, stages), backward)])
    nothing = np.zeros(stages)
    known = Parts(program, compute, np.zeros_like(compute), nothing, 0.0, nothing, nothing)
    dims = (("pipeline", stages, 1), ("data", replicas, stages))
    return Stage(known, Cast(stages, replicas, 1, dims), known.seconds)


def drawn(stage: Stage, cause: Straggler, steps: int) -> np.ndarray:
    return stage.steps([Drawn(effect, np.random.default_rng(31)) for effect in cause.effects], steps)


@pytest.mark.parametrize("kind", KINDS_OF_STEP)
def test_no_cause_no_change(kind: str) -> None:
    found = run(step(kind), [], steps=3)
    assert found.seconds == pytest.approx(np.full(3, step(kind).step_time), rel=1e-12)
    nothing = Effected((Effect("compute", "operation", Constant(1.0), Target("group")),))
    assert run(step(kind), [nothing], steps=3).slowdown() == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("kind", KINDS_OF_STEP)
def test_same_seed_same_draws(kind: str) -> None:
    causes = preset("shared").causes
    first, again, other = (run(step(kind), causes, steps=20, seed=seed).seconds for seed in (7, 7, 8))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("kind", KINDS_OF_STEP)
def test_every_kind_runs_on_every_step(kind: str, name: str) -> None:
    if kind in {FLAT, APART} and name in {"slow-link", "flapping-link"}:
        with pytest.raises(InputError, match="a link joins stages"):
            run(step(kind), [EXAMPLES[name]], steps=5)
        return
    found = run(step(kind), [EXAMPLES[name]], steps=5)
    assert np.isfinite(found.seconds).all()
    assert found.seconds.min() > 0.5 * found.ideal


@pytest.mark.parametrize("kind", KINDS_OF_STEP)
def test_what_only_delays_never_shortens_a_step(kind: str) -> None:
    causes = [
        SlowRank(chance=0.1),
        SlowNetwork(),
        Pause(every=2),
        DataLoading(Constant(0.1), 0.5),
        *([SlowLink(delay=0.01)] if kind not in {FLAT, APART} else []),
    ]
    for cause in causes:
        assert run(step(kind), [cause], steps=20).seconds.min() >= step(kind).step_time * (1 - 1e-12)


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


def test_only_those_are_hit_that_are_named() -> None:
    """One stage of 4 twice as slow in each operation is the same drawn once, or in each operation."""
    stage = bare(4, 8, 2, 1.0, 2.0)
    for target in (Target("group", (1,)), Target("rank", (1,)), Target("stage", (1,))):
        lasting = Effect("compute", "job", Constant(2.0), target)
        once, always = (
            drawn(stage, Effected((effect,)), 2) for effect in (lasting, replace(lasting, persistence="operation"))
        )
        assert once == pytest.approx(always)
        assert once.min() > stage.seconds


def test_interruptions_of_one_group_alone() -> None:
    noise = Effect("host", "operation", Constant(0.01), Target("group", (0,)), "s", rate=10.0)
    found = drawn(bare(1, 8, 2), Effected((noise,)), 1000)
    assert found.mean() == pytest.approx(16 * 1.1, abs=3 * found.std() / 1000**0.5)


def test_latency_of_all_links_alike_however_it_is_said() -> None:
    """Seconds on every link for the step, for each message, or on each link by its number."""
    stage = bare(3, 6, 2)
    ways = [
        Effect("latency", "step", Constant(0.2), Target("all"), "s"),
        Effect("latency", "operation", Constant(0.2), Target("link"), "s"),
        Effect("latency", "job", Constant(0.2), Target("link", tuple(range(6))), "s"),
    ]
    first, second, third = (drawn(stage, Effected((one,)), 2) for one in ways)
    assert first == pytest.approx(second)
    assert first == pytest.approx(third)
    assert first.min() > stage.seconds


def test_messages_twice_as_long_by_any_name() -> None:
    known = step(PIPED)
    ways = [
        Effect("latency", "job", Constant(2.0), Target("all")),
        Effect("bandwidth", "job", Constant(2.0), Target("link", tuple(range(16)))),
        Effect("bandwidth", "operation", Constant(2.0), Target("link")),
    ]
    first, second, third = (run(known, [Effected((one,))], steps=2).mean for one in ways)
    assert first == pytest.approx(second)
    assert first == pytest.approx(third)
    assert first > known.step_time


def test_what_is_said_in_each_operation_is_part_of_all_that_is_said() -> None:
    often = Effected((Effect("bandwidth", "operation", Constant(2.0), Target("group")),))
    always = Effected((Effect("bandwidth", "job", Constant(2.0), Target("all")),))
    known, found = parts(step(APART)), run(step(APART), [often], steps=2)
    once = known.before + float(known.data[0])
    assert run(step(APART), [always], steps=2).mean - found.mean == pytest.approx(once)


def test_a_shared_factor_makes_no_straggler() -> None:
    found = run(step(PIPED), [SharedJitter(0.02)], steps=2000)
    compute = parts(step(PIPED)).compute
    assert compute.sum() > 0
    assert found.slowdown() == pytest.approx(1.0, abs=4 * found.error / found.ideal)


def test_congestion_slows_what_is_said_alone() -> None:
    always = Congestion(per_hour=1e9, factor=Constant(2.0))
    known, found = parts(step(APART)), run(step(APART), [always], steps=2)
    said = known.before + float(known.data[0]) + known.program.dims[2] * float(known.said.sum())
    assert found.mean - found.ideal == pytest.approx(said)


def overlapped(late: float, within: float, slower: float = 1.0) -> float:
    """When the step of three replicas is over, one of which is late, partly within its last backward pass."""
    known = bare(1, 4, 3).parts
    known = replace(known, data=np.array([0.25]), whole=np.array([1.0]), bucket=np.array([0.25]))
    last, over = np.full((1, 1, 3), 8.0), np.full((1, 1, 3), 1.0)
    last[0, 0, 1] += late
    over[0, 0, 1] += within
    return float(known.finished(Ends(last, over, np.full((1, 1, 1), slower)))[0])


def test_who_is_late_within_the_last_pass_holds_up_the_last_bucket_alone() -> None:
    """Four buckets of 0.25 s behind a pass of 1 s: all but the last are through when it ends."""
    assert overlapped(0.0, 0.0) == 8.25
    assert overlapped(0.5, 0.5) == 8.75
    assert overlapped(0.5, 0.0) == 8.75
    assert overlapped(0.5, -0.75) == 9.25  # began late, then was quick: the buckets queue
    assert overlapped(0.0, 0.0, slower=2.0) == 9.0  # 2 s of buckets since the pass began at 7 s


def test_a_slow_network_exposes_what_was_hidden() -> None:
    slow = Effected((Effect("bandwidth", "job", Constant(8.0), Target("all")),))
    hidden, apart = (run(step(kind), [slow], steps=1) for kind in (FLAT, APART))
    assert hidden.ideal < apart.ideal
    assert hidden.mean - hidden.ideal > 7 * float(parts(step(FLAT)).data[0])
    assert hidden.mean < apart.mean


def test_more_replicas_never_help() -> None:
    means = [drawn(bare(2, 4, replicas), Jitter(0.2), 400).mean() for replicas in (1, 4, 16, 64)]
    assert np.all(np.diff(means) > 0)


def test_what_lasts_for_a_job_is_drawn_once_for_it() -> None:
    """The steps of one job are alike where nothing but the job's own ranks is slow; jobs differ."""
    causes = [Variation(0.05), SlowRank(chance=0.05)]
    one, several = (run(step(PIPED), causes, steps=600, jobs=jobs, seed=3) for jobs in (1, 6))
    assert np.ptp(one.seconds) == pytest.approx(0.0, abs=1e-9)
    assert len(np.unique(several.seconds.round(9))) == 6
    assert several.by_job.size == 6
    assert np.ptp(run(step(PIPED), [*causes, Jitter(0.01)], steps=600, jobs=1).seconds) > 0


def test_jobs_of_one_step_are_the_population() -> None:
    """Many jobs of two steps have the mean of as many jobs as steps, within their errors."""
    causes = [Variation(0.05), Jitter(0.02), Pause(every=5.0)]
    two, each = (run(step(PIPED), causes, steps=2000, jobs=jobs, seed=5) for jobs in (1000, 2000))
    assert two.mean == pytest.approx(each.mean, abs=4 * np.hypot(two.error, each.error))
    assert two.seconds.std() == pytest.approx(each.seconds.std(), rel=0.2)


def test_a_pause_that_never_moves() -> None:
    """Something added once a step for the whole job is as long in each of its steps."""
    held = Effected((Effect("host", "job", Constant(0.3), Target("all"), "s", ("forward",)),))
    found = run(step(PIPED), [held], steps=40, jobs=2)
    assert found.seconds == pytest.approx(np.full(40, found.ideal + 0.3))


def test_an_interrupted_run_keeps_what_is_done() -> None:
    def stop(steps: int) -> None:
        if steps > 4000:
            raise KeyboardInterrupt

    for jobs in (20_000, 20):
        found = run(step(PIPED), [Jitter(0.02)], steps=20_000, jobs=jobs, done=stop)
        assert found.interrupted
        assert 4000 < found.seconds.size < 20_000
        whole = run(step(PIPED), [Jitter(0.02)], steps=20_000, jobs=jobs)
        assert not whole.interrupted
        assert np.array_equal(found.seconds, whole.seconds[: found.seconds.size])
        assert found.jobs in {found.seconds.size, found.seconds.size // 1000}


def test_an_interruption_before_anything_is_done_is_one() -> None:
    with pytest.raises(KeyboardInterrupt):
        run(step(PIPED), [Stopped()], steps=3)


class Stopped(Straggler):
    """Somebody presses the keys while the first steps are drawn."""

    @property
    def effects(self) -> tuple[Effect, ...]:
        """None before the interruption."""
        raise KeyboardInterrupt


def test_what_a_run_says_of_itself() -> None:
    failures = Failures(restart=600.0, checkpoint=1800.0)
    found = run(step(FLAT), [Jitter(0.05), failures], steps=1000, seed=4)
    assert found.slowdown(0.5) < found.slowdown(0.99)
    assert found.quantile(0.5) == pytest.approx(np.median(found.seconds))
    assert 0 < found.quantile_error(0.5) < found.seconds.std()
    whole = run(step(FLAT), [Jitter(0.05)], steps=1000, seed=4)
    assert found.tokens_per_second == pytest.approx(whole.tokens_per_second / (1 + failures.lost(32)), rel=0.01)
    assert "1000 steps, seed 4, 2 causes" in str(found)


def test_ranks_stand_where_the_plan_puts_them() -> None:
    """Tensor 2, then data 3, then pipeline 2: rank 9 is member 1 of replica 1 on stage 1."""
    cast = Cast.of(Plan(Tensor(2), Data(3), Pipeline(2)))
    stage, member, replica = np.unravel_index(cast.numbered(Target("rank", (9,))), cast.shape(Target("rank")))
    assert (stage[0], member[0], replica[0]) == (1, 1, 1)
    stage, _, replica = np.unravel_index(cast.numbered(Target("link", (3,))), cast.shape(Target("link")))
    assert (stage[0], replica[0]) == (1, 1)


def test_pipelines_that_exchange_tokens_are_lanes_of_one_replica() -> None:
    """Experts over 4 of 8 pipelines of 2 tensor ranks: 8 ranks wait for each other in each operation."""
    cast = Cast.of(Plan(Tensor(2), Expert(8), Data(8), Pipeline(2)))
    assert (cast.members, cast.replicas, cast.lanes, cast.ranks) == (8, 2, 4, 32)
    assert cast.ranks_of(1, 1).tolist() == list(range(24, 32))
    for target, number in ((Target("replica", (5,)), (0, 1, 1)), (Target("group", (11,)), (1, 1, 1))):
        place = np.unravel_index(cast.numbered(target), cast.shape(target))
        assert tuple(int(one[0]) for one in place) == number
    (stage,), (member,), (replica,) = np.unravel_index(cast.numbered(Target("rank", (27,))), cast.shape(Target("rank")))
    assert (stage, member, replica) == (1, 3, 1)
    assert Cast.of(Plan(Tensor(8), Expert(4), Data(4))).lanes == 1


def test_lanes_wait_for_each_other_in_each_operation() -> None:
    """8 lanes, 4 micro-batches forward and backward: the largest of 8 draws each time, not of 8 sums."""
    stage = bare(1, 4, 1)
    wide = replace(stage, cast=Cast(1, 1, 8, (("data", 8, 1),), lanes=8))
    found = drawn(wide, Jitter(0.1), 2000)
    assert found.mean() == pytest.approx(8 * Maximum(Lognormal(0.1), 8).mean, abs=3 * found.std() / 2000**0.5)
    noise = OsNoise(100.0, Constant(1e-3), seen=1.0)
    assert drawn(wide, noise, 300).mean() > drawn(stage, noise, 300).mean() > 8.0
    slow = Effected((Effect("compute", "job", Constant(2.0), Target("replica", (3,))),))
    assert drawn(wide, slow, 2) == pytest.approx(np.full(2, 16.0))


@pytest.mark.parametrize(
    ("causes", "steps", "says"),
    [
        ([SlowRank(ranks=(32,))], 5, "rank: 32; one of the 32, numbered from 0"),
        ([SlowRank(ranks=(-1,))], 5, "rank: -1"),
        ([SlowRank(count=33)], 5, "rank: count: 33; there are 32"),
        ([SlowLink(delay=1.0, links=(16,))], 5, "link: 16"),
        ([Jitter(0.02)], 0, "steps: 0"),
        ([Jitter(float("nan"))], 5, "lognormal: sigma: nan"),
        (["jitter"], 5, "causes: 'jitter'"),
    ],
)
def test_refuses(causes: list[Straggler], steps: int, says: str) -> None:
    with pytest.raises(InputError) as refused:
        run(step(PIPED), causes, steps=steps)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)
