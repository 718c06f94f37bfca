"""Does an estimate answer in the right units, explain itself, and refuse what has no answer?"""

from __future__ import annotations

from typing import Any

import pytest

import commsim as cs
from commsim.errors import InputError
from commsim.hardware.catalogue import load
from commsim.libraries.calibration import Case
from commsim.libraries.ideal import Ideal
from commsim.libraries.nccl import Nccl
from commsim.training.axes import Context, Data, Expert, Pipeline, Tensor
from commsim.training.configs.well_known import model
from commsim.training.estimate import WHAT_IFS, estimate
from commsim.training.plan import Plan
from tests.training.settings import estimated, machine

LLAMA = "llama3.1-8b"


def test_a_step_of_one_gpu_is_its_compute_and_its_optimizer() -> None:
    found = estimated(LLAMA, global_batch=4)
    assert found.step_time == pytest.approx(found.step.compute + found.step.optimizer, rel=1e-12)
    assert (found.step.exposed, found.step.said) == ({}, ())


def test_rates_follow_from_the_step() -> None:
    found = estimated(LLAMA, Tensor(2), Data(4))
    assert found.tokens_per_second_per_gpu == pytest.approx(64 * 4096 / found.step_time / 8)
    assert found.mfu == pytest.approx(found.model_flops_per_gpu / found.step_time / 989e12, rel=1e-3)


def test_model_flops_by_hand() -> None:
    """Six times the weights that a token multiplies with, and causal attention, 6 L h (s + 1) a token.

    Llama 3.1 8B: 8.03e9 parameters without the embedding's 0.525e9; 32 layers of width 4,096; 4,096 tokens.
    """
    found = estimated(LLAMA, Data(8))
    per_token = 6 * (8.03e9 - 0.525e9) + 6 * 32 * 4096 * 4097
    assert found.model_flops_per_gpu == pytest.approx(per_token * 64 * 4096 / 8, rel=1e-3)


def test_mfu_counts_against_the_peak_of_the_matmuls_format() -> None:
    wide, narrow = (estimated(LLAMA, Data(8), precision=how) for how in ("bf16", "fp8"))
    assert narrow.step_time < wide.step_time
    assert narrow.mfu == pytest.approx(wide.mfu * wide.step_time / narrow.step_time / 2, rel=1e-3)


def test_it_explains_an_axis() -> None:
    found = estimated("mixtral-8x7b", Tensor(2), Expert(4), Data(8))
    said = found.explain("expert")
    assert {one.traffic.op.name for one in said} == {"all_to_all"}
    assert all(one.timing.choice(0).algorithm == "SendRecv" and one.seconds > 0 for one in said)
    assert all("nvlink" in one.timing.choice(0).limit(0) for one in said)


def test_silent_axes_are_refused() -> None:
    with pytest.raises(InputError, match=r"axis: 'pipeline'; it says nothing in this plan \(one of: tensor, data\)"):
        estimated(LLAMA, Tensor(2), Data(4)).explain("pipeline")


def test_what_would_help() -> None:
    found = estimated(LLAMA, Tensor(8), Data(8))
    assert set(found.what_if) == set(WHAT_IFS)
    assert all(0 <= saved < found.step_time for saved in found.what_if.values())
    assert found.what_if["compute"] > found.what_if["network"]
    slow = found.at(Case(faster=(("nvlink*", 0.5),)))
    assert slow.exposed["tensor"] > 1.5 * found.step.exposed["tensor"]


def test_certain_machines_have_no_range() -> None:
    assert estimated(LLAMA, Data(8)).range is None


def test_uncertain_machines_have_one() -> None:
    found = estimated("llama3.1-405b", Tensor(8), Data(4), Pipeline(18), on="rubin-ultra-nvl576", global_batch=72)
    assert found.range is not None
    low, high = found.range
    assert low < found.step_time < high


def test_it_reads_as_a_few_lines() -> None:
    found = estimated(LLAMA, Tensor(4), Data(2))
    lines = str(found).splitlines()
    assert lines[0] == "llama3.1-8b on 8 GPUs of hgx-h100"
    assert lines[1] == "Plan(Tensor(4), Data(2))"
    assert any(line.strip().startswith("tensor exposed") for line in lines)


@pytest.mark.parametrize(
    ("axes", "options", "sentence"),
    [
        ((Tensor(4), Data(2)), {}, "tensor-parallel collectives are exposed, but for the two of the backward pass"),
        ((Context(2), Data(4)), {}, "keys and values of the context axis are passed round behind attention"),
        (
            (Context(2, by="all_gather"), Data(4)),
            {},
            "keys and values of the context axis are gathered before attention",
        ),
        ((Pipeline(2), Data(4)), {}, "pipeline: 1f1b, messages wait for both stages and occupy both"),
        ((Pipeline(2, virtual=2), Data(4)), {}, "pipeline: interleaved, messages occupy no stage"),
        ((Pipeline(2), Data(4, zero=2)), {}, "with a pipeline, ZeRO 2 scatters gradients once a step"),
        ((Data(8),), {"precision": "fp8"}, "layers' matmuls in fp8, attention and logits in bf16"),
        ((Pipeline(6),), {"global_batch": 6}, "32 layers do not divide into 6 chunks"),
        ((Data(8),), {}, "MFU: causal attention, with logits, without recompute"),
        ((Data(8),), {}, "4 bytes a gradient, 2 a weight, 12 a weight for Adam"),
    ],
)
def test_it_says_what_it_takes_for_granted(axes: tuple[Any, ...], options: dict[str, Any], sentence: str) -> None:
    said = estimated(LLAMA, *axes, **options).assumptions
    assert any(one.startswith(sentence) for one in said), said


