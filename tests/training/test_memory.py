"""What does the fullest rank hold: by ZeRO stage, schedule and recomputation?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commsim.training.axes import Axis, Context, Data, Expert, Pipeline, Tensor
from commsim.training.configs.well_known import model
from commsim.training.memory import CONTEXT_BYTES, FRAGMENTATION, GROUP_BYTES
from commsim.training.memory import activations as activations_of
from commsim.training.memory import owned as owned_of
from commsim.training.parameters import parameters
from commsim.training.pipeline import compiled, in_flight
from commsim.training.step import program_of, steps
from tests.training.clock import clockwork
from tests.training.settings import estimated, piece, setting

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from commsim.training.memory import Memory
    from commsim.training.setting import Setting
    from commsim.training.steps import Steps

LLAMA = "llama3.1-8b"


def stepped(asked: Setting) -> Steps:
    """The setting as the one plan of an array, on a machine of round figures."""
    return steps(asked, clockwork())


def activations(asked: Setting) -> NDArray[np.float64]:
    """Bytes of activations that a rank of each stage holds."""
    found = stepped(asked)
    return activations_of(found.course, found.chunks, found.profile)[:, 0]


def owned(asked: Setting) -> dict[str, NDArray[np.float64]]:
    """Of how many weights a rank of each stage holds what."""
    found = stepped(asked)
    return {name: of[:, 0] for name, of in owned_of(found.chunks, found.sync).items()}


def memory(name: str, *axes: Axis, **recipe: Any) -> Memory:  # noqa: ANN401 - the fields of Recipe
    """The memory of an estimate."""
    return estimated(name, *axes, **recipe).memory


@pytest.mark.parametrize(("zero", "bytes_each"), [(0, 16), (1, 4 + 12 / 64), (2, 2 + 14 / 64), (3, 16 / 64)])
def test_zero(zero: int, bytes_each: float) -> None:
    """Rajbhandari et al. 2020, figure 1: 2 + 2 + 12 bytes a weight, sharded over 64 ranks from stage to stage."""
    found = memory(LLAMA, Data(64, zero=zero), gradient_bytes=2)
    weights = parameters(model(LLAMA)).total
    assert found.weights + found.gradients + found.optimizer == pytest.approx(bytes_each * weights)


def test_hybrid_shards_hold_as_much_as_a_small_group() -> None:
    small, hybrid = memory(LLAMA, Data(8, zero=3)), memory(LLAMA, Data(64, zero=3, shard=8))
    assert (small.weights, small.gradients, small.optimizer) == (hybrid.weights, hybrid.gradients, hybrid.optimizer)


def test_context_ranks_shard_with_data_ranks() -> None:
    assert memory(LLAMA, Context(4), Data(4)).optimizer == memory(LLAMA, Data(16)).optimizer


@pytest.mark.parametrize(
    "axes",
    [
        (Data(8, zero=0),),
        (Tensor(4), Pipeline(4, virtual=2)),
        (Pipeline(8), Tensor(2)),
        (Expert(8), Data(8, zero=0), Pipeline(4)),
        (Tensor(2), Data(4, zero=0), Expert(4, tensor=2)),
    ],
)
@pytest.mark.parametrize("name", [LLAMA, "mixtral-8x7b"])
def test_stages_hold_the_model_between_them(name: str, axes: tuple[Axis, ...]) -> None:
    """Weights of a stage times the ranks that share them; norms and the router are whole on each tensor rank."""
    if name == LLAMA:
        axes = tuple(axis for axis in axes if not isinstance(axis, Expert))
    asked = setting(name, *axes)
    chunks, plan = asked.chunks, asked.plan
    works = [one.work for one in chunks.pieces]
    dense, experts = (
        float((chunks.counts @ np.array([float(getattr(work, which)) for work in works])).sum())
        for which in ("weights", "expert_weights")
    )
    assert owned(asked)["weights"].sum() == pytest.approx(dense + experts)
    held = dense * plan.tensor + experts * plan.expert * plan.expert_tensor
    whole = parameters(asked.model).total
    replicated = dense * plan.tensor - (whole - experts * plan.expert * plan.expert_tensor)
    assert held >= whole * (1 - 1e-12)
    assert replicated / whole < 0.001


def test_experts_are_sharded_over_fewer_ranks() -> None:
    asked = setting("mixtral-8x7b", Expert(8), Data(16))
    work = piece(asked, "full-moe").work
    layers, rest = 32, 2 * 32000 * 4096 + 4096
    expected = (work.weights * layers + rest) / 16 + work.expert_weights * layers / 2
    assert owned(asked)["optimizer"][0] == pytest.approx(expected)


def kept(asked: Setting) -> float:
    """Bytes of activations of one layer and micro-batch."""
    return float(piece(asked, "full-dense").kept)


def working(asked: Setting, name: str = "full-dense") -> float:
    """Bytes besides while the backward pass of a piece runs."""
    return float(piece(asked, name).working)


def test_1f1b_holds_a_micro_batch_for_each_later_stage() -> None:
    """Stage s holds p - s micro-batches (Narayanan et al. 2021, section 2.2), GPipe all of them."""
    asked = setting(LLAMA, Pipeline(4), global_batch=16)
    held, inputs, loss = activations(asked), float(piece(asked, "head").kept), working(asked, "head")
    assert held == pytest.approx(
        [8 * kept(asked) * n + working(asked) for n in (4, 3, 2)] + [8 * kept(asked) + inputs + loss]
    )
    everything = setting(LLAMA, Pipeline(4), global_batch=16, schedule="gpipe")
    held, logits = activations(everything), 4 * 4096 * 128256
    last = 16 * (8 * kept(asked) + inputs + logits) + logits / 2
    assert held == pytest.approx([8 * kept(asked) * 16 + working(asked)] * 3 + [last])


def test_gradients_are_those_of_the_largest_tensor() -> None:
    """The gated activation has gradients as wide as its two inputs; logits get one in bf16."""
    asked = setting(LLAMA, Data(8))
    assert working(asked) == 2 * 2 * 4096 * 14336
    assert working(asked, "head") == (4 + 2) * 4096 * 128256


def test_pytorchs_own_loss_holds_all_logits_and_their_gradients() -> None:
    """bf16 logits, their fp32 log-softmax and two fp32 gradients: 14 bytes for each, on every tensor rank."""
    whole, part = (
        setting(LLAMA, Tensor(8), unfused="loss", loss_parallel=parallel, recompute="full")
        for parallel in (False, True)
    )
    assert working(whole, "head") == 14 * 4096 * 128256 == 8 * working(part, "head")


def test_what_is_not_fused_keeps_more() -> None:
    """LLaMA's reference norm keeps an fp32 copy and the normalised, SwiGLU the activated gate."""
    fused, plain = (kept(setting(LLAMA, Data(8), unfused=names)) for names in ("", "norm+activation"))
    assert plain - fused == 4096 * (2 * 6 * 4096 + 2 * 14336)


