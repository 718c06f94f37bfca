"""Is the configuration of every trainer known for what it is, and read?"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.errors import InputError
from commsim.training.recipe import Recipe
from commsim.training.trainers.read import TRAINERS, contents, read_job
from commsim.training.trainers.torchtitan import model_name

MEGATRON = "--tensor-model-parallel-size 8 --pipeline-model-parallel-size 4 --recompute-granularity selective --bf16"
TITAN = """
[model]
name = "llama3"
flavor = "70B"
converters = ["float8"]
[training]
local_batch_size = 8
seq_len = 8192
[parallelism]
data_parallel_replicate_degree = 2
data_parallel_shard_degree = 16
tensor_parallel_degree = 8
enable_async_tensor_parallel = true
[activation_checkpoint]
mode = "full"
"""
NEMO = """
trainer: {devices: 8, num_nodes: 4, precision: bf16-mixed}
model:
  tensor_model_parallel_size: 4
  pipeline_model_parallel_size: 4
  virtual_pipeline_model_parallel_size: 10
  sequence_parallel: true
  micro_batch_size: 1
  global_batch_size: 128
  encoder_seq_length: 4096
  max_position_embeddings: ${.encoder_seq_length}
  activations_checkpoint_granularity: selective
  optim: {name: distributed_fused_adam}
