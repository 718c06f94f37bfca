"""Are plans values, do their groups cover every rank once, and is a plan's text read or refused in one line?"""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.errors import InputError
from commsim.training.axes import AXES, ORDER, Axis, Context, Data, Expert, Pipeline, Tensor
from commsim.training.layouts import GROUPS
from commsim.training.plan import Plan, parse_plan

LLAMA = Plan(Tensor(8), Context(2), Pipeline(4, virtual=2), Data(16, zero=2))
SIZES = st.sampled_from([1, 2, 4, 8])


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Any order of axes of a few sizes; experts re-fold the ranks of a stage, shards divide the data axis."""
    tensor, context, data, pipeline = (draw(SIZES) for _ in range(4))
    folded = tensor * context * data
    expert = draw(st.sampled_from([size for size in (1, 2, 4, 8) if folded % size == 0]))
    share = draw(st.sampled_from([size for size in (1, 2, 4) if folded % (expert * size) == 0]))
    shard = draw(st.sampled_from([None, *(size for size in (1, 2, 4) if data % size == 0)]))
    axes = [Tensor(tensor), Context(context), Data(data, 1, shard), Pipeline(pipeline), Expert(expert, share)]
    return Plan(*draw(st.permutations(axes)))


@given(plans(), st.sampled_from(sorted(set(GROUPS) - {"ends"})))
def test_every_rank_is_in_every_group_once(plan: Plan, group: str) -> None:
    ranks = plan.layout(group).ranks()
    assert sorted(ranks.ravel().tolist()) == list(range(plan.gpus))


@given(plans(), st.sampled_from(["tensor", "context", "expert", "expert tensor", "expert data", "data"]))
def test_groups_but_the_pipeline_stay_inside_a_stage(plan: Plan, group: str) -> None:
    extent, stride = plan.dims()["pipeline"]
    stage = plan.layout(group).ranks() // stride % extent
    assert (stage == stage[:, :1]).all()


@given(plans())
def test_expert_groups_are_a_grid_of_the_stage(plan: Plan) -> None:
    """EP x ETP x EDP: two ranks of a stage share one group of each sort at most, and meet through the three."""
    sizes = [plan.layout(group).size for group in ("expert tensor", "expert", "expert data")]
    assert sizes[:2] == [plan.expert_tensor, plan.expert]
    assert np.prod(sizes) == plan.tensor * plan.context * plan.data
    places = [_group_of(plan, group) for group in ("expert tensor", "expert", "expert data", "pipeline")]
    shared = [places[i] * plan.gpus + places[j] for i in range(3) for j in range(i)]
    assert all(len(np.unique(pair)) == plan.gpus for pair in shared)


@given(plans())
def test_shards_and_replicas_are_a_grid_of_those_who_hold_the_same(plan: Plan) -> None:
    for whole in ("data", "expert data"):
        shard, replicas = plan.layout(f"{whole} shard"), plan.layout(f"{whole} replicas")
        assert shard.size * replicas.size == plan.layout(whole).size
        both = _group_of(plan, f"{whole} shard") * plan.gpus + _group_of(plan, f"{whole} replicas")
        assert len(np.unique(both)) == plan.gpus


def _group_of(plan: Plan, group: str) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The number of the group in which each rank is."""
    ranks = plan.layout(group).ranks()
    number = np.empty(plan.gpus, dtype=np.int64)
    number[ranks] = np.arange(len(ranks))[:, None]
    return number


def test_the_order_of_words_is_the_placement() -> None:
    assert LLAMA.gpus == 1024
    assert LLAMA.layout("tensor").ranks()[0].tolist() == list(range(8))
    assert LLAMA.layout("context").ranks()[0].tolist() == [0, 8]
    assert LLAMA.layout("pipeline").ranks()[0].tolist() == [0, 16, 32, 48]
    assert LLAMA.layout("data").ranks()[0][:4].tolist() == [0, 8, 64, 72], "context ranks hold the same weights"
    assert LLAMA.layout("ends").ranks()[:2].tolist() == [[0, 48], [1, 49]]


def test_megatron_folds_experts_over_tensor_context_and_data() -> None:
    """64 GPUs, TP 2, CP 2, EP 8, ETP 1, PP 2 (Liu et al. 2025, "MoE Parallel Folding"): 8 neighbours share experts."""
    plan = Plan(Tensor(2), Context(2), Expert(8), Data(8), Pipeline(2))
    assert plan.layout("expert").ranks()[0].tolist() == list(range(8))
    assert plan.layout("expert data").ranks()[0].tolist() == [0, 8, 16, 24]


def test_experts_cut_across_axes_where_ranks_are_contiguous() -> None:
    plan = Plan(Tensor(6), Data(4), Expert(8))
    assert plan.layout("expert").ranks()[0].tolist() == list(range(8))
    with pytest.raises(InputError, match="plan: expert: 8; it cuts an axis of 6 ranks unevenly"):
        Plan(Tensor(6), Pipeline(2), Data(4), Expert(8)).layout("expert")


