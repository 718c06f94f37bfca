"""Do mitigations mend what they say, by as much as those who showed them, and say what is lost?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from commsim.errors import InputError
from commsim.stragglers.causes import described
from commsim.stragglers.drawing import Drawing
from commsim.stragglers.effects import Effect, Target
from commsim.stragglers.kinds import (
    Collisions,
    Effected,
    ExpertImbalance,
    Jitter,
    LastStage,
    Pause,
    SequenceImbalance,
    SlowRank,
    Straggler,
    Variation,
)
from commsim.stragglers.laws import Empirical, Lognormal, Weibull
from commsim.stragglers.maxima import Maximum
from commsim.stragglers.mitigations import (
    MITIGATIONS,
    BackupWorkers,
    DropCompute,
    ExpertRebalancing,
    LocalSgd,
    MicroBatchRebalancing,
    Mitigation,
    MoveStage,
    Outcome,
    PacketSpraying,
    PlannedGc,
    Redistribution,
    Screening,
    Spares,
    UnevenLayers,
    mitigate,
)
from commsim.stragglers.mitigations.balance import rebalanced
from commsim.stragglers.mitigations.mitigation import Case
from commsim.stragglers.mitigations.outcome import outcome
from commsim.stragglers.propagation import near_barriers
from commsim.stragglers.run import run
from tests.stragglers.stages import APART, PIPED, bare, step

if TYPE_CHECKING:
    from commsim.stragglers.simulate import Stage

WHAT: dict[str, tuple[Mitigation, Straggler]] = {
    "spares": (Spares(count=2), Variation(0.05)),
    "screening": (Screening(0.1), Variation(0.05)),
    "move-stage": (MoveStage(stage=0), SlowRank(factor=1.3, ranks=(30,))),
    "uneven-layers": (UnevenLayers(fewer=1), LastStage()),
    "micro-batch-rebalancing": (MicroBatchRebalancing(), SlowRank(factor=1.5, ranks=tuple(range(0, 32, 8)))),
    "redistribution": (Redistribution(), SequenceImbalance()),
    "expert-rebalancing": (ExpertRebalancing(), ExpertImbalance(share=0.3)),
    "planned-gc": (PlannedGc(), Pause(every=10)),
    "packet-spraying": (PacketSpraying(), Collisions(8, 8)),
    "backup-workers": (BackupWorkers(spare=1), Jitter(0.1)),
    "drop-compute": (DropCompute(limit=1.05), Jitter(0.1)),
    "local-sgd": (LocalSgd(every=8), Jitter(0.1)),
}


def done(stage: Stage, causes: list[Straggler], mitigation: Mitigation, steps: int = 400) -> Outcome:
    return outcome(Case(stage, tuple(causes)), mitigation, Drawing(steps, steps, 5))


@pytest.mark.parametrize("name", MITIGATIONS)
def test_each_shortens_the_step_and_says_what_is_lost(name: str) -> None:
    mitigation, cause = WHAT[name]
    assert type(mitigation) is MITIGATIONS[name]
    found = mitigate(run(step(PIPED), [cause], steps=200), mitigation)
    assert found.speedup > 1
    assert 0 <= found.lost < 1
    assert found.gain == pytest.approx(found.speedup * (1 - found.lost))
    assert mitigation.source
    assert mitigation.loses


@pytest.mark.parametrize("name", MITIGATIONS)
def test_each_is_read_by_its_name(name: str) -> None:
    assert isinstance(described(MITIGATIONS, name, "mitigation"), MITIGATIONS[name])


def test_one_slow_replica_of_four_has_fewer_micro_batches() -> None:
    """Greyhound (ATC 2025), figure 15: 1.31 s to 0.83 s, within 5 %; the slow one takes 1.7 times as long."""
    slow = SlowRank(factor=1.7, ranks=(0,))
    stage = bare(1, 32, 4)
    found = done(stage, [slow], MicroBatchRebalancing())
    healthy = 1.31 / 1.7
    assert found.before.mean() / stage.seconds * healthy == pytest.approx(1.31)
    assert found.after.mean() / stage.seconds * healthy == pytest.approx(0.83, rel=0.05)


@pytest.mark.parametrize(("replicas", "expected"), [(2, 1.3), (4, 1.1), (8, 1.2)])
def test_one_slow_replica_of_several(replicas: int, expected: float) -> None:
    """Greyhound, section 7.3: 1.7 times as long becomes 1.3, 1.1 and 1.2, within 10 %; 8 micro-batches taken."""
    found = done(bare(1, 8, replicas), [SlowRank(factor=1.7, ranks=(0,))], MicroBatchRebalancing())
    assert found.after.mean() / 16 == pytest.approx(expected, rel=0.1)


def test_micro_batches_go_to_whom_has_them_done_first() -> None:
    assert rebalanced(np.array([1.0, 1.0, 2.0]), 5).tolist() == [6, 6, 3]
    assert rebalanced(np.ones(4), 7, 3).tolist() == [7, 7, 7, 7]
    for waiting in (0, 3):
        seconds = np.random.default_rng(1).random(16) + 0.5
        shares = rebalanced(seconds, 12, waiting)
        assert shares.sum() == 12 * 16
        worst = ((shares + waiting) * seconds).max()
        assert worst <= ((12 + waiting) * seconds).max()
        assert all((share + 1 + waiting) * each >= worst for share, each in zip(shares, seconds))  # nobody has room


def test_local_sgd_is_a_barrier_every_so_many_steps() -> None:
    """64 replicas, sigma 0.1 a step: 1.0587 every 16 steps (central limit)."""
    found = done(bare(1, 1, 64, 0.0, 1.0), [Jitter(0.1)], LocalSgd(every=16), 1600)
    assert found.after.mean() == pytest.approx(near_barriers(Lognormal(0.1), 64, 16) / 16, rel=0.003)
    assert found.before.mean() == pytest.approx(1.2591, rel=0.005)


def test_what_stays_with_a_rank_is_not_averaged_away() -> None:
    found = done(bare(1, 4, 16), [Variation(0.1)], LocalSgd(every=8), 800)
    assert found.speedup == pytest.approx(1.0, abs=1e-9)


def test_backup_workers_do_not_wait_for_the_last() -> None:
    """E[64th of 68] of lognormal steps, sigma 0.1: 1.15587, at 4 of 68 lost."""
    found = done(bare(1, 1, 64, 0.0, 1.0), [Jitter(0.1)], BackupWorkers(spare=4), 3000)
    assert found.after.mean() == pytest.approx(1.15587, abs=4 * found.after.std() / 3000**0.5)
    assert found.lost == pytest.approx(4 / 68)


def test_those_of_chen_that_are_slow_together() -> None:
    """Of 100 gradients the 98th is there within 2 s in 80 % of the steps, all in 30 % (Chen et al. 2016), to 15 %."""
    law = Weibull(1.0)
    within = float(Maximum(law, 100).quantile(0.3))
    assert float(Maximum(law, 100, 2).below(within)) == pytest.approx(0.8, rel=0.15)


def test_micro_batches_that_are_dropped() -> None:
    """Constant micro-batches 1.5 times as long, cut off at 1.2 of the ideal: 1 - 1.2 / 1.5 of them, whole ones."""
    found = done(bare(1, 10, 2), [SlowRank(factor=1.5, ranks=(0, 1))], DropCompute(limit=1.2), 2)
    assert found.after == pytest.approx(np.full(2, 24.0))
    assert found.lost == pytest.approx(0.2)
    nothing = done(bare(1, 10, 2), [SlowRank(factor=1.1, ranks=(0,))], DropCompute(limit=1.2), 2)
    assert (nothing.lost, nothing.speedup) == (0.0, 1.0)


@pytest.mark.parametrize(("replicas", "gain"), [(8, 1.141), (64, 1.307)])
def test_drop_compute_on_its_own_example(replicas: int, gain: float) -> None:
    """Micro-batches of 1 and a bounded lognormal more, 12 a step, cut off at 16.7; 11.1 % are dropped, simulated."""
    late = Lognormal(1.0, mean=0.5).sample(np.random.default_rng(2), 20_001)  # lognormal(4, 1) / (2 e^4.5)
    law = Empirical.of(1 + np.minimum(late, 5.5))
    jitter = Effected((Effect("compute", "operation", law, Target("group")),))
    found = done(bare(1, 12, replicas, 0.0, 1.0), [jitter], DropCompute(limit=1.39), 800)
    assert found.lost == pytest.approx(0.111, abs=0.01)
    assert found.gain == pytest.approx(gain, rel=0.01)


def test_planned_pauses() -> None:
    """12.6 % on 128 data ranks (ByteDance, OSDI 2025)."""
    found = done(bare(1, 4, 128), [Pause()], PlannedGc(), 4000)
    assert found.speedup == pytest.approx(1.126, rel=0.02)


@pytest.mark.parametrize("microbatches", [4, 8, 16])
def test_layers_taken_from_the_last_stage(microbatches: int) -> None:
    """ByteDance's job of 9 layers a stage: 9.9 % quicker once its last stage takes 1.55 of a mean one, to 15 %."""
    even, uneven = (
        done(bare(4, microbatches, 1, 1.0, 2.0), [LastStage()], one, 1).after.mean()
        for one in (Mitigation(), UnevenLayers(fewer=3, layers=9))
    )
    assert even / uneven == pytest.approx(1.099, rel=0.15)


