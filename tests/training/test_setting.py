"""Does a setting say what a rank is given, and what is said?"""

from __future__ import annotations

import pytest
from hypothesis import given

from commsim.training.axes import Context, Data, Expert, Pipeline, Tensor
from tests.training.drawn import Case, cases
from tests.training.settings import setting


def test_a_ranks_share() -> None:
    asked = setting("llama3.1-8b", Tensor(8), Context(2), Pipeline(2), Data(4), global_batch=64, micro_batch=2)
    assert asked.microbatches == 8
    assert asked.tokens_per_step == 64 * 4096
    assert asked.shard.tokens == 2 * 4096 / 2
    assert asked.bytes_of(10) == 4096 * 10 * 2.0


@pytest.mark.parametrize(
    ("axes", "schedule", "chosen"),
    [
        ((Pipeline(4),), None, "1f1b"),
        ((Pipeline(4, virtual=2),), None, "interleaved"),
        ((Pipeline(4),), "gpipe", "gpipe"),
        ((Data(4),), None, "1f1b"),
    ],
)
def test_schedule(axes: tuple[Pipeline | Data, ...], schedule: str | None, chosen: str) -> None:
    assert setting("llama3.1-8b", *axes, schedule=schedule).schedule == chosen


@given(cases())
def test_only_groups_of_several_speak(case: Case) -> None:
    asked = case.setting()
    said = [one for piece in asked.chunks.pieces for one in asked.traffic(piece)]
    assert all(asked.plan.layout(one.group).size > 1 and one.size > 0 for one in said)
    assert {one.axis for one in said} <= {axis.name for axis in case.plan.axes if axis.size > 1} | {"data", "expert"}


def test_expert_tensor_ranks_speak_alone() -> None:
    asked = setting("mixtral-8x7b", Tensor(2), Expert(1, tensor=2))
    moe = asked.chunks.pieces[0]
    assert {one.group for one in asked.traffic(moe) if one.axis == "expert"} == {"expert tensor"}
