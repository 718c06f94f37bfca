"""What does each axis say: which collectives, of which size, how often, and what can hide them?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import pytest

from commsim.collectives.kinds import ALL_TO_ALL, REDUCE_SCATTER
from commsim.errors import InputError
from commsim.training.axes import AXES, Context, Data, Expert, Pipeline, Tensor, Traffic
from commsim.training.layers.experts import Experts
from commsim.training.operations import Shard
from tests.training.settings import piece, setting

if TYPE_CHECKING:
    from collections.abc import Callable

    from commsim.training.setting import Setting

TOKENS, HIDDEN = 4096, 4096
"""Of llama3.1-8b at a micro-batch of one sequence."""
WHOLE = TOKENS * HIDDEN * 2.0
"""Bytes of the activations between two layers."""
Line = tuple[str, str, float, str, str, float]


def lines(asked: Setting, name: str, axis: str) -> list[Line]:
    """What a piece says along an axis, as (group, collective, size, when, behind, count)."""
    return [_line(one) for one in asked.traffic(piece(asked, name)) if one.axis == axis]


def _line(one: Traffic) -> Line:
    return one.group, one.op.name, float(one.size), one.when, one.behind, one.count


def total(asked: Setting, name: str, **fields: object) -> float:
    """Bytes that a piece says, of the traffic with these fields."""
    said = asked.traffic(piece(asked, name))
    return sum(
        float(one.size) * one.count for one in said if all(getattr(one, key) == value for key, value in fields.items())
    )


def test_tensor_with_sequence_parallelism() -> None:
    """Korthikanti et al. 2022, figure 5: gathered before and scattered after both parts; Megatron gathers again."""
    assert lines(setting("llama3.1-8b", Tensor(4)), "full-dense", "tensor") == [
        ("tensor", "all_gather", WHOLE, "forward", "nothing", 2),
        ("tensor", "reduce_scatter", WHOLE, "forward", "nothing", 2),
        ("tensor", "all_gather", WHOLE, "backward", "nothing", 2),
        ("tensor", "all_gather", WHOLE, "backward", "columns", 2),
        ("tensor", "reduce_scatter", WHOLE, "backward", "columns", 2),
    ]


def test_tensor_without_sequence_parallelism() -> None:
    """Shoeybi et al. 2019, figure 4: two all-reduces forward and two backward."""
    assert lines(setting("llama3.1-8b", Tensor(4, sequence=False)), "full-dense", "tensor") == [
        ("tensor", "all_reduce", WHOLE, "forward", "nothing", 2),
        ("tensor", "all_reduce", WHOLE, "backward", "columns", 2),
    ]


def test_tensor_overlap_hides_the_rest_behind_matmuls() -> None:
    asked = setting("llama3.1-8b", Tensor(4), overlap_tensor=True)
    assert {one[4] for one in lines(asked, "full-dense", "tensor")} == {"matmul", "columns"}


def test_the_embedding_and_the_logits_speak_too() -> None:
    """Rows of the vocabulary are summed over its parts; logits need the whole hidden state; the loss three sums."""
    asked = setting("llama3.1-8b", Tensor(4))
    assert lines(asked, "embedding", "tensor") == [
        ("tensor", "reduce_scatter", WHOLE, "forward", "nothing", 1),
        ("tensor", "all_gather", WHOLE, "backward", "nothing", 1),
    ]
    assert lines(asked, "head", "tensor") == [
        ("tensor", "all_gather", WHOLE, "forward", "nothing", 1),
        ("tensor", "all_gather", WHOLE, "backward", "columns", 1),
        ("tensor", "reduce_scatter", WHOLE, "backward", "columns", 1),
        ("tensor", "all_reduce", TOKENS * 4.0, "forward", "nothing", 3),
    ]


def test_latent_attention_gathers_latents() -> None:
    """DeepSeek-V3's queries and keys grow from latents of 1,536 and 512; a layer of experts has one shared expert."""
    asked = setting("deepseek-v3", Tensor(4), Expert(4))
    said = [one for one in lines(asked, "latent-moe", "tensor") if one[3] == "forward"]
    assert [(op, size / TOKENS / 2, count) for _, op, size, _, _, count in said] == [
        ("all_gather", 1536 + 512, 1),
        ("reduce_scatter", 7168, 1),
        ("all_gather", 7168, 1),
        ("reduce_scatter", 7168, 1),
    ]


@pytest.mark.parametrize(("by", "behind"), [("ring", "attention"), ("all_gather", "nothing")])
def test_context(by: Literal["ring", "all_gather"], behind: str) -> None:
    """8 KV heads of 128, keys and values, of the whole sequence; backward they come again and their gradients go."""
    size = TOKENS * 2 * 8 * 128 * 2.0
    assert lines(setting("llama3.1-8b", Context(4, by=by)), "full-dense", "context") == [
        ("context", "all_gather", size, "forward", behind, 1),
        ("context", "all_gather", size, "backward", behind, 1),
        ("context", "reduce_scatter", size, "backward", behind, 1),
    ]


