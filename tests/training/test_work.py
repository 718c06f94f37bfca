"""Does a layer ask of a rank what it should?"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.training.configs.well_known import model, models
from commsim.training.layers.span import Span
from commsim.training.operations import FULL, MODULES, NOTHING, PLAIN, SELECTIVE, Operation, Shard, Work
from commsim.training.parameters import parameters
from commsim.training.work import embedding, head, model_flops, predictors, work

if TYPE_CHECKING:
    from commsim.training.model import Model
    from commsim.training.operations import Recomputed

KINDS = [(known, kind) for known in models() for kind in known.kinds]
kinds = st.sampled_from(KINDS)


def named(asked: Work, name: str) -> Operation:
    return next(operation for operation in asked.operations if operation.name == name)


def shapes(asked: Work) -> dict[str, tuple[float, float, float, float]]:
    return {
        part.name: (float(part.m), float(part.k), float(part.n), float(part.batch))
        for part in asked.operations
        if part.kind == "matmul"
    }


# Shapes, worked out by hand


def test_llama_under_tensor_parallelism() -> None:
    asked = work(model("llama3.1-405b"), "full-dense", Shard(tokens=8192.0, sequence=8192.0, tensor=8.0))
    assert shapes(asked) == {
        "query, key, value": (8192, 16384, (128 + 2 * 8) * 128 / 8, 1),
        "output": (8192, 16384 / 8, 16384, 1),
        "up": (8192, 16384, 2 * 53248 / 8, 1),
        "down": (8192, 53248 / 8, 16384, 1),
    }
    core = named(asked, "attention")
    assert (core.m, core.n, core.k, core.batch) == (8192, 4096, 128, 16)
    assert core.flops == 2 * 8192 * 4096 * (128 + 128) * 16


def test_tensor_parallelism_beyond_the_kv_heads_replicates_them() -> None:
    shard = Shard(tokens=4096.0, sequence=4096.0, tensor=16.0)
    asked = work(model("llama3.1-405b"), "full-dense", shard)
    assert shapes(asked)["query, key, value"][2] == 128 * 128 / 16 + 2 * 128
    half = work(model("llama3.1-405b"), "full-dense", dataclasses.replace(shard, tensor=8.0))
    assert asked.weights > half.weights / 2


def test_experts_are_grouped_and_their_columns_split() -> None:
    shard = Shard(tokens=4096.0, sequence=4096.0, tensor=2.0, expert=64.0, expert_tensor=1.0)
    asked = shapes(work(model("deepseek-v3"), "latent-moe", shard))
    assert asked["expert up"] == (4096 / 2 * 8 / 4, 7168, 2 * 2048, 4)
    assert asked["expert down"] == (4096 / 2 * 8 / 4, 2048, 7168, 4)
    split = shapes(work(model("deepseek-v3"), "latent-moe", dataclasses.replace(shard, expert_tensor=2.0)))
    assert split["expert up"] == (4096 / 2 * 8 * 2 / 4, 7168, 2048, 4)
    assert asked["router"] == (2048, 7168, 256, 1)
    assert asked["shared up"] == (4096, 7168, 2 * 2048 / 2, 1)


def test_the_low_ranks_of_latent_attention_are_replicated() -> None:
    asked = shapes(work(model("deepseek-v3"), "latent-dense", Shard(tokens=4096.0, sequence=4096.0, tensor=4.0)))
    assert asked["query down"] == (1024, 7168, 1536, 1)
    assert asked["query up"] == (4096, 1536, 128 * 192 / 4, 1)
    assert asked["key, value down"] == (1024, 7168, 512 + 64, 1)
    assert asked["key, value up"] == (4096, 512, 128 * (128 + 128) / 4, 1)


def test_a_matmul_has_two_gradients() -> None:
    down = named(work(model("llama3.1-8b"), "full-dense", Shard(tokens=4096.0, sequence=4096.0)), "down")
    of_input, of_weight = down.backward
    assert (of_input.m, of_input.k, of_input.n) == (4096, 4096, 14336)
    assert (of_weight.m, of_weight.k, of_weight.n) == (14336, 4096, 4096)
    assert of_input.flops == of_weight.flops == down.flops
    assert of_weight.bytes - of_input.bytes == (8 - 2) * 14336 * 4096


def test_attention_costs_two_and_a_half_times_as_much_backward() -> None:
    shard = Shard(tokens=4096.0, sequence=4096.0)
    (gradient,) = named(work(model("llama3.1-8b"), "full-dense", shard), "attention").backward
    assert gradient.flops == 2.5 * named(work(model("llama3.1-8b"), "full-dense", shard), "attention").flops
    # DeepSeek's keys are wider than its values: scores, and two of the three gradients, are as wide as keys
    latent = named(work(model("deepseek-v3"), "latent-moe", shard), "attention")
    assert latent.backward[0].flops / latent.flops == pytest.approx((3 * 192 + 2 * 128) / (192 + 128))


@pytest.mark.parametrize("span", [Span(), Span(most=128), Span(chunk=64), Span(stride=4), Span(stride=4, most=20)])
def test_average_keys_against_counting(span: Span) -> None:
    length = 512
    seen = [
        min((position % (span.chunk or length)) / span.stride, span.most or np.inf) for position in range(1, length + 1)
    ]
    assert span.keys(float(length)) == pytest.approx(np.mean(seen), abs=1)


def test_context_ranks_share_the_queries_and_see_all_keys() -> None:
    alone = named(work(model("llama3.1-8b"), "full-dense", Shard(tokens=8192.0, sequence=8192.0)), "attention")
    shared = Shard(tokens=2048.0, sequence=8192.0, context=4.0)
    part = named(work(model("llama3.1-8b"), "full-dense", shared), "attention")
    assert part.flops * 4 == alone.flops
    assert part.bytes > alone.bytes / 4


def test_a_ring_attends_block_by_block() -> None:
    """Four blocks of a quarter of the keys, three of which are added to what is there; gathered keys are one block."""
    shard = Shard(tokens=2048.0, sequence=8192.0, context=4.0)
    ring, gathered = (
        named(work(model("llama3.1-8b"), "full-dense", one), "attention")
        for one in (shard, dataclasses.replace(shard, ring=False))
    )
    assert (ring.n * 4, ring.flops, ring.bytes) == (gathered.n, gathered.flops, gathered.bytes)
    assert ring.accumulated == 3 * 2.25 * 2 * 2048 * (32 + 8) * 128
    assert gathered.accumulated == 0


# What is kept, against Korthikanti et al. 2022


GPT3 = model("gpt3-175b")
SEQUENCE, BATCH, HIDDEN, HEADS = 2048, 1, 12288, 96
SBH = SEQUENCE * BATCH * HIDDEN
SCORES = 5 * HEADS * SEQUENCE / HIDDEN


def gpt3_layer(tensor: int, *, sequence_parallel: bool) -> Work:
    shard = Shard(
        tokens=float(SEQUENCE * BATCH),
        sequence=float(SEQUENCE),
        tensor=float(tensor),
        sequence_parallel=sequence_parallel,
        fused_attention=False,
    )
    return work(GPT3, "full-dense", shard)


def test_scores_of_gpt3_and_mt_nlg() -> None:
    """Section 5: 5as/h is 80 for GPT-3 and 64 for MT-NLG."""
    assert SCORES == 80
    assert 5 * model("mt-nlg-530b").heads * SEQUENCE / model("mt-nlg-530b").hidden == 64


@pytest.mark.parametrize("tensor", [1, 2, 8])
def test_activations_of_a_layer(tensor: int) -> None:
    """Table 2, from the top: no parallelism, tensor, with sequence, each with selective recomputation, full."""
    plain, spread = (gpt3_layer(tensor, sequence_parallel=on) for on in (False, True))
    assert plain.kept() == pytest.approx(SBH * (10 + 24 / tensor + SCORES / tensor))
    assert spread.kept() == pytest.approx(SBH / tensor * (34 + SCORES))
    assert plain.kept(SELECTIVE) == pytest.approx(SBH * (10 + 24 / tensor))
    assert spread.kept(SELECTIVE) == pytest.approx(SBH * 34 / tensor)
    assert plain.kept(FULL) == 2 * SBH


def test_activations_of_the_ends() -> None:
    """Section 4.3: sbh/t for the dropout of the embedding, and 4sbh/t (1 + v/h) for norm, projection and loss."""
    shard = Shard(tokens=float(SEQUENCE), sequence=float(SEQUENCE), tensor=8.0)
    assert embedding(GPT3, shard).kept() == SBH / 8
    assert head(GPT3, shard).kept() == pytest.approx(4 * SBH / 8 * (1 + 51200 / HIDDEN))


def test_fused_attention_keeps_no_scores() -> None:
    shard = Shard(tokens=float(SEQUENCE), sequence=float(SEQUENCE))
    kept = work(model("llama3.1-8b"), "full-dense", shard).kept()
    hidden, width, kv = 4096, 14336, 2 * 8 * 128
    # two norms with input and result, queries and output, keys and values, gate, up and their product; statistics
    assert kept == SEQUENCE * (2 * (4 * hidden + 2 * hidden + kv + 3 * width) + 4 * 32)


def repeated(asked: Work, recomputed: Recomputed) -> set[str]:
    """The names of the operations that run a second time."""
    return {part.name for part, share in zip(asked.operations, asked.again(recomputed)) if share}


def test_what_nobody_reads_is_left_out_at_the_end() -> None:
    """The last product of a layer and what follows it: of all, and of every second product."""
    asked = work(model("llama3.1-8b"), "full-dense", Shard(tokens=4096.0, sequence=4096.0))
    assert asked.again(FULL, early=True) == (*(1.0,) * (len(asked.operations) - 2), 0.0, 0.0)
    products = [share for share in asked.again(frozenset({"second_matmul"}), early=True) if share]
    assert products == [0.5] * 3
    assert embedding(model("llama3.1-8b"), Shard(tokens=1.0, sequence=1.0)).again(FULL, early=True) == (1.0,)


def test_recomputing_repeats_what_it_frees() -> None:
    asked = work(model("deepseek-v3"), "latent-moe", Shard(tokens=4096.0, sequence=4096.0))
    assert repeated(asked, frozenset({"moe_act"})) == {"expert activation"}
    assert repeated(asked, SELECTIVE) == {"attention"}
    assert asked.again(FULL) == (1.0,) * len(asked.operations)
    assert not any(asked.again(NOTHING))
    freed = asked.kept() - asked.kept(frozenset({"moe_act"}))
    assert freed == 2 * 4096 * 8 * 2048


@pytest.mark.parametrize("module", MODULES)
def test_every_module_is_freed_somewhere(module: str) -> None:
    shard = Shard(tokens=4096.0, sequence=4096.0)
    layers = (work(known, kind, shard) for known, kind in KINDS)
    assert any(layer.kept(frozenset({module})) < layer.kept() for layer in layers)


# Laws, over every kind of layer of every model in the table


@given(kinds, st.sampled_from([1, 2, 4, 8]), st.sampled_from([1, 2, 4]), st.sampled_from([1, 2]))
def test_ranks_together_do_the_work_once(case: tuple[Model, str], tensor: int, expert: int, etp: int) -> None:
    known, kind = case
    tensor = min(tensor, _shared_out(known, kind))
    whole = work(known, kind, Shard(tokens=2048.0, sequence=2048.0))
    part = work(known, kind, Shard(2048.0, 2048.0, float(tensor), 1.0, float(expert), float(etp)))
    for mine, all_of_it in zip(part.operations, whole.operations):
        assert mine.flops * tensor == pytest.approx(all_of_it.flops)
        assert mine.backward_flops * tensor == pytest.approx(all_of_it.backward_flops)


def _shared_out(known: Model, kind: str) -> int:
    """Return up to how many ranks nothing of the layer is replicated."""
    block = known.block(kind)
    matrices = [each for part in block.parts for each in part.projections(known.hidden)]
    return min(count for each in matrices for count, _ in each.outputs if each.share == "columns")


@given(kinds)
def test_one_rank_holds_all_parameters(case: tuple[Model, str]) -> None:
    known, kind = case
    asked = work(known, kind, Shard(tokens=1.0, sequence=2048.0))
    held = sum(count.total for count in parameters(known).blocks[kind].values())
    assert asked.weights + asked.expert_weights == held


@given(kinds, st.lists(st.sampled_from([1.0, 2.0, 8.0, 16.0, 64.0]), min_size=2, max_size=4))
def test_an_array_of_plans_is_the_plans_one_by_one(case: tuple[Model, str], sizes: list[float]) -> None:
    plans = np.array(sizes)
    many = work(*case, Shard(4096 / plans, 4096 + 0 * plans, plans, plans, plans, plans))
    for number, size in enumerate(sizes):
        one = work(*case, Shard(4096 / size, 4096.0, size, size, size, size))
        assert np.broadcast_to(many.kept(), plans.shape)[number] == pytest.approx(one.kept())
        assert np.broadcast_to(many.weights, plans.shape)[number] == pytest.approx(one.weights)
        for together, alone in zip(many.operations, one.operations):
            assert np.broadcast_to(together.flops, plans.shape)[number] == pytest.approx(alone.flops)
            assert np.broadcast_to(together.bytes, plans.shape)[number] == pytest.approx(alone.bytes)


@given(kinds, st.booleans())
def test_work_grows_with_tokens_and_recomputing_frees(case: tuple[Model, str], fused: bool) -> None:  # noqa: FBT001
    one = work(*case, Shard(tokens=2048.0, sequence=2048.0, fused_attention=fused))
    two = work(*case, Shard(tokens=4096.0, sequence=2048.0, fused_attention=fused))
    assert two.flops == pytest.approx(2 * one.flops)
    assert two.kept() == pytest.approx(2 * one.kept())
    assert 0 < one.kept(FULL) < one.kept(SELECTIVE) <= one.kept()
    assert all(part.bytes > 0 or part.name == "sort by expert" for part in one.operations)


@given(st.sampled_from(models()), st.sampled_from([1024.0, 8192.0]))
def test_unfused_attention_is_never_less(known: Model, sequence: float) -> None:
    for kind in known.kinds:
        fused, unfused = (work(known, kind, Shard(2048.0, sequence, fused_attention=on)) for on in (True, False))
        assert unfused.flops >= fused.flops * (1 - 1e-12)


# The ends


def test_tied_weights_are_held_once() -> None:
    shard = Shard(tokens=1.0, sequence=1024.0)
    tied, untied = model("gpt3-175b"), model("llama3.1-8b")
    assert head(tied, shard).weights == 2 * tied.hidden
    assert head(untied, shard).weights == untied.hidden * (untied.vocabulary + 1)
    assert embedding(untied, shard).weights == untied.hidden * untied.vocabulary


def test_predictors_have_layers_and_logits_of_their_own() -> None:
    known, shard = model("deepseek-v3"), Shard(tokens=1.0, sequence=4096.0)
    asked = predictors(known, shard)
    assert asked is not None
    assert asked.weights + asked.expert_weights == parameters(known).predictors.total
    layer, end = work(known, "latent-moe", shard), head(known, shard)
    assert asked.flops == pytest.approx(layer.flops + end.flops + 2 * 2 * 7168**2)
    assert predictors(model("llama3.1-8b"), shard) is None


@given(st.sampled_from(models()))
def test_all_layers_and_ends_hold_all_parameters(known: Model) -> None:
    shard = Shard(tokens=1.0, sequence=1024.0)
    layers = [(count, work(known, kind, shard)) for kind, count in known.counts.items()]
    ends = [(1, end) for end in (embedding(known, shard), head(known, shard), predictors(known, shard)) if end]
    held = sum(count * (asked.weights + asked.expert_weights) for count, asked in (*layers, *ends))
    assert held == pytest.approx(parameters(known).trained, rel=1e-12)


def test_flops_of_an_array_of_sequences() -> None:
    known, lengths = model("gpt-oss-120b"), np.array([1024.0, 4096.0])
    assert model_flops(known, lengths) == pytest.approx([model_flops(known, length) for length in lengths])


def test_pytorchs_own_norm_and_activation_move_more() -> None:
    """An fp32 norm in six kernels, and SwiGLU in two: as many bytes as those kernels read and write."""
    fused, plain = (
        {one.name: one for one in work(model("llama3.1-8b"), "full-dense", shard).operations}
        for shard in (Shard(tokens=1.0, sequence=4096.0), Shard(tokens=1.0, sequence=4096.0, unfused=frozenset(PLAIN)))
    )
    moved = {name: (plain[name].bytes, plain[name].backward_bytes) for name in ("norm", "activation")}
    assert moved["norm"] == (4096 * 36, 4096 * 68) > (fused["norm"].bytes, fused["norm"].backward_bytes)
    assert moved["activation"] == (14336 * 10, 14336 * 18)