def test_it_says_that_buffers_are_symmetric_windows() -> None:
    """Tensor-parallel all-gathers in a box are quicker then, and who reads the estimate knows why."""
    usual, windows = (estimated(LLAMA, Tensor(8), Data(2), library=Nccl(symmetric=on)) for on in (False, True))
    assert windows.step_time < usual.step_time
    said = "collectives by the library 'nccl on symmetric windows'"
    assert [any(one.startswith(said) for one in found.assumptions) for found in (usual, windows)] == [False, True]


@pytest.mark.parametrize(
    ("axes", "sentence"),
    [
        ((Tensor(16), Data(9)), "1 tensor groups of 16 straddle domains of 72 GPUs"),
        ((Tensor(1), Data(48), Pipeline(3)), "1 data shard groups of 48 straddle domains of 72 GPUs"),
        ((Data(24, shard=6), Pipeline(6)), ""),
    ],
)
def test_groups_across_the_border_of_a_domain_are_named(axes: tuple[Any, ...], sentence: str) -> None:
    """Of two racks: 144 ranks, of which some groups lie inside one rack and others in both."""
    found = estimated(LLAMA, *axes, on="gb200-nvl72", global_batch=720).assumptions
    assert [one.partition(":")[0] for one in found if "straddle" in one] == ([sentence] if sentence else [])


def test_plans_of_experts_say_what_they_left_open() -> None:
    """Megatron splits experts over tensor ranks unless told otherwise; a plan without an expert axis does not."""
    found = estimated("mixtral-8x7b", Tensor(2), Data(4)).assumptions
    assert "experts are dealt out over 1 rank, and each is split over 1" in found


def test_without_experts_nothing_is_said_of_them() -> None:
    assert not any("expert" in one for one in estimated(LLAMA, Data(8)).assumptions)
    skewed = estimated("mixtral-8x7b", Expert(4), Data(8), imbalance=1.25).assumptions
    assert "the most loaded expert rank gets 1.25 times the mean of tokens" in skewed


def test_another_library() -> None:
    found = estimated(LLAMA, Tensor(8), library=Ideal())
    assert found.step_time < estimated(LLAMA, Tensor(8)).step_time
    assert any("library 'ideal'" in one for one in found.assumptions)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"sequnce": 8192}, "estimate: 'sequnce'; no such option of a recipe; did you mean 'sequence'?"),
        ({"batch": 64}, "estimate: 'batch'; no such option of a recipe"),
        ({}, "estimate: global_batch: nothing; the sequences of one step belong here"),
    ],
)
def test_options(options: dict[str, Any], line: str) -> None:
    with pytest.raises(InputError) as error:
        estimate(model(LLAMA), Plan(), machine(1), **options)
    assert str(error.value).startswith(line)


def test_a_machine_of_which_nothing_is_published() -> None:
    """`cost` uses a template for it, `estimate` refuses."""
    system = load("feynman-nvl1152")
    with pytest.raises(
        InputError, match=r"system feynman-nvl1152: .*; nothing is published of it; try rubin-ultra-nvl576"
    ):
        estimate(model(LLAMA), Plan(Data(system.gpus)), system, global_batch=system.gpus)


def test_it_is_deterministic() -> None:
    one, two = (estimated("deepseek-v3", Expert(8), Data(8), Pipeline(2)) for _ in range(2))
    assert one.step_time == two.step_time
    assert one.memory == two.memory


def test_the_root_offers_it() -> None:
    plan = cs.Plan(cs.Tensor(8), cs.Data(8), cs.Pipeline(4))
    step = cs.estimate(cs.model("llama3.1-70b"), plan, cs.load("hgx-h100", nodes=32), global_batch=256)
    assert step.setting.plan.gpus == 256


def test_names_in_place_of_values_are_told_what_makes_them() -> None:
    machine, llama, plan = load("hgx-h100"), model("llama3.1-8b"), Plan(Data(8))
    with pytest.raises(InputError, match=r"commsim\.model\(name\)"):
        estimate("llama3.1-8b", plan, machine, global_batch=8)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"commsim\.load\(name\)"):
        estimate(llama, plan, "hgx-h100", global_batch=8)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="the name of a model"):
        model(None)  # type: ignore[arg-type]