def test_matmuls_keep_their_input_in_their_format() -> None:
    """fp8 (Transformer Engine): half of both norms and of what is activated; attention's output is kept twice."""
    usual, fp8 = (kept(setting(LLAMA, Data(8), precision=name)) for name in ("bf16", "fp8"))
    assert usual - fp8 == 4096 * (2 * 4096 + 14336 - 4096)


def test_segments_that_expand_waste_less() -> None:
    wasteful, usual = (memory(LLAMA, Data(8), expandable_segments=way).activations for way in (False, True))
    assert wasteful / usual == pytest.approx((1 + FRAGMENTATION[False]) / (1 + FRAGMENTATION[True]))


def test_interleaving_holds_more() -> None:
    """The first stage holds L (1 + (p - 1) / (p v)) layers instead of L (Korthikanti et al. 2022, section 4.2.3)."""
    asked = setting(LLAMA, Pipeline(4, virtual=4), global_batch=16)
    held = activations(asked)
    assert held[0] == pytest.approx(32 * kept(asked) * (1 + 3 / 16) + working(asked))


def test_interleaving_with_few_micro_batches_holds_only_those() -> None:
    """With as many micro-batches as stages every one of the v chunks holds m at most, not 2 (p - 1) + (v - 1) p + 1."""
    asked = setting(LLAMA, Pipeline(4, virtual=4), global_batch=4)
    held = activations(asked)
    assert held[0] == pytest.approx(8 * kept(asked) * 4 + working(asked))
    assert in_flight(compiled("interleaved", 4, 4, 4))[0] == 16 < 2 * 3 + 3 * 4 + 1


