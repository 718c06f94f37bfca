"""Is what a source says, and nothing else, estimated?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.errors import InputError
from commsim.training.axes import Context, Data, Expert, Pipeline, Tensor
from commsim.training.plan import Plan
from commsim.training.setting import UNFUSED
from commsim.validation.job import job
from commsim.validation.published import Published, read_published
from tests.validation.published_rows import MODELS, SHIPPED, result

if TYPE_CHECKING:
    from commsim.training.recipe import Recipe

ROWS = {one.row_id: one for one in read_published(SHIPPED / "training.csv")}
QWEN: dict[str, Any] = {"model_id": "qwen3-30b-a3b", "n_gpus": 64, "tp": 2, "pp": 2, "dp": 16, "global_batch": 64}


def plan(said: Published) -> Plan:
    return job(said, MODELS).estimate.setting.plan


def recipe(said: Published) -> Recipe:
    return job(said, MODELS).estimate.setting.recipe


def test_narayanan_2021() -> None:
    """Table 1, 145.6 billion parameters: no sequence parallelism, no ZeRO, everything recomputed, fp16."""
    said = ROWS["MP007"]
    assert plan(said) == Plan(Tensor(8, sequence=False), Context(1), Data(24, zero=0), Pipeline(8, virtual=2))
    run = recipe(said)
    assert (run.global_batch, run.micro_batch, run.sequence, run.precision) == (2304, 2, 2048, "fp16")
    assert (run.recompute, run.attention, run.overlap_data, run.gradient_bytes) == ("full", UNFUSED, False, 2.0)


def test_torchtitan() -> None:
    """Its table of fully sharded runs: ZeRO 3 over all ranks, gradients reduced in fp32, some operations repeated."""
    said = ROWS["TT006"]
    assert plan(said) == Plan(
        Tensor(1, sequence=False), Context(1, by="all_gather"), Data(128, zero=3, shard=128), Pipeline(1)
    )
    run = recipe(said)
    assert (run.precision, run.gradient_bytes, run.attention) == ("fp8", 4.0, "flash2")
    assert run.recompute == "layernorm+activation+matmul"


def test_a_rack_of_experts() -> None:
    said = ROWS["MB248"]
    found = job(said, MODELS).estimate.setting
    assert found.plan.axis(Expert) == Expert(32)
    assert (found.plan.virtual, found.system.topology.domain_size, found.recipe.precision) == (4, 64, "mxfp8")


@pytest.mark.parametrize(
    ("changes", "name", "expected"),
    [
        ({"cuda_graph": "full"}, "cuda_graphs", True),
        ({"cuda_graph": "partial"}, "cuda_graphs", False),
        ({"attention_kernel": "torch"}, "unfused", "softmax"),
        ({"trainer": "megatron", "year": 2021}, "unfused", "loss"),
        ({**QWEN, "ep": 16, "moe_dispatcher": "deepep"}, "dispatcher", "deepep"),
        ({**QWEN, "ep": 16, "moe_routing": "fake balanced gate"}, "routing", "consecutive"),
        ({**QWEN, "moe_routing": "fake balanced gate"}, "routing", "spread"),
        ({**QWEN, "ep": 16, "moe_balance": "capacity"}, "dropless", False),
        ({"trainer": "jax"}, "efficiency", 0.93),
        ({"attention_kernel": "torch"}, "attention", UNFUSED),
        ({"gradient_format": "bf16"}, "gradient_bytes", 2.0),
        ({"recompute_mode": "selective"}, "recompute", "selective"),
        ({"recompute_mode": "selective", "recompute_modules": "act,norm"}, "recompute", "activation+layernorm"),
        ({"recompute_mode": "full", "recompute_every": 2}, "recompute_layers", 8),
        (
            {"recompute_mode": "full", "recompute_every": 3},
            "recompute_layers",
            6,
        ),  # 1st of 16, 4th ...
        ({"recompute_mode": "none", "recompute_every": 2}, "recompute", "none"),
        ({"framework": "Megatron-Bridge"}, "unfused", "clamp"),
        ({"framework": "Megatron-Bridge", "number_format": "fp8"}, "unfused", ""),
        ({"number_format": "fp8", "fp8_scaling": "current"}, "scaling", "tensorwise"),
        ({"number_format": "fp8", "fp8_scaling": "rowwise"}, "scaling", "rowwise"),
        ({"number_format": "bf16", "fp8_scaling": "current"}, "scaling", "delayed"),
        ({"torch_compile": True}, "compiled", True),
        ({"overlap_pipeline": False}, "overlap_pipeline", False),
        ({"number_format": "fp8", "framework": "NeMo/Megatron-Core"}, "weight_bytes", 1.0),
        ({"number_format": "fp8"}, "weight_bytes", 2.0),
        ({"number_format": "bf16", "framework": "NeMo/Megatron-Core"}, "weight_bytes", 2.0),
    ],
)
def test_columns_become_options(changes: dict[str, Any], name: str, expected: object) -> None:
    assert getattr(recipe(result(**changes)), name) == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"zero_stage": 3, "shard_ranks": 2}, Data(4, zero=3, shard=2)),
        ({"shard_ranks": 1}, Data(4, zero=0)),
        ({"cp": 2, "dp": 2, "shard_ranks": 4}, Data(2, zero=1, shard=2)),  # context ranks shard as well
        ({"cp": 2, "dp": 2, "shard_ranks": 2}, Data(2, zero=1, shard=2)),  # which may be the data ranks alone
    ],
)
def test_sharding(changes: dict[str, Any], expected: Data) -> None:
    assert plan(result(**changes)).axis(Data) == expected


@pytest.mark.parametrize(
    ("changes", "ranks"),
    [({}, 2), ({"etp": 1}, 1), ({"framework": "Megatron-Bridge"}, 1), ({"ep": 32}, 1)],
)
def test_experts_are_split_where_the_trainer_does_and_they_fold(changes: dict[str, Any], ranks: int) -> None:
    assert plan(result(**{**QWEN, "ep": 16, **changes})).expert_tensor == ranks


def test_parallel_blocks() -> None:
    blocks = job(result(parallel_block=True), MODELS).estimate.setting.model.blocks
    assert all(block.parallel for block in blocks)


def test_a_trainer_that_rematerialises_takes_what_fits() -> None:
    said = ROWS["JX005"]
    found = job(said, MODELS)
    assert found.estimate.memory.fits
    assert "recompute_mode is not stated: full, the least that fits" in found.assumptions


@given(
    seconds=st.floats(1e-3, 1e6),
    name=st.text(max_size=5),
    source=st.text(max_size=5),
    row=st.sampled_from(sorted(ROWS)),
)
def test_who_measured_what_is_never_read(seconds: float, name: str, source: str, row: str) -> None:
    said = result(step_time_to_predict_s=seconds, row_id=name, source=source, group=row, headline=None)
    assert job(said, MODELS).estimate.step_time == job(result(), MODELS).estimate.step_time


def test_what_is_filled_in_is_said() -> None:
    said = job(result(), MODELS).assumptions
    assert "sp is not stated: yes, as Megatron-Core" in said
    assert "attention_kernel is not stated: the newest, as Megatron-Core" in said
    stated = result(
        sp=True,
        zero_stage=1,
        number_format="bf16",
        recompute_mode="none",
        overlap_tensor=False,
        overlap_data=True,
        attention_kernel="flash3",
        gradient_format="fp32",
    )
    assert job(stated, MODELS).assumptions == ()


def test_what_cannot_be_told_apart_is_said() -> None:
    said = result(**QWEN, ep=16, packed=True, moe_dispatcher="deepep", cuda_graph="partial")
    words = ("packed", "graph", "evenly")
    assert [word for word in words if not any(word in one for one in job(said, MODELS).assumptions)] == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_id": "llama3-8c"}, "did you mean 'llama3-8b'"),
        ({"trainer": "abacus"}, "a known trainer belongs here"),
        ({"gradient_format": "int1"}, "gradient_format: 'int1'; no such format"),
        ({"dp": 5}, "the 16 GPUs of the machine belong here"),
        ({"shard_ranks": 3}, "plan: shard"),
        ({"system": "hgx-h1000"}, "did you mean 'hgx-h100'"),
        ({"number_format": "nvfp4"}, "multiplies matrices in"),
    ],
)
def test_what_cannot_be_estimated_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        job(result(**changes), MODELS)


@pytest.mark.parametrize(("ranks", "dispatcher"), [(None, "alltoall"), (1, "alltoall"), (2, "deepep"), (8, "deepep")])
def test_nobody_dispatches_to_himself(ranks: int | None, dispatcher: str) -> None:
    said = result(**QWEN, ep=ranks, moe_dispatcher="deepep")
    assert recipe(said).dispatcher == dispatcher