def test_experts() -> None:
    """Mixtral: two of eight experts a token; dispatch and combine, forward and backward."""
    size = TOKENS * 2 * 4096 * 2.0
    assert lines(setting("mixtral-8x7b", Expert(4), Data(4)), "full-moe", "expert") == [
        ("expert", "all_to_all", size, "forward", "nothing", 2),
        ("expert", "all_to_all", size, "backward", "nothing", 2),
    ]


def test_tensor_ranks_dispatch_their_own_tokens() -> None:
    apart, split = setting("mixtral-8x7b", Expert(4), Data(4)), setting("mixtral-8x7b", Tensor(2), Expert(4), Data(4))
    assert total(split, "full-moe", axis="expert") == total(apart, "full-moe", axis="expert") / 2


@pytest.mark.parametrize(
    ("routing", "copies"), [("spread", 8 * (1 - (1 - 1 / 8) ** 8)), ("consecutive", 1 + 7 * 8 / 128)]
)
def test_a_token_is_sent_once_to_each_place_with_its_experts(routing: str, copies: float) -> None:
    """Qwen3-30B-A3B: 8 of 128 experts, of which 8 ranks have 16 each; neighbours lie on one rank, or on two."""
    asked = setting("qwen3-30b-a3b", Data(8), Expert(8), dispatcher="deepep", routing=routing)
    sent = total(asked, "full-moe", axis="expert", when="forward", op=ALL_TO_ALL)
    assert sent == pytest.approx(2 * 4096 * 2048 * 2 * copies)


def test_neighbours_are_on_all_places_at_most() -> None:
    experts = Experts(count=16, top_k=15, width=8)
    assert experts.reached(8.0, Shard(tokens=1.0, sequence=1.0, neighbours=True)) == 8


def test_ranks_that_share_an_expert_gather_its_tokens() -> None:
    asked = setting("mixtral-8x7b", Tensor(2), Data(4), Expert(4, tensor=2))
    size = total(asked, "full-moe", group="expert", when="forward") / 2
    assert [one[1:4] for one in lines(asked, "full-moe", "expert") if one[0] == "expert tensor"] == [
        ("all_gather", 2 * size, "forward"),
        ("reduce_scatter", 2 * size, "forward"),
        ("all_gather", 2 * size, "backward"),
        ("reduce_scatter", 2 * size, "backward"),
    ]


def test_imbalance_makes_the_most_loaded_rank_send_more() -> None:
    even, skewed = (setting("mixtral-8x7b", Expert(4), Data(4), imbalance=value) for value in (1.0, 1.5))
    assert total(skewed, "full-moe", axis="expert") == 1.5 * total(even, "full-moe", axis="expert")


def test_the_pipeline_sends_what_a_rank_has() -> None:
    """With sequence parallelism a tensor rank has its part of the tokens, without it all of them."""
    for sequence, size in ((True, WHOLE / 4), (False, WHOLE)):
        asked = setting("llama3.1-8b", Tensor(4, sequence=sequence), Pipeline(2))
        message = asked.plan.axis(Pipeline).message(asked)
        assert (message.group, message.op.name, message.size, message.when) == (
            "pipeline",
            "send_recv",
            size,
            "message",
        )


def test_all_residual_streams_travel() -> None:
    asked = setting("deepseek-v4-flash", Expert(8), Data(8), Pipeline(2))
    streams = asked.model.blocks[0].streams
    assert streams == 4
    assert asked.plan.axis(Pipeline).message(asked).size == TOKENS * 4096 * streams * 2.0


def test_tied_weights_are_summed_between_the_ends() -> None:
    """The last stage of a tied model has a copy of the embedding; so has one whose prediction module reads it."""
    tied = setting("llama3.2-1b", Tensor(2), Pipeline(2))
    weights = 128256 * 2048 / 2
    assert lines(tied, "head", "pipeline") == [("ends", "all_reduce", weights * 4, "step", "nothing", 1)]
    assert lines(setting("llama3.1-8b", Tensor(2), Pipeline(2)), "head", "pipeline") == []
    assert lines(setting("deepseek-v3", Expert(8), Data(8), Pipeline(2)), "head", "pipeline")
    assert lines(setting("llama3.2-1b", Tensor(2)), "head", "pipeline") == []


def data_lines(**options: int) -> list[tuple[str, str, float, str]]:
    """What a layer of llama3.1-8b says along 16 data ranks, in bytes a weight: 4 a gradient and 2 a value."""
    asked = setting("llama3.1-8b", Data(16, **options))
    weights = float(piece(asked, "full-dense").work.weights)
    return [(group, op, size / weights, when) for group, op, size, when, _, _ in lines(asked, "full-dense", "data")]


def test_data_sums_gradients_and_gathers_weights_by_stage_of_zero() -> None:
    """Rajbhandari et al. 2020, section 7: stages 0 to 2 move 2 values a weight, stage 3 another one (a micro-batch)."""
    assert data_lines(zero=0) == [("data", "all_reduce", 4, "last backward")]
    scattered, gathered = ("data shard", "reduce_scatter", 4), ("data shard", "all_gather", 2)
    assert data_lines(zero=1) == [(*scattered, "last backward"), (*gathered, "first forward")]
    assert data_lines(zero=2) == [(*scattered, "backward"), (*gathered, "first forward")]
    assert data_lines(zero=3) == [(*scattered, "backward"), (*gathered, "forward"), (*gathered, "backward")]