"""
DEEPSPEED = """{"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4, "bf16": {"enabled": true},
 "zero_optimization": {"stage": 3, "overlap_comm": true, "offload_param": {"device": "cpu"}},
 "train_batch_size": "auto"}"""


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_torchtitan(tmp_path: Path) -> None:
    found = read_job(written(tmp_path, "train.toml", TITAN))
    assert (found.tensor, found.data, found.shard, found.zero, found.batch_per_rank) == (8, 32, 16, 3, 8)
    assert (found.recipe["precision"], found.recipe["recompute"], found.recipe["overlap_tensor"]) == (
        "fp8",
        "full",
        True,
    )
    assert found.options(found.plan(256))["global_batch"] == 256
    assert model_name(contents(tmp_path / "train.toml")) == "llama3.1-70b"


@pytest.mark.parametrize(
    ("said", "converters", "recompute", "layers"),
    [
        ('mode = "selective"', "", "layernorm+activation+second_matmul", None),
        ('mode = "selective"\nselective_ac_option = "op"', '"float8"', "layernorm+activation+matmul", None),
        ('mode = "memory_budget"', "", "layernorm+activation+second_matmul", None),
        ('mode = "selective"\nselective_ac_option = "2"', "", "full", 40),
        ('mode = "selective"\nselective_ac_option = "1"', "", "full", None),
        ('mode = "none"', "", "none", None),
    ],
)
def test_what_torchtitan_computes_again(
    said: str, converters: str, recompute: str, layers: int | None, tmp_path: Path
) -> None:
    text = TITAN.replace('mode = "full"', said).replace('"float8"', converters)
    recipe = read_job(written(tmp_path, "train.toml", text)).recipe
    assert (recipe["recompute"], recipe.get("recompute_layers")) == (recompute, layers)
    assert recipe["stops_early"]


def test_what_torchtitan_compiles_and_scales(tmp_path: Path) -> None:
    """One scale of a tensor, unless a recipe says rows; a sum of DTensor waits for both gradients, where ranks sum."""
    plain = read_job(written(tmp_path, "plain.toml", TITAN)).recipe
    assert (plain["compiled"], plain["scaling"], plain["overlap_backward"]) == (False, "tensorwise", False)
    more = '\n[compile]\nenable = true\n[quantize.linear.float8]\nrecipe_name = "rowwise"\n'
    text = TITAN.replace("tensor_parallel_degree = 8", "tensor_parallel_degree = 1") + more
    found = read_job(written(tmp_path, "more.toml", text)).recipe
    assert (found["compiled"], found["scaling"], "overlap_backward" in found) == (True, "rowwise", False)


def test_torchtitan_shards_over_what_is_left(tmp_path: Path) -> None:
    text = TITAN.replace("data_parallel_shard_degree = 16", "data_parallel_shard_degree = -1").replace("= 2", "= 1")
    found = read_job(written(tmp_path, "train.toml", text))
    assert (found.data, found.plan(128).data, found.plan(128).shard) == (None, 16, None)


def test_nemo(tmp_path: Path) -> None:
    found = read_job(written(tmp_path, "llama.yaml", NEMO))
    assert (found.tensor, found.pipeline, found.virtual, found.zero, found.sequence_parallel) == (4, 4, 10, 1, True)
    assert found.plan(32).data == 2
    assert (found.recipe["sequence"], found.recipe["recompute"], found.recipe["precision"]) == (
        4096,
        "selective",
        "bf16",
    )


def test_deepspeed(tmp_path: Path) -> None:
    found = read_job(written(tmp_path, "ds.json", DEEPSPEED))
    assert (found.zero, found.batch_per_rank, found.recipe["micro_batch"]) == (3, 8, 2)
    assert found.options(found.plan(16))["global_batch"] == 128
    assert found.notes == ("offload_param is left out: nothing is moved to the cpu",)


def test_a_plan_that_does_not_fill_the_machine(tmp_path: Path) -> None:
    found = read_job(written(tmp_path, "train.toml", TITAN))
    with pytest.raises(InputError, match="a multiple of tensor 8 x context 1 x pipeline 1 x data 32"):
        found.plan(128)


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.toml", "[broken", "well-formed TOML"),
        ("a.json", "{", "well-formed JSON"),
        ("a.json", "[1]", "belongs here"),
        ("a.sh", "", "a.sh: nothing; Megatron-LM's arguments"),
        ("a.json", "[" * 100_000, "nested too deeply"),
        ("a.yaml", "x: 1", "Megatron-LM's arguments or YAML, torchtitan's TOML"),
        ("a.yaml", "- 1", "a table of"),
        ("a.sh", "echo hello", "Megatron-LM's arguments or YAML"),
        ("a.json", '{"zero_optimization": {"stage": 4}}', "0, 1, 2 or 3"),
        ("a.toml", '[parallelism]\npipeline_parallel_degree = 2\npipeline_parallel_schedule = "1f2b"', "did you mean"),
    ],
)
def test_mistakes(tmp_path: Path, name: str, text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        read_job(written(tmp_path, name, text))


ODD = st.sampled_from([[], {}, "x", -1, 0, 3.5, None, True, ["a", 1], {"a": 1}, "", 10**30, "t*9", "[1,2"])
READ = {"train.toml": TITAN, "gpt.yaml": NEMO, "ds.json": DEEPSPEED, "job.sh": MEGATRON}


@given(st.sampled_from(sorted(READ)), st.data())
def test_any_value_is_read_or_refused(name: str, data: st.DataObject) -> None:
    """Whatever stands in the place of a value, a table or a list: a job, or one line that says what belongs there."""
    with TemporaryDirectory() as folder:
        table = dict(contents(written(Path(folder), name, READ[name])))
    inner, key = table, data.draw(st.sampled_from(sorted(table)))
    if isinstance(table[key], dict) and data.draw(st.booleans()):
        table[key] = inner = dict(table[key])
        key = data.draw(st.sampled_from(sorted(inner)))
    inner[key] = data.draw(ODD)
    for trainer in TRAINERS:
        said = ""
        try:
            if trainer.recognises(table):
                found = trainer.job(table, name)
                assert found.options(found.plan(2048)) is not None
        except InputError as error:
            said = str(error)
        assert "\n" not in said


def test_sizes_that_torchtitan_chooses(tmp_path: Path) -> None:
    """A global batch of -1 is the local one of all data ranks."""
    text = TITAN.replace("local_batch_size = 8", "local_batch_size = 8\nglobal_batch_size = -1")
    found = read_job(written(tmp_path, "train.toml", text))
    assert found.options(found.plan(256))["global_batch"] == 8 * 32


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a readable configuration"):
        read_job(tmp_path / "nowhere.toml")


PUBLIC = {
    "megatron_mixtral_8x22b_tp2pp8ep8vpp1_release.yaml": {"tensor": 2, "pipeline": 8, "expert": 8, "expert_tensor": 2},
    "megatron_deepseekv3_proxy_flex_tp1pp4emp16etp1cp1_release.yaml": {"tensor": 2, "pipeline": 4, "expert": 16},
    "megatron_gpt3_15b_8t_release.yaml": {"tensor": 8, "pipeline": 1, "zero": 1},
    "megatron_nemotron3_super_release_gb200.yaml": {"tensor": 2, "expert": 64, "expert_tensor": 1},
    "torchtitan_llama3_405b.toml": {"tensor": 8, "zero": 3, "batch_per_rank": 2},
    "torchtitan_llama4_17bx128e.toml": {"tensor": 8, "pipeline": 4},
    "nemo1_megatron_llama_config.yaml": {"tensor": 1, "virtual": 1},
    "deepspeed_megatron_llama_ds_config.json": {"zero": 0},
}
"""What real files say; the name of the second one says otherwise of its tensor size, as its index tells."""


@pytest.mark.data
@pytest.mark.parametrize(("name", "sizes"), PUBLIC.items())
def test_public_files(data: Path, name: str, sizes: dict[str, Any]) -> None:
    found = read_job(data / "formats" / "plans" / name)
    assert {key: getattr(found, key) for key in sizes} == sizes


@pytest.mark.data
def test_every_public_file_gives_a_recipe(data: Path) -> None:
    files = sorted((data / "formats" / "plans").iterdir())
    assert len(files) >= 14
    for file in files:
        found = read_job(file)
        plan = found.plan(found.tensor * found.context * found.pipeline * found.expert * 16)
        assert Recipe(**{"global_batch": 1024, **found.options(plan)}).micro_batch >= 1