def test_sequences_dealt_out_anew() -> None:
    """23.9 % quicker with sequences of 32K (ByteDance, OSDI 2025, section 5), to 15 %: trace SE's shape."""
    found = done(bare(2, 8, 32, 1.0, 2.0), [SequenceImbalance()], Redistribution(), 100)
    assert found.speedup == pytest.approx(1.239, rel=0.15)
    work = next(iter(Drawing(4, 4, 1).work(bare(2, 8, 4), [SequenceImbalance()])))
    dealt = Redistribution().dealt(work)
    both = (np.sort(one.durations.sum(axis=(0, 1, 2)), axis=None) for one in (work, dealt))
    assert next(both) == pytest.approx(next(both))
    spread = [np.ptp(one.durations.sum(axis=(0, 1, 2, 3)), axis=-1).mean() for one in (work, dealt)]
    assert spread[1] < 0.5 * spread[0]


def test_experts_dealt_out_by_their_load() -> None:
    found = done(bare(1, 4, 2), [ExpertImbalance(share=0.5)], ExpertRebalancing(), 2)
    assert found.speedup == pytest.approx((1 + 0.5 * 1.564) / (1 + 0.5 * 0.115))


def test_flows_that_are_split() -> None:
    """E[fullest of 8 paths] over fair: 2.597 for 8 flows, 1.762 for 32; packets that are sprayed fill all alike."""
    known = run(step(APART), [Collisions(8, 8)], steps=500)
    four, all_paths = (mitigate(known, PacketSpraying(flows)).after.mean() for flows in (4, None))
    assert known.ideal == pytest.approx(all_paths)
    assert (four - known.ideal) / (known.mean - known.ideal) == pytest.approx(0.762 / 1.597, rel=0.1)