def test_hybrid_shards_speak_inside_and_between() -> None:
    """HSDP: reduce-scatter in the shard, all-reduce of what each rank owns between the replicas (Zhao et al. 2023)."""
    assert data_lines(zero=3, shard=4) == [
        ("data shard", "reduce_scatter", 4, "backward"),
        ("data shard", "all_gather", 2, "forward"),
        ("data shard", "all_gather", 2, "backward"),
        ("data replicas", "all_reduce", 1, "last backward"),
    ]


def test_with_a_pipeline_stage_2_scatters_once() -> None:
    asked = setting("llama3.1-8b", Data(4, zero=2), Pipeline(2))
    assert {one[3] for one in lines(asked, "full-dense", "data")} == {"last backward", "first forward"}


def test_context_ranks_hold_the_same_weights() -> None:
    asked = setting("llama3.1-8b", Context(4), Data(2))
    assert {asked.plan.layout(one[0]).size for one in lines(asked, "full-dense", "data")} == {8}


def test_experts_are_summed_by_those_who_hold_the_same() -> None:
    asked = setting("mixtral-8x7b", Expert(4), Data(8))
    work = piece(asked, "full-moe").work
    sizes = {one[0]: (one[2] / 4, asked.plan.layout(one[0]).size) for one in lines(asked, "full-moe", "data")[::2]}
    assert sizes == {"data shard": (work.weights, 8), "expert data shard": (work.expert_weights, 2)}


def test_the_ends_gradients_are_summed_too() -> None:
    asked = setting("llama3.1-8b", Data(4))
    assert total(asked, "embedding", op=REDUCE_SCATTER) == pytest.approx(128256 * 4096 * 4.0)


@pytest.mark.parametrize(
    ("recompute", "again"),
    [
        ("none", set()),
        ("full", {"all_gather", "reduce_scatter", "all_to_all"}),
        ("moe", {"all_to_all", "all_gather", "reduce_scatter"}),
        ("core_attn", set()),
    ],
)
def test_recomputation_says_again_what_it_passes(recompute: str, again: set[str]) -> None:
    asked = setting("deepseek-v3", Tensor(2), Data(4), Expert(8), recompute=recompute)
    said = asked.traffic(piece(asked, "latent-moe"))
    assert {one.op.name for one in said if one.repeated and one.when == "forward"} == again


def test_recomputed_attention_fetches_keys_again() -> None:
    asked = setting("llama3.1-8b", Context(4), recompute="core_attn")
    said = [one for one in asked.traffic(piece(asked, "full-dense")) if one.axis == "context"]
    assert [(one.when, one.repeated) for one in said] == [("forward", True), ("backward", False), ("backward", False)]


@pytest.mark.parametrize("kind", AXES.values())
def test_alone_an_axis_says_nothing(kind: type[Any]) -> None:
    """Degree 1 shares nothing and says nothing, whatever the other axes are."""
    others = [axis for axis in (Tensor(2), Context(2), Data(4), Expert(4), Pipeline(2)) if not isinstance(axis, kind)]
    if kind is Data:  # else context ranks, and tensor ranks with the same experts, would sum gradients
        others = [Tensor(2), Expert(2), Pipeline(2)]
    asked = setting("deepseek-v3", *others, kind(1))
    assert [one for each in asked.chunks.pieces for one in asked.traffic(each) if one.axis == kind.name] == []


@pytest.mark.parametrize(
    ("made", "line"),
    [
        (lambda: Data(8, zero=5), r"plan: zero: 5; 0, 1, 2 or 3 belongs here"),
        (lambda: Data(8, zero=True), r"plan: zero: True; 0, 1, 2 or 3 belongs here"),
        (lambda: Data(8, shard=3), r"plan: shard: 3; a divisor of the 8 data ranks belongs here"),
        (lambda: Data(8, shard=0), r"plan: shard: 0; a whole number of at least 1 belongs here"),
        (lambda: Data(8, zero=0, shard=4), r"plan: shard: 4; it needs zero=1, 2 or 3"),
        (lambda: Pipeline(1, virtual=2), r"plan: virtual stages: 2; 1 belongs here: there is only one pipeline stage"),
        (lambda: Pipeline(2, virtual=0), r"plan: virtual stages: 0; a whole number of at least 1 belongs here"),
        (
            lambda: Pipeline(2, layers=(4,)),
            r"plan: pipeline: layers: \(4,\); one number of layers for each of 2 chunks",
        ),
        (lambda: Pipeline(2, layers=(4, -1)), r"plan: pipeline: layers: -1; a whole number of at least 0"),
        (lambda: Expert(2, tensor=0), r"plan: expert-tensor: 0; a whole number of at least 1 belongs here"),
        (lambda: Context(2, by="magic"), r"plan: context: by: 'magic'; no such way"),  # type: ignore[arg-type]
    ],
)
def test_mistakes(made: Callable[[], object], line: str) -> None:
    with pytest.raises(InputError, match=line):
        made()
