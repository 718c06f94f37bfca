"""What does the YAML of NeMo 1 say? Its `model:` table has Megatron's options under names of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from commsim.training.trainers.job import Job
from commsim.training.trainers.options import Options
from commsim.training.trainers.trained import Trained

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "NeMo"
_BF16 = ("bf16", "bf16-mixed", "bf16-true")
_FP16 = ("16", "fp16", "16-mixed")


def recognises(table: Mapping[str, Any]) -> bool:
    """Tell whether a YAML file is one of NeMo's: a model with parallel sizes, and a trainer."""
    model = table.get("model")
    return isinstance(model, Mapping) and "tensor_model_parallel_size" in model


def job(table: Mapping[str, Any], where: str) -> Job:
    """Return the job of a table; InputError for values that NeMo would refuse as well. Interpolations are left out."""
    of = Options(_plain(table["model"]), f"{where}: model")
    trainer = Options(_plain(Options(table, where).inside("trainer").values), f"{where}: trainer")
    pipeline = of.count("pipeline_model_parallel_size", 1, 1)
    tensor = of.count("tensor_model_parallel_size", 1, 1)
    optimizer = table["model"].get("optim") or {}
    sharded = "distributed" in str(optimizer.get("name", "")) if isinstance(optimizer, Mapping) else False
    return Job(
        NAME,
        tensor=tensor,
        context=of.count("context_parallel_size", 1, 1),
        pipeline=pipeline,
        expert=of.count("expert_model_parallel_size", 1, 1),
        virtual=_virtual(of, pipeline),
        sequence_parallel=of.flag("sequence_parallel"),
        zero=1 if sharded else 0,
        recipe=dict(_recipe(of, trainer)),
        trains=Trained(*of.counts("num_layers", "hidden_size", "num_attention_heads", "num_moe_experts")),
    )


def _plain(table: Mapping[str, Any]) -> dict[str, Any]:
    """The values that stand for themselves: `${.encoder_seq_length}` is what another line says."""
    return {key: value for key, value in table.items() if not (isinstance(value, str) and "${" in value)}


def _virtual(of: Options, pipeline: int) -> int:
    """Chunks of each stage, which NeMo counts as Megatron's core does."""
    return of.count("virtual_pipeline_model_parallel_size", 1, 1) if pipeline > 1 else 1


def _recipe(of: Options, trainer: Options) -> Iterator[tuple[str, Any]]:
    names = {"global_batch": "global_batch_size", "micro_batch": "micro_batch_size", "sequence": "encoder_seq_length"}
    for ours, theirs in names.items():
        if theirs in of:
            yield ours, of.count(theirs, least=1)
    yield "precision", _precision(of, trainer)
    granularity = of.text("activations_checkpoint_granularity", ("full", "selective"))
    yield "recompute", granularity or "none"
    if granularity == "full" and of.text("activations_checkpoint_method") == "block":
        yield "recompute_layers", of.count("activations_checkpoint_num_layers", 1)
    yield "overlap_tensor", of.flag("ub_tp_comm_overlap")
    if "overlap_p2p_comm" in of:
        yield "overlap_pipeline", of.flag("overlap_p2p_comm")


def _precision(of: Options, trainer: Options) -> str:
    if of.flag("fp8"):
        return "fp8"
    said = trainer.text("precision")
    return "fp16" if said in _FP16 and said not in _BF16 else "bf16"