def test_hybrid_shards_are_neighbours() -> None:
    plan = Plan(Tensor(2), Data(8, zero=3, shard=4))
    assert plan.layout("data shard").ranks()[0].tolist() == [0, 2, 4, 6]
    assert plan.layout("data replicas").ranks()[0].tolist() == [0, 8]


@given(plans())
def test_plans_are_values(plan: Plan) -> None:
    same = Plan(*plan.axes)
    assert (same, hash(same), repr(same)) == (plan, hash(plan), repr(plan))
    assert pickle.loads(pickle.dumps(plan)) == plan  # noqa: S301 - our own bytes
    names = {type(axis).__name__: type(axis) for axis in plan.axes}
    assert eval(repr(plan), {"Plan": Plan, **names}) == plan  # noqa: S307 - our own text


def test_a_plan_says_what_one_would_write() -> None:
    assert repr(LLAMA) == "Plan(Tensor(8), Context(2), Pipeline(4, virtual=2), Data(16, zero=2))"
    assert Plan(Tensor(2)) != Plan()


def test_plans_are_frozen() -> None:
    with pytest.raises(AttributeError):
        LLAMA.axes = ()  # type: ignore[misc]


def test_changed_keeps_the_placement() -> None:
    assert LLAMA.changed(Data(2), Expert(4)) == Plan(Tensor(8), Context(2), Pipeline(4, virtual=2), Data(2), Expert(4))


def test_megatrons_order() -> None:
    plan = Plan.ordered(Pipeline(2), Data(4), Expert(2), Tensor(8), Context(1))
    assert tuple(axis.name for axis in plan.axes) == ORDER
    assert plan.layout("pipeline").ranks()[0].tolist() == [0, 32]


def test_read_in_the_order_of_the_words() -> None:
    text = "tensor=8, context=2,expert=8,expert-tensor=2,pipeline=8,data=16"
    plan = Plan(Tensor(8), Context(2), Expert(8, tensor=2), Pipeline(8, virtual=4), Data(16, zero=3, shard=4))
    assert parse_plan(text, virtual=4, zero=3, shard=4) == plan
    assert parse_plan("TP=2,dp=4") == Plan(Tensor(2), Data(4)), "as trainers call them"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("tensor=8,,tensor=4", "plan: ''; an axis with its size, such as tensor=8, belongs between the commas"),
        ("tensor=8,tensor=4", "plan: 'tensor=4'; each axis belongs in a plan once, and tensor is there already"),
        ("tensor=8,tp=4", "plan: 'tp=4'; each axis belongs in a plan once, and tensor is there already"),
        ("tensor=-1", "plan: tensor: 'tensor=-1'; a whole number of at least 1 belongs here, as in tensor=8"),
        ("tensor=0", "plan: tensor: 'tensor=0'; a whole number of at least 1 belongs here, as in tensor=8"),
        ("tensor=2.5", "plan: tensor: 'tensor=2.5'; a whole number of at least 1 belongs here, as in tensor=8"),
        ("tensor", "plan: tensor: 'tensor'; a whole number of at least 1 belongs here, as in tensor=8"),
        ("data=" + "9" * 5000, "plan: data: 'data=9999"),
        ("tensr=8", "plan: 'tensr'; no such axis; did you mean 'tensor'?"),
        ("", "plan: ''; an axis with its size, such as tensor=8, belongs between the commas"),
        ("tensor=2,expert-tensor=2", "plan: expert-tensor: 2; expert=N belongs beside it"),
        (
            "tensor=2,data=2,expert=3",
            "plan: expert: 'expert 3 x expert-tensor 1'; a divisor of tensor x context x data = 4",
        ),
    ],
)
def test_a_plan_that_is_none_is_refused(text: str, line: str) -> None:
    with pytest.raises(InputError) as error:
        parse_plan(text)
    assert str(error.value).startswith(line)


def test_options_need_their_axis() -> None:
    with pytest.raises(InputError, match=r"virtual stages: 2; a plan with pipeline=N belongs beside it"):
        parse_plan("tensor=2", virtual=2)


@pytest.mark.parametrize("kind", AXES.values())
@pytest.mark.parametrize("size", [0, -1, 1.5, True, "8", None])
def test_an_axis_has_ranks(kind: type[Axis], size: object) -> None:
    with pytest.raises(InputError, match=f"plan: {kind.name}: .*; a whole number of at least 1 belongs here"):
        kind(size)  # type: ignore[arg-type]


def test_only_axes_and_each_once() -> None:
    with pytest.raises(InputError, match=r"plan: 8; axes such as Tensor\(8\)"):
        Plan(8)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="plan: 'data'; each axis belongs in a plan once"):
        Plan(Data(2), Data(4))


def test_no_such_group() -> None:
    with pytest.raises(InputError, match=r"group: 'tensors'; no such group; did you mean 'tensor'"):
        LLAMA.layout("tensors")
