"""Is a run the same by its seed, whole or as far as it came, and does it say what it is?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from commsim.errors import InputError
from commsim.stragglers.drawing import Drawing
from commsim.stragglers.effects import Effect, Target
from commsim.stragglers.kinds import (
    DataLoading,
    Effected,
    Failures,
    Jitter,
    Pause,
    SlowLink,
    SlowNetwork,
    SlowRank,
    Straggler,
    Variation,
)
from commsim.stragglers.laws import Constant
from commsim.stragglers.presets import preset
from commsim.stragglers.run import run
from tests.stragglers.stages import APART, FLAT, KINDS_OF_STEP, PIPED, bare, step
from tests.stragglers.test_kinds import EXAMPLES


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


def test_the_steps_of_one_job_have_an_error_of_their_own() -> None:
    """One job tells nothing of others: its error is that of its steps, not that of the mean over jobs."""
    one = run(step(PIPED), [Jitter(0.02)], steps=100, jobs=1)
    assert one.error == pytest.approx(one.seconds.std(ddof=1) / 10)


@pytest.mark.parametrize(("members", "share"), [(1, 0.5), (2, 1.0)])
def test_a_quicker_rank_helps_where_nobody_waits_with_it(members: int, share: float) -> None:
    """An operation of one rank is as quick as that; a group's takes as long as its slowest member's."""
    stage = bare(1, 4, replicas=1)
    cast = replace(stage.cast, members=members, dims=(("tensor", members, 1), *stage.cast.dims))
    quick = Effected((Effect("compute", "operation", Constant(0.5), Target("rank", count=1)),))
    seconds = Drawing(3, 3, 0).steps(replace(stage, cast=cast), [quick])
    assert seconds == pytest.approx(np.full(3, share * stage.seconds))


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
