"""Are causes, and the groups that wait, told apart; and do formulas say the same as draws?"""

from __future__ import annotations

import numpy as np
import pytest

from commsim.stragglers.attribution import amplified
from commsim.stragglers.closed import closed
from commsim.stragglers.drawing import Drawing, staged
from commsim.stragglers.effects import Effect, Target
from commsim.stragglers.kinds import (
    Effected,
    Failures,
    Jitter,
    Pause,
    SequenceImbalance,
    SharedJitter,
    SlowRank,
    Straggler,
    Throttling,
    Variation,
)
from commsim.stragglers.laws import Constant, Lognormal
from commsim.stragglers.presets import preset
from commsim.stragglers.run import run
from tests.stragglers.stages import APART, FLAT, KINDS_OF_STEP, PIPED, bare, step


def test_attribution_both_ways() -> None:
    found = run(step(PIPED), [SlowRank(factor=1.5), Jitter(0.001), Failures(60.0, 600.0)], steps=200)
    slow, little, nothing = found.by_cause
    assert slow.alone > 1.1
    assert slow.without == pytest.approx(1.0, abs=0.01)
    assert little.alone == pytest.approx(slow.without, rel=1e-12)
    assert nothing.alone == 1.0
    assert nothing.without == pytest.approx(found.slowdown())
    assert slow.saved == pytest.approx(found.slowdown() - slow.without)


def test_one_cause_is_all_of_it() -> None:
    (only,) = run(step(PIPED), [Jitter(0.02)], steps=100).by_cause
    assert only.alone == only.together
    assert only.without == 1.0
    assert run(step(PIPED), [], steps=5).by_cause == ()


@pytest.mark.parametrize("kind", KINDS_OF_STEP)
def test_groups_that_wait_make_up_the_whole(kind: str) -> None:
    stage, causes = staged(step(kind)), preset("dedicated").causes
    drawing = Drawing(400, 400, 3)
    found = amplified(stage, causes, drawing)
    whole = drawing.steps(stage, causes).mean() - stage.seconds
    assert found.slower + found.pipeline + found.data + found.tensor == pytest.approx(whole)
    assert found.data > 0
    assert found.tensor > 0
    assert found.pipeline > -1e-4 * stage.seconds  # but for the error of the means


def test_what_is_shared_makes_nobody_wait() -> None:
    found = amplified(staged(step(PIPED)), [SharedJitter(0.05)], Drawing(500, 500, 4))
    assert found.data == pytest.approx(0.0, abs=1e-9)
    assert found.tensor == pytest.approx(0.0, abs=1e-9)
    assert abs(found.slower) < 0.02


def test_replicas_without_pipeline_or_tensor_groups_wait_for_the_last_alone() -> None:
    stage, jitter = bare(1, 8, 32), [Jitter(0.05)]
    found = amplified(stage, jitter, Drawing(2000, 2000, 5))
    assert found.tensor == pytest.approx(0.0, abs=1e-9)
    assert found.pipeline == pytest.approx(0.0, abs=1e-9)
    assert found.data / stage.seconds == pytest.approx(0.05 / 16**0.5 * 2.07, rel=0.05)  # E[largest of 32 normals]


def test_a_slow_rank_makes_its_tensor_group_wait() -> None:
    """Half of the group is 1.4 times as slow: 0.2 of the compute on average, and as much by waiting for it."""
    slow = Effected((Effect("compute", "job", Constant(1.4), Target("rank", tuple(range(0, 32, 2)))),))
    found = amplified(staged(step(APART)), [slow], Drawing(2, 2, 0))
    assert found.tensor == pytest.approx(found.slower)
    assert found.data == pytest.approx(0.0, abs=1e-9)


CLOSED: dict[str, Straggler] = {
    "variation": Variation(0.05),
    "jitter": Jitter(0.05),
    "shared": SharedJitter(0.02),
    "slow rank": SlowRank(factor=1.3),
    "slow rank by chance": SlowRank(factor=1.2, chance=0.01),
    "throttling": Throttling(per_hour=0.3),
    "pause": Pause(),
    "planned pause": Pause(planned=True),
    "sequences": SequenceImbalance(),
    "faster": SlowRank(factor=0.5, count=32),
}


@pytest.mark.parametrize("name", CLOSED)
def test_formulas_say_the_same_as_draws(name: str) -> None:
    found = run(step(APART), [CLOSED[name]], steps=4000, seed=6)
    formula = closed(found.stage, CLOSED[name])
    assert formula is not None
    near = 4 * found.error / found.ideal + 1e-9
    off = 0.04 if name == "sequences" else 0.004  # skewed, and few: the central limit is low
    assert found.slowdown() == pytest.approx(formula.slowdown, abs=near if formula.exact else near + off)
    assert formula.exact == (name not in {"jitter", "sequences"})


@pytest.mark.parametrize(
    ("kind", "cause"),
    [
        (PIPED, Variation(0.02)),
        (FLAT, Variation(0.02)),  # what is synchronised behind a pass that is late
        (APART, SlowRank(ranks=(1,))),
        (APART, Effected((Effect("compute", "operation", Lognormal(0.1)),))),
        (APART, Effected((Effect("compute", "job", Lognormal(0.1)), Effect("host", "job", Lognormal(0.1), unit="s")))),
        (APART, Effected((Effect("compute", "job", Lognormal(0.1), Target("rank", count=3)),))),
    ],
)
def test_no_formula_where_there_is_none(kind: str, cause: Straggler) -> None:
    expected = isinstance(cause, SlowRank)
    assert (closed(staged(step(kind)), cause) is not None) == expected


def test_no_formula_for_a_pipeline() -> None:
    one, two = (closed(bare(stages, 4, replicas=2), Variation(0.02)) for stages in (1, 2))
    assert (one is not None, two) == (True, None)


def test_failures_have_no_effect_on_a_step() -> None:
    formula = closed(staged(step(PIPED)), Failures(60.0, 600.0))
    assert formula is not None
    assert formula.slowdown == 1.0


def test_fewer_steps_of_jobs_as_long() -> None:
    drawing = Drawing(10_000, 100, 0).fewer(staged(step(PIPED)))
    assert (drawing.number, drawing.jobs) == (1000, 10)
    assert np.array_equal(drawing.steps(staged(step(PIPED)), []), np.full(1000, staged(step(PIPED)).seconds))
