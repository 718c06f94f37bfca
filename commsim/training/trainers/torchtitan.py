"""What does torchtitan's TOML say? Names and defaults are those of its job configuration of 2025."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from commsim.errors import InputError
from commsim.training.configs.well_known import model
from commsim.training.recipe import OPERATIONS
from commsim.training.trainers.job import Job
from commsim.training.trainers.options import Options
from commsim.training.trainers.trained import Trained

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "torchtitan"
FLAVORS = {
    ("llama3", "8b"): "llama3.1-8b",
    ("llama3", "70b"): "llama3.1-70b",
    ("llama3", "405b"): "llama3.1-405b",
    ("deepseek_v3", "671b"): "deepseek-v3",
    ("deepseek_v3", "16b"): "deepseek-v2-lite",
    ("qwen3", "32b"): "qwen3-32b",
    ("llama4", "17bx128e"): "llama4-maverick",
    ("llama4", "17bx16e"): "llama4-scout",
}
"""The models of torchtitan's own tables by name and flavor, as commsim calls them."""
SCHEDULES = {
    "gpipe": "gpipe",
    "1f1b": "1f1b",
    "interleaved1f1b": "interleaved",
    "interleavedzerobubble": "zero-bubble",
    "zbvzerobubble": "zero-bubble",
}
TWO_CHUNKS = ("interleaved", "zero-bubble")
"""Schedules of which a stage has two chunks: what torch takes without a number of layers for each."""
_MODES = ("none", "selective", "full", "memory_budget")


def recognises(table: Mapping[str, Any]) -> bool:
    """Tell whether a TOML file is one of torchtitan's."""
    return isinstance(table.get("parallelism"), Mapping) or isinstance(table.get("training"), Mapping)


def model_name(table: Mapping[str, Any]) -> str:
    """Return commsim's name of the model that a file trains; "" where it is none that is known."""
    of = Options(table, NAME).inside("model")
    return FLAVORS.get((of.text("name"), of.text("flavor")), "")


def job(table: Mapping[str, Any], where: str) -> Job:
    """Return the job of a table. InputError for values that torchtitan would refuse as well."""
    whole = Options(table, where)
    of, training = whole.inside("parallelism"), whole.inside("training")
    replicas = of.count("data_parallel_replicate_degree", 1, 1)
    shard = _shard(of)
    schedule = _schedule(of)
    expert = of.count("expert_parallel_degree", 1, 1)
    return Job(
        NAME,
        tensor=of.count("tensor_parallel_degree", 1, 1),
        context=of.count("context_parallel_degree", 1, 1),
        pipeline=of.count("pipeline_parallel_degree", 1, 1),
        expert=expert,
        expert_tensor=of.count("expert_tensor_parallel_degree", 1, 1) if expert > 1 else 1,
        virtual=2 if schedule in TWO_CHUNKS else 1,
        sequence_parallel=not of.flag("disable_loss_parallel"),
        context_by="all_gather" if of.text("context_parallel_rotate_method") == "allgather" else "ring",
        zero=_zero(of),
        shard=shard if shard and replicas > 1 else None,
        data=replicas * shard if shard else None,
        batch_per_rank=None if _says(training, "global_batch_size") else training.count("local_batch_size") or None,
        recipe=dict(_recipe(whole)) | ({"schedule": schedule} if schedule else {}),
        trains=Trained.of(model(name)) if (name := model_name(table)) else Trained(),
    )


def _shard(of: Options) -> int | None:
    """The ranks that shard; -1 means all that are left."""
    given = of.values.get("data_parallel_shard_degree", -1)
    return None if given == -1 else of.count("data_parallel_shard_degree", 1, 1)


def _schedule(of: Options) -> str:
    if of.count("pipeline_parallel_degree", 1, 1) == 1:
        return ""
    said = of.text("pipeline_parallel_schedule") or "1f1b"
    if said not in SCHEDULES:
        raise InputError(f"{of.where}: pipeline_parallel_schedule", said, "no such schedule", among=SCHEDULES)
    return SCHEDULES[said]


def _zero(of: Options) -> int:
    """What is sharded: weights stay gathered after the forward pass where there is a pipeline, unless it says so."""
    said = of.text("fsdp_reshard_after_forward", ("default", "always", "never")) or "default"
    keeps = said == "never" or (said == "default" and of.count("pipeline_parallel_degree", 1, 1) > 1)
    return 2 if keeps else 3


def _says(training: Options, name: str) -> bool:
    """Whether a size is said; -1 leaves it to torchtitan."""
    return name in training and training.values[name] != -1


def _recipe(whole: Options) -> Iterator[tuple[str, Any]]:
    training = whole.inside("training")
    if "local_batch_size" in training:
        yield "micro_batch", training.count("local_batch_size", least=1)
    for ours, theirs in (("global_batch", "global_batch_size"), ("sequence", "seq_len")):
        if _says(training, theirs):
            yield ours, training.count(theirs, least=1)
    converters = [word.lower() for word in whole.inside("model").words("converters")]
    mx = any("mx" in one for one in converters)
    precision = "mxfp8" if mx else "fp8" if any("float8" in one for one in converters) else "bf16"
    yield "precision", precision
    if precision == "fp8":
        float8 = whole.inside("quantize").inside("linear").inside("float8")
        yield "scaling", "rowwise" if float8.text("recipe_name").startswith("rowwise") else "tensorwise"
    yield from _recompute(whole, precision)
    yield "compiled", whole.inside("compile").flag("enable")
    yield "overlap_tensor", whole.inside("parallelism").flag("enable_async_tensor_parallel")
    if whole.inside("parallelism").count("tensor_parallel_degree", 1, 1) > 1:
        yield "overlap_backward", False  # DTensor sums an input's gradient once that of the weight is there, too
    yield "gradient_bytes", 4.0


def _recompute(whole: Options, precision: str) -> Iterator[tuple[str, Any]]:
    """Yield what is computed again: single operations (`op`), or one layer of so many; no memory budget says which."""
    of = whole.inside("activation_checkpoint")
    mode, every = of.text("mode", _MODES) or "none", of.text("selective_ac_option") or "op"
    if mode == "selective" and every.isdecimal() and int(every) > 1:
        name, stages = model_name(whole.values), whole.inside("parallelism").count("pipeline_parallel_degree", 1, 1)
        yield "recompute", "full"
        if name:
            yield "recompute_layers", -(-sum(model(name).counts.values()) // (int(every) * stages))
    elif mode == "memory_budget" or (mode == "selective" and every == "op"):
        yield "recompute", f"{OPERATIONS}+{'matmul' if precision == 'fp8' else 'second_matmul'}"
    else:
        yield "recompute", "none" if mode == "none" else "full"
    yield "stops_early", True
