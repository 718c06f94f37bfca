"""Is what does not fit refused in one line that says where, what was given and what belongs there?"""

from __future__ import annotations

from typing import Any

import pytest

from commsim.errors import InputError
from commsim.training.axes import Axis, Context, Data, Expert, Pipeline, Tensor
from commsim.training.configs.well_known import model
from commsim.training.plan import Plan
from commsim.training.recipe import Recipe
from commsim.training.setting import Setting
from tests.training.settings import machine, setting

DENSE, EXPERTS = "llama3.1-8b", "mixtral-8x7b"
Mistake = tuple[str, tuple[Axis, ...], dict[str, Any], str]
MISTAKES: dict[str, Mistake] = {
    "more ranks than heads": (
        DENSE,
        (Tensor(64),),
        {},
        "plan: tensor: 64; at most the 32 attention heads of llama3.1-8b belong here",
    ),
    "ranks that do not divide the heads": (
        DENSE,
        (Tensor(3), Data(8)),
        {},
        "plan: tensor: 3; a divisor of the 32 attention heads of llama3.1-8b belongs here",
    ),
    "KV heads that neither divide nor are divided": (
        "nemotron-4-340b",
        (Tensor(12), Data(2)),
        {},
        "plan: tensor: 12; a divisor or a multiple of the 8 key and value heads of nemotron-4-340b belongs here",
    ),
    "experts of a dense model": (
        DENSE,
        (Expert(2), Data(8)),
        {},
        "plan: expert: 2; llama3.1-8b has no experts; leave the axis out",
    ),
    "ranks that do not divide the experts": (
        EXPERTS,
        (Expert(16), Data(16)),
        {},
        "plan: expert: 16; a divisor of the 8 experts of mixtral-8x7b belongs here",
    ),
    "experts without sequence parallelism": (
        EXPERTS,
        (Tensor(2, sequence=False), Data(4)),
        {},
        "plan: tensor: 'sequence=False'; sequence parallelism belongs beside experts",
    ),
    "a stage without a layer": (
        DENSE,
        (Pipeline(64),),
        {},
        "plan: pipeline: '64 stages'; stage 0 would be without a layer: the model has 32",
    ),
    "a batch that does not divide": (
        DENSE,
        (Data(16),),
        {"global_batch": 40},
        "global-batch: 40; a multiple of micro-batch x data = 1 x 16 = 16 belongs here",
    ),
    "a micro-batch larger than the batch": (
        DENSE,
        (Data(8),),
        {"micro_batch": 64},
        "global-batch: 64; a multiple of micro-batch x data = 64 x 8 = 512 belongs here",
    ),
    "a sequence that context ranks do not divide": (
        DENSE,
        (Context(8),),
        {"sequence": 1020},
        "sequence: 1020; a multiple of context = 8 belongs here",
    ),
    "a sequence that tensor ranks do not divide": (
        DENSE,
        (Tensor(8), Context(2)),
        {"sequence": 1032},
        "sequence: 1032; a multiple of context x tensor = 16 belongs here",
    ),
    "overlap along a sequence that is whole": (
        DENSE,
        (Tensor(8, sequence=False),),
        {"overlap_tensor": True},
        "overlap-tensor: True; sequence parallelism belongs beside it",
    ),
    "a kernel of another generation": (
        DENSE,
        (Data(8),),
        {"attention": "flash9"},
        "attention: 'flash9'; this architecture has no such kernel",
    ),
    "imbalance of a dense model": (
        DENSE,
        (Data(8),),
        {"imbalance": 3.0},
        "imbalance: 3.0; llama3.1-8b has no experts; leave it out",
    ),
    "imbalance of a dense model beside an axis of one rank": (
        DENSE,
        (Expert(1), Data(8)),
        {"imbalance": 3.0},
        "imbalance: 3.0; llama3.1-8b has no experts; leave it out",
    ),
    "overlap of experts of a dense model": (
        DENSE,
        (Data(8),),
        {"overlap_expert": True},
        "overlap-expert: True; llama3.1-8b has no experts; leave it out",
    ),
    "imbalance of experts that are not dealt out": (
        EXPERTS,
        (Data(8),),
        {"imbalance": 3.0},
        "imbalance: 3.0; the plan names no expert axis; leave it out or add expert=N",
    ),
    "tensor overlap without the axis": (
        DENSE,
        (Data(8),),
        {"overlap_tensor": True},
        "overlap-tensor: True; the plan names no tensor axis; leave it out or add tensor=N",
    ),
    "pipeline overlap without the axis": (
        DENSE,
        (Data(8),),
        {"overlap_pipeline": False},
        "overlap-pipeline: False; the plan names no pipeline axis; leave it out or add pipeline=N",
    ),
    "a schedule without a pipeline": (
        DENSE,
        (Data(8),),
        {"schedule": "gpipe"},
        "schedule: 'gpipe'; the plan names no pipeline axis; leave it out or add pipeline=N",
    ),
    "recomputation of a module of experts in a dense model": (
        DENSE,
        (Data(8),),
        {"recompute": "core_attn+moe"},
        "recompute: 'moe'; llama3.1-8b has no such module",
    ),
    "recomputation of latent attention where there is none": (
        EXPERTS,
        (Data(8),),
        {"recompute": "mla_up_proj"},
        "recompute: 'mla_up_proj'; mixtral-8x7b has no such module",
    ),
    "too few micro-batches to interleave": (
        DENSE,
        (Data(16), Pipeline(8, virtual=4)),
        {},
        "virtual stages: '4 with 4 micro-batches a step'; interleaved needs at least 8 micro-batches, one a stage",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_one_line(mistake: Mistake) -> None:
    name, axes, recipe, line = mistake
    with pytest.raises(InputError) as error:
        setting(name, *axes, **recipe)
    assert str(error.value).startswith(line)
    assert "\n" not in str(error.value)


def test_a_plan_of_another_size_than_the_machine() -> None:
    plan = Plan(Tensor(8), Pipeline(4), Data(3))
    with pytest.raises(InputError) as error:
        Setting(model(DENSE), plan, Recipe(48), machine(64))
    line = "plan: 'tensor 8 x pipeline 4 x data 3 = 96 ranks'; the 64 GPUs of the machine belong here"
    assert str(error.value) == line


def test_a_format_that_the_accelerator_lacks() -> None:
    with pytest.raises(InputError, match=r"precision: 'fp8'; NVIDIA A100 .* multiplies matrices in .*bf16"):
        setting(DENSE, Data(8), on="hgx-a100", precision="fp8")


def test_an_accelerator_that_does_not_train() -> None:
    with pytest.raises(InputError, match=r"precision: 'bf16'; NVIDIA Groq 3 LPU .* multiplies matrices in fp8"):
        setting(DENSE, Data(8), on="groq3-lpx")


def test_the_gravest_comes_first() -> None:
    with pytest.raises(InputError, match=r"plan: '.* = 3 ranks'"):
        Setting(model(DENSE), Plan(Tensor(3)), Recipe(7), machine(8))


def test_what_works_instead_works() -> None:
    """The message for too few micro-batches names two ways out, and both are."""
    with pytest.raises(InputError, match=r"; 1 chunk or schedule gpipe works$"):
        setting(DENSE, Data(16), Pipeline(8, virtual=4))
    assert setting(DENSE, Data(16), Pipeline(8, virtual=4), schedule="gpipe").microbatches == 4
    assert setting(DENSE, Data(16), Pipeline(8)).microbatches == 4


@pytest.mark.parametrize("tensor", [16, 32])
def test_kv_heads_may_be_replicated(tensor: int) -> None:
    """8 KV heads on 16 or 32 ranks."""
    assert setting(DENSE, Tensor(tensor)).plan.tensor == tensor


def test_an_axis_of_one_rank_may_have_its_options() -> None:
    """Whoever tries sizes 1, 2, 4 of an axis keeps the recipe."""
    axes = Tensor(1), Expert(1), Pipeline(1), Data(8)
    options: dict[str, Any] = {"overlap_tensor": True, "overlap_expert": True, "overlap_pipeline": True}
    assert setting(EXPERTS, *axes, **options, schedule="gpipe", imbalance=2.0).imbalance == 1.0
