"""What do Megatron-LM's arguments say? As a command line, or as YAML with the arguments as keys.

Names and defaults are those of megatron/training/arguments.py.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any

from commsim.errors import InputError
from commsim.training.operations import MODULES
from commsim.training.trainers.job import Job
from commsim.training.trainers.options import Options
from commsim.training.trainers.trained import Trained

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

NAME = "Megatron-LM"
SIZES = {"global_batch": "global-batch-size", "micro_batch": "micro-batch-size", "sequence": "seq-length"}
_ZERO = {"no_shard": 0, "optim": 1, "optim_grads": 2, "optim_grads_params": 3}
_STAGE = re.compile(r"\(([^()]*)\)\*(\d{1,4})(?!\d)|(.)\*(\d{1,4})(?!\d)")
LONGEST_LAYOUT = 10_000


def recognises(table: Mapping[str, Any]) -> bool:
    """Tell whether a YAML file holds Megatron's arguments: their keys keep the dashes, under MODEL_ARGS or alone."""
    inner = table.get("MODEL_ARGS", table)
    return isinstance(inner, dict) and any(str(key).startswith("--") for key in inner)


def arguments(text: str, where: str) -> dict[str, Any]:
    """Return the options of a command line: `--name value`, `--name=value`, `--flag`. InputError for broken quotes."""
    try:
        words = shlex.split(text.replace("\\\n", " "), comments=True)
    except ValueError as error:
        raise InputError(where, str(error), "arguments as a shell reads them belong here") from None
    found: dict[str, Any] = {}
    name = ""
    for word in words:
        if word.startswith("--"):
            name, _, value = word.partition("=")
            found[name] = value or True
        elif name:
            found[name] = word if found[name] is True else f"{found[name]} {word}"
    return found


def job(table: Mapping[str, Any], where: str) -> Job:
    """Return the job of a table of arguments. InputError for what Megatron would refuse as well."""
    inner = table.get("MODEL_ARGS", table)
    of = Options({str(key).lstrip("-"): value for key, value in inner.items()}, where)
    pipeline = of.count("pipeline-model-parallel-size", 1, 1)
    virtual, layers = _chunks(of, pipeline)
    tensor = of.count("tensor-model-parallel-size", 1, 1)
    return Job(
        NAME,
        tensor=tensor,
        context=of.count("context-parallel-size", 1, 1),
        pipeline=pipeline,
        expert=of.count("expert-model-parallel-size", 1, 1),
        expert_tensor=of.count("expert-tensor-parallel-size", tensor if of.count("num-experts") else 1, 1),
        virtual=virtual,
        layers=layers,
        sequence_parallel=of.flag("sequence-parallel"),
        context_by="all_gather" if of.text("cp-comm-type") in {"all_gather", "allgather"} else "ring",
        zero=_zero(of),
        recipe=dict(_recipe(of)),
        trains=_trains(of),
    )


def _trains(of: Options) -> Trained:
    """The model; one that is described without experts has none."""
    layers, hidden, heads = of.counts("num-layers", "hidden-size", "num-attention-heads")
    return Trained(layers, hidden, heads, None if layers is None else of.count("num-experts"))


def _zero(of: Options) -> int:
    sharded = of.text("data-parallel-sharding-strategy", _ZERO)
    if sharded:
        return _ZERO[sharded]
    return 1 if of.flag("use-distributed-optimizer") else 0


def _chunks(of: Options, pipeline: int) -> tuple[int, tuple[int, ...]]:
    """Virtual stages, and the layers of each chunk where the file says them."""
    if pipeline == 1:
        return 1, ()
    laid = of.text("pipeline-model-parallel-layout")
    if laid:
        layers = _laid_out(laid, of.where)
        return len(layers) // pipeline, layers
    per_rank = of.count("num-virtual-stages-per-pipeline-rank")
    per_chunk = of.count("num-layers-per-virtual-pipeline-stage")
    if not per_chunk:
        return per_rank or 1, ()
    virtual, rest = divmod(of.count("num-layers", 0), pipeline * per_chunk)
    if rest or not virtual:
        said = f"a divisor of the layers of a stage ({of.count('num-layers')} layers, {pipeline} stages) belongs here"
        raise InputError(f"{of.where}: num-layers-per-virtual-pipeline-stage", per_chunk, said)
    return virtual, ()


def _laid_out(text: str, where: str) -> tuple[int, ...]:
    """The layers of each chunk of `Et*2|(tt|)*5t|tmL`: E embedding, t layer, m prediction module, L loss."""
    plain = text.strip("'\"").replace(",", "").lower()
    for _ in range(plain.count("*")):
        if len(plain) > LONGEST_LAYOUT:
            break
        plain = _STAGE.sub(lambda found: (found[1] or found[3]) * int(found[2] or found[4]), plain, count=1)
    if not re.fullmatch(r"[etml|]+", plain):
        raise InputError(f"{where}: pipeline-model-parallel-layout", text, "letters E, t, m, L and | belong here")
    return tuple(stage.count("t") for stage in plain.split("|"))


def _recipe(of: Options) -> Iterator[tuple[str, Any]]:
    for ours, theirs in SIZES.items():
        if theirs in of:
            yield ours, of.count(theirs, least=1)
    yield "precision", _precision(of)
    yield from _recompute(of)
    yield "overlap_tensor", of.flag("tp-comm-overlap")
    yield "overlap_data", of.flag("overlap-grad-reduce") or of.flag("overlap-param-gather")
    yield "overlap_expert", of.flag("overlap-moe-expert-parallel-comm")
    if "overlap-p2p-communication" in of or of.flag("no-overlap-p2p-communication"):
        yield "overlap_pipeline", not of.flag("no-overlap-p2p-communication")
    if of.flag("grad-reduce-in-bf16"):
        yield "gradient_bytes", 2.0
    if of.text("attention-backend") == "unfused":
        yield "attention", "unfused"
    yield "cuda_graphs", of.flag("enable-cuda-graph") or of.text("cuda-graph-impl") not in {"", "none"}


def _precision(of: Options) -> str:
    """The number format: fp4 before fp8 before what the weights are in; Megatron's own default is fp32."""
    if of.text("fp4-format"):
        return "nvfp4"
    if of.text("fp8-format") or of.text("fp8"):
        return "mxfp8" if of.text("fp8-recipe") == "mxfp8" else "fp8"
    return "fp16" if of.flag("fp16") else "bf16"


def _recompute(of: Options) -> Iterator[tuple[str, Any]]:
    granularity = of.text("recompute-granularity", ("full", "selective"))
    if not granularity and not of.flag("recompute-activations"):
        yield "recompute", "none"
        return
    if granularity != "full":
        named = of.words("recompute-modules") or ("core_attn",)
        known = [name for name in named if name in MODULES]
        yield "recompute", "+".join(known) or "selective"
        return
    yield "recompute", "full"
    if of.text("recompute-method") == "block" and of.count("recompute-num-layers"):
        yield "recompute_layers", of.count("recompute-num-layers")
