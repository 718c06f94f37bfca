"""What does DeepSpeed's JSON say? Tensor and pipeline sizes come from elsewhere; a step is what one update takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from commsim.errors import InputError
from commsim.training.trainers.job import Job
from commsim.training.trainers.options import Options

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "DeepSpeed"
KEYS = {"zero_optimization", "train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"}


def recognises(table: Mapping[str, Any]) -> bool:
    """Tell whether a JSON file is one of DeepSpeed's."""
    return bool(KEYS & table.keys())


def job(table: Mapping[str, Any], where: str) -> Job:
    """Return the job of a table. InputError for values that DeepSpeed would refuse as well."""
    of = Options(table, where)
    zero = of.inside("zero_optimization")
    stage = zero.count("stage", 0)
    if stage not in range(4):
        raise InputError(f"{where}: zero_optimization: stage", stage, "0, 1, 2 or 3 belongs here")
    inside = zero.count("zero_hpz_partition_size", 1, 1)
    each = of.count("train_micro_batch_size_per_gpu") * of.count("gradient_accumulation_steps", 1, 1)
    whole = "train_batch_size" in of
    return Job(
        NAME,
        zero=stage,
        shard=inside if inside > 1 and stage == 3 else None,  # noqa: PLR2004 - hpZ shards the weights of stage 3
        batch_per_rank=None if whole or not each else each,
        recipe=dict(_recipe(of, zero)),
        notes=tuple(_left_out(zero)),
    )


def _recipe(of: Options, zero: Options) -> Iterator[tuple[str, Any]]:
    for ours, theirs in (("global_batch", "train_batch_size"), ("micro_batch", "train_micro_batch_size_per_gpu")):
        if theirs in of:
            yield ours, of.count(theirs, least=1)
    yield "precision", "fp16" if of.inside("fp16").flag("enabled") else "bf16"
    yield "overlap_data", zero.flag("overlap_comm", default=True)
    if of.text("communication_data_type") in {"bf16", "fp16", "bfp16"}:
        yield "gradient_bytes", 2.0


def _left_out(zero: Options) -> Iterator[str]:
    for name in ("offload_optimizer", "offload_param"):
        told = zero.values.get(name)
        device = told.get("device", "none") if isinstance(told, Mapping) else told
        if device and str(device).lower() != "none":
            yield f"{name} is left out: nothing is moved to the {device}"
