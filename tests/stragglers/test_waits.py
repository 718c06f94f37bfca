"""Is the one that is slow found, and those that wait for it?"""

from __future__ import annotations

import numpy as np
import pytest

from commsim.stragglers.drawing import staged
from commsim.stragglers.kinds import Jitter, SlowLink, SlowRank, Variation
from commsim.stragglers.waits import waits
from tests.stragglers.stages import APART, KINDS_OF_STEP, PIPED, SPLIT, TURNED, bare, step


@pytest.mark.parametrize(("kind", "ranks"), [(APART, (8, 9)), (PIPED, (8, 9)), (TURNED, (8, 9)), (SPLIT, (8, 9))])
def test_the_slow_rank_is_blamed(kind: str, ranks: tuple[int, int]) -> None:
    """Rank 9 is in one group with rank 8: all others wait for both."""
    found = waits(staged(step(kind)), [SlowRank(factor=1.3, ranks=(9,)), Jitter(0.005)], seed=0)
    worst = found.groups[0]
    assert worst.ranks == ranks
    assert worst.last == 1.0
    assert worst.slower == pytest.approx(found.slower.max())
    assert 1.2 < worst.slower < 1.3  # what is said is no slower
    assert found.idle[worst.stage, worst.replica] == 0.0
    assert worst.holds_up > 0.003


def test_of_two_pipelines_the_whole_slow_one_makes_the_other_wait() -> None:
    """Replica 1 takes 1.5 times as long: the other waits for half of its own step."""
    stage = bare(2, 4, 2)
    found = waits(stage, [SlowRank(factor=1.5, ranks=(2, 3))], seed=0)
    assert np.array_equal(found.last, [0.0, 1.0])
    assert found.slower == pytest.approx(np.array([[1.0, 1.5], [1.0, 1.5]]))
    assert found.idle[0] == pytest.approx([0.5 * stage.seconds, 0.0])
    assert found.path.sum() == pytest.approx(1.0)  # messages take no time


def test_nobody_is_blamed_where_all_are_alike() -> None:
    found = waits(bare(1, 4, 8), [Jitter(0.05)], seed=1)
    assert found.last.sum() == pytest.approx(1.0)
    assert found.last.max() < 0.35


def test_a_slow_link_lies_on_the_path() -> None:
    stage = bare(4, 8, 2)
    assert waits(stage, [SlowLink(delay=1.0, links=(1,))], seed=0).path.sum() < 0.8


def test_steps_that_are_drawn_one_at_a_time() -> None:
    """A block holds 2^19 operations: 4 stages, 64 micro-batches and 1,024 replicas have as many in one step."""
    found = waits(bare(4, 64, 1024), [SlowRank(factor=1.1, ranks=(8,))], seed=3)
    assert found.groups[0].replica == 2
    assert found.last[2] == 1.0


@pytest.mark.parametrize("kind", KINDS_OF_STEP)
def test_every_step_has_its_groups(kind: str) -> None:
    stage = staged(step(kind))
    found = waits(stage, [Variation(0.03)], seed=2)
    ranks = [rank for group in found.groups for rank in group.ranks]
    assert sorted(ranks) == list(range(32))
    assert found.last.sum() == pytest.approx(1.0)
