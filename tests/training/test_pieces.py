"""What does each piece of a model ask of a rank, and what does imbalance make of it?"""

from __future__ import annotations

import pytest

from commsim.training.axes import Data, Expert, Pipeline, Tensor
from commsim.training.pieces import Join
from tests.training.settings import piece, setting


def test_layers_multiply_in_the_recipes_format_the_ends_do_not() -> None:
    asked = setting("deepseek-v3", Expert(8), Data(8), precision="fp8")
    formats = {one.name: one.formats for one in asked.chunks.pieces}
    assert formats == {
        "latent-dense": ("fp8", "bf16"),
        "latent-moe": ("fp8", "bf16"),
        "embedding": ("bf16", "bf16"),
        "head": ("bf16", "bf16"),
        "predictors": ("bf16", "bf16"),
    }


def test_the_ends_are_never_recomputed() -> None:
    asked = setting("llama3.1-8b", Data(8), recompute="full")
    assert {one.name: bool(one.recomputed) for one in asked.chunks.pieces} == {
        "full-dense": True,
        "embedding": False,
        "head": True,
    }
    head = piece(asked, "head")
    assert not any(head.work.again(head.recomputed)), "what the loss keeps is dropped, but nothing runs again"


def test_imbalance_loads_what_experts_do_and_nothing_else() -> None:
    even, busy = (
        piece(setting("mixtral-8x7b", Expert(8), Data(8), imbalance=value), "full-moe").work for value in (1.0, 1.5)
    )
    for before, after in zip(even.operations, busy.operations, strict=True):
        factor = 1.5 if before.split == "experts" else 1.0
        assert after.flops == pytest.approx(factor * before.flops)
        assert after.backward_flops == pytest.approx(factor * before.backward_flops)
    for stored, fuller in zip(even.stored, busy.stored, strict=True):
        assert fuller.bytes == pytest.approx((1.5 if stored.split == "experts" else 1.0) * stored.bytes)
    assert busy.weights + busy.expert_weights == even.weights + even.expert_weights


def test_an_imbalanced_matmul_reads_its_weights_once() -> None:
    """Bytes are those of a matmul of 1.5 times the rows: inputs and outputs grow, weights do not."""
    even, busy = (
        piece(setting("mixtral-8x7b", Expert(8), Data(8), imbalance=value), "full-moe").work for value in (1.0, 1.5)
    )
    up = next(one for one in busy.operations if one.name == "expert up")
    before = next(one for one in even.operations if one.name == "expert up")
    assert up.m == 1.5 * before.m
    assert up.bytes == pytest.approx(2 * (up.m * up.k + up.k * up.n + up.m * up.n) * up.batch)
    gradient = 6 * before.k * before.n * before.batch  # fp32, read and written, in place of bf16
    assert before.backward_bytes == pytest.approx(before.bytes + gradient)
    assert up.backward_bytes == pytest.approx(up.bytes + gradient)


def test_without_expert_ranks_imbalance_is_nobodys() -> None:
    """One rank has all experts, so it has all tokens whichever they choose."""
    even, same = (setting("mixtral-8x7b", Expert(1), Data(8), imbalance=value) for value in (1.0, 2.0))
    assert piece(even, "full-moe").work.flops == piece(same, "full-moe").work.flops


def test_recomputation_keeps_less_and_works_on_more() -> None:
    kept, again = (piece(setting("llama3.1-8b", Data(8), recompute=how), "full-dense") for how in ("none", "full"))
    assert again.kept == 4096 * 4096 * 2, "the layer's input (Korthikanti et al. 2022, section 5: 2sbh)"
    assert again.working - kept.working == kept.kept - again.kept


def test_joins() -> None:
    attention = Join(4096, 4096)
    assert piece(setting("llama3.1-8b", Tensor(8)), "full-dense").joins == (attention, attention)
    assert piece(setting("mixtral-8x7b", Tensor(8)), "full-moe").joins == (attention,), "experts are not joined"


def test_modules_that_are_recomputed_join_again() -> None:
    asked = piece(setting("llama3.1-8b", Tensor(8), recompute="mlp"), "full-dense")
    assert [one.repeated for one in asked.joins] == [False, True]


def test_a_tied_copy_of_the_embedding_stands_on_the_last_stage() -> None:
    one, two = setting("llama3.2-1b", Data(1)), setting("llama3.2-1b", Pipeline(2))
    rows = 128256 * 2048
    assert piece(two, "head").work.weights - piece(one, "head").work.weights == rows
    assert (piece(one, "head").tied, piece(two, "head").tied) == (0.0, rows)
