"""Are Megatron-LM's arguments read as Megatron-LM reads them?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from commsim.errors import InputError
from commsim.training.trainers.megatron import arguments, job
from commsim.training.trainers.read import read_job

if TYPE_CHECKING:
    from pathlib import Path

    from commsim.training.trainers.job import Job

SCRIPT = r"""
--tensor-model-parallel-size 8 --pipeline-model-parallel-size=4 \
    --num-layers 80 --num-layers-per-virtual-pipeline-stage 5   # a comment
--sequence-parallel --use-distributed-optimizer --bf16
--micro-batch-size 1 --global-batch-size 1152 --seq-length 4096
--recompute-granularity full --recompute-method uniform --recompute-num-layers 1
"""


def said(**options: object) -> Job:
    """The job of some options, dashes for underscores."""
    return job({f"--{name.replace('_', '-')}": value for name, value in options.items()}, "args")


def test_a_command_line(tmp_path: Path) -> None:
    path = tmp_path / "pretrain.sh"
    path.write_text(SCRIPT)
    found = read_job(path)
    assert (found.tensor, found.pipeline, found.virtual, found.zero, found.sequence_parallel) == (8, 4, 4, 1, True)
    assert found.recipe["global_batch"] == 1152
    assert (found.recipe["recompute"], "recompute_layers" in found.recipe) == ("full", False)
    assert str(found.plan(768)) == "Plan(Tensor(8), Data(24), Pipeline(4, virtual=4))"


def test_experts_are_split_as_tensors_are_unless_said() -> None:
    assert said(tensor_model_parallel_size=2, num_experts=8, expert_model_parallel_size=4).expert_tensor == 2
    assert said(tensor_model_parallel_size=2, num_experts=8, expert_tensor_parallel_size=1).expert_tensor == 1


@pytest.mark.parametrize(
    ("options", "precision"),
    [
        ({"bf16": True}, "bf16"),
        ({"fp16": True}, "fp16"),
        ({"bf16": True, "fp8_format": "hybrid"}, "fp8"),
        ({"bf16": True, "fp8_format": "e4m3", "fp8_recipe": "mxfp8"}, "mxfp8"),
        ({"bf16": True, "fp4_format": "e2m1"}, "nvfp4"),
    ],
)
def test_precision(options: dict[str, object], precision: str) -> None:
    assert said(**options).recipe["precision"] == precision


@pytest.mark.parametrize(
    ("options", "recompute", "layers"),
    [
        ({}, "none", None),
        ({"recompute_activations": True}, "core_attn", None),
        ({"recompute_granularity": "selective"}, "core_attn", None),
        ({"recompute_granularity": "selective", "recompute_modules": "[layernorm moe_act]"}, "layernorm+moe_act", None),
        ({"recompute_granularity": "full", "recompute_method": "block", "recompute_num_layers": 3}, "full", 3),
        ({"recompute_granularity": "full", "recompute_method": "uniform", "recompute_num_layers": 1}, "full", None),
    ],
)
def test_recompute(options: dict[str, object], recompute: str, layers: int | None) -> None:
    recipe = said(**options).recipe
    assert (recipe["recompute"], recipe.get("recompute_layers")) == (recompute, layers)


@pytest.mark.parametrize(
    ("layout", "layers"),
    [
        ("Et*2|(tt|)*3tmL", (2, 2, 2, 2, 1)),
        ("Ett|tt|tt|tL", (2, 2, 2, 1)),
        ("'E|(t|)*6tL'", (0, 1, 1, 1, 1, 1, 1, 1)),
    ],
)
def test_layouts(layout: str, layers: tuple[int, ...]) -> None:
    """The letters of --pipeline-model-parallel-layout."""
    assert said(pipeline_model_parallel_size=len(layers), pipeline_model_parallel_layout=layout).layers == layers


def test_overlap() -> None:
    found = said(tp_comm_overlap=True, overlap_grad_reduce=True, no_overlap_p2p_communication=True).recipe
    assert (found["overlap_tensor"], found["overlap_data"], found["overlap_pipeline"]) == (True, True, False)
    assert said().recipe["overlap_data"] is False


def test_sharding() -> None:
    assert [said(**options).zero for options in ({}, {"use_distributed_optimizer": True})] == [0, 1]
    assert said(data_parallel_sharding_strategy="optim_grads_params").zero == 3


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"tensor_model_parallel_size": "eight"}, "tensor-model-parallel-size: 'eight'; a whole number"),
        ({"tensor_model_parallel_size": 0}, "a whole number of at least 1"),
        ({"tensor_model_parallel_size": True}, "a whole number"),
        ({"sequence_parallel": "maybe"}, "true or false"),
        ({"recompute_granularity": "ful"}, "did you mean 'full'"),
        ({"pipeline_model_parallel_size": 4, "pipeline_model_parallel_layout": "Exx|L"}, "letters E, t, m, L"),
        ({"pipeline_model_parallel_size": 2, "pipeline_model_parallel_layout": "Et*99999|tL"}, "letters E, t, m, L"),
        ({"pipeline_model_parallel_size": 2, "pipeline_model_parallel_layout": "E(t*9999)*9999*9|L"}, "letters E"),
        (
            {"num_layers": 10, "pipeline_model_parallel_size": 4, "num_layers_per_virtual_pipeline_stage": 2},
            "a divisor of the layers of a stage",
        ),
    ],
)
def test_mistakes(options: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        said(**options)


def test_broken_quotes() -> None:
    with pytest.raises(InputError, match="arguments as a shell reads them"):
        arguments("--data-path 'my", "run.sh")