@settings(max_examples=20)
@given(st.sampled_from([2, 4]), st.sampled_from([4, 8, 16]), st.sampled_from([1, 2]))
def test_held_is_what_the_schedule_has_in_flight(stages: int, batch: int, virtual: int) -> None:
    """Where all chunks are alike, it is the chunks in flight times the bytes of one."""
    asked = setting(LLAMA, Pipeline(stages, virtual), global_batch=batch)
    program = program_of(asked)
    layers = 32 // (stages * virtual)
    held = activations(asked)[:-1]
    assert held == pytest.approx((in_flight(program) * layers * kept(asked))[:-1] + working(asked))


def test_full_recomputation_holds_inputs_and_one_layer() -> None:
    """Korthikanti et al. 2022, section 5: 2sbh a layer, and all of one layer while it is computed again."""
    asked, unsaved = (setting(LLAMA, Pipeline(8), recompute=how) for how in ("full", "none"))
    once = kept(unsaved) - 4096 * 4096 * 2 + working(unsaved)
    assert activations(asked)[0] == pytest.approx(8 * 4 * 4096 * 4096 * 2 + once)


def test_recomputing_some_layers_lies_between() -> None:
    none, some, full = (
        memory(LLAMA, Pipeline(4), recompute=how, recompute_layers=layers).activations
        for how, layers in (("none", None), ("full", 4), ("full", None))
    )
    assert full < some < none
    asked = setting(LLAMA, Pipeline(4))
    saved = 4 * 4 * (kept(asked) - 4096 * 4096 * 2)
    again = kept(asked) - 4096 * 4096 * 2
    assert none - some == pytest.approx((saved - again) * (1 + FRAGMENTATION[True]))


def test_the_process_and_its_groups() -> None:
    """One GPU speaks to nobody; each group that speaks has buffers, and stage 3 gathers two layers and a gradient."""
    assert memory(LLAMA).other == CONTEXT_BYTES
    assert memory(LLAMA, Data(8)).other == CONTEXT_BYTES + GROUP_BYTES
    largest = 128256 * 4096
    assert memory(LLAMA, Data(8, zero=3)).other == pytest.approx(
        CONTEXT_BYTES + GROUP_BYTES + largest * (2 * 2 + 4), rel=1e-4
    )
    gathered, scattered, message = (4096 * 4096 * 2.0,) * 2 + (2 * 4096 * 4096 * 2.0 / 4,)
    expected = CONTEXT_BYTES + 2 * GROUP_BYTES + gathered + scattered + message
    assert memory(LLAMA, Tensor(4), Pipeline(2)).other == pytest.approx(expected)


def test_a_ring_holds_two_blocks_of_keys() -> None:
    keys = 4096 * 2 * 8 * 128 * 2.0
    ring, gathered = (memory(LLAMA, Context(8, by=by)).other for by in ("ring", "all_gather"))
    assert gathered - ring == pytest.approx(2 * keys * (1 - 2 / 8))


def test_the_fullest_stage_counts() -> None:
    recomputed, stored = (memory(LLAMA, Pipeline(8), global_batch=8, recompute=how).stage for how in ("full", "none"))
    assert (recomputed, stored) == (7, 0), "logits there, activations in flight here"


def test_fits() -> None:
    small, large = memory(LLAMA, Tensor(8)), memory("llama3.1-70b", Tensor(8))
    assert small.fits
    assert not large.fits
    assert large.total > large.capacity > small.total


def test_imbalance_fills_the_most_loaded_rank() -> None:
    even, skewed = (memory("mixtral-8x7b", Expert(8), Data(8), imbalance=value).activations for value in (1.0, 1.5))
    assert skewed > even