def test_the_slowest_are_exchanged() -> None:
    named = SlowRank(factor=1.5, ranks=(3, 17))
    assert mitigate(run(step(PIPED), [named], steps=2), Spares(count=2)).after == pytest.approx(
        np.full(2, step(PIPED).step_time)
    )
    one_left = mitigate(run(step(PIPED), [named], steps=2), Spares(count=1))
    assert one_left.after.mean() > step(PIPED).step_time
    counted = mitigate(run(step(PIPED), [SlowRank(count=2)], steps=2), Spares(count=2))
    assert counted.after.mean() == pytest.approx(step(PIPED).step_time)


def test_screening_leaves_what_is_below_its_quantile() -> None:
    """Without a pipeline: the largest of what is left of the law."""
    found = done(bare(1, 1, 64, 0.0, 1.0), [Variation(0.05)], Screening(0.05), 4000)
    assert found.after.max() <= float(Lognormal(0.05).exceeded(0.05))
    assert found.lost == pytest.approx(0.05)


def test_an_early_stage_hides_a_slow_rank() -> None:
    """118.5 on the first of 8 stages, 129 on the last (24 micro-batches, forward 1, backward 2, 1.5 times as slow)."""
    stage = bare(8, 24, 2, 1.0, 2.0)
    found = done(stage, [SlowRank(factor=1.5, ranks=(15,))], MoveStage(stage=0), 2)
    assert found.before == pytest.approx(np.full(2, 129.0))
    assert found.after == pytest.approx(np.full(2, 118.5))
    counted = done(stage, [SlowRank(factor=1.5, count=1)], MoveStage(stage=0), 20)
    assert counted.after == pytest.approx(np.full(20, 118.5))


@pytest.mark.parametrize(
    ("mitigation", "says"),
    [
        (PlannedGc(), "mitigation: 'Jitter'; it mends the kind of cause 'pause', and there is none"),
        (Spares(), "it mends ranks that are slow for the job"),
        (MoveStage(), "it mends ranks that are named or counted"),
        (replace(UnevenLayers(), fewer=99), "uneven-layers"),
        (MoveStage(stage=9), "move-stage: stage: 9"),
    ],
)
def test_refuses_what_mends_nothing(mitigation: Mitigation, says: str) -> None:
    with pytest.raises(InputError) as refused:
        mitigate(run(step(PIPED), [Jitter()], steps=5), mitigation)
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("spars", "mitigation: 'spars'; no such kind; did you mean 'spares'?"),
        ("spares: count=0", "spares: count: 0"),
        ("screening: share=1.5", "screening: share: 1.5"),
        ("backup-workers: spare=0", "backup-workers: spare: 0"),
        ("drop-compute: limit=0", "drop-compute: limit: 0"),
        ("local-sgd: every=0", "local-sgd: every: 0"),
    ],
)
def test_refuses(text: str, says: str) -> None:
    with pytest.raises(InputError) as refused:
        described(MITIGATIONS, text, "mitigation")
    assert says in str(refused.value)
