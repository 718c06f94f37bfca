"""Do ranks, groups, links and lanes stand where the plan puts them?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from commsim.stragglers.cast import Cast
from commsim.stragglers.effects import Effect, Target
from commsim.stragglers.kinds import (
    Effected,
    Jitter,
    OsNoise,
)
from commsim.stragglers.laws import Constant, Lognormal
from commsim.stragglers.maxima import Maximum
from commsim.training.axes import Data, Expert, Pipeline, Tensor
from commsim.training.plan import Plan
from tests.stragglers.stages import bare, drawn


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
