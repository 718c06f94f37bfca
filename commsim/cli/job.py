"""Which plan and which recipe do the options describe?"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from commsim.cli.options import option
from commsim.cli.output import note
from commsim.errors import InputError
from commsim.hardware.system import System
from commsim.training.axes import Axis
from commsim.training.model import Model
from commsim.training.plan import Plan, parse_plan
from commsim.training.trainers.job import Job
from commsim.training.trainers.read import read_job

_plan, _recipe = partial(option, "Plan"), partial(option, "Recipe")
_EXAMPLE = "the axes, the innermost first, such as tensor=8,pipeline=4,data=64"


def plan(
    plan: Annotated[str, _plan(f"{_EXAMPLE.capitalize()}; or a trainer's own configuration.", "AXES")],
    virtual_stages: Annotated[int, _plan("Chunks of layers on each pipeline stage.", "N")] = 1,
    zero: Annotated[int, _plan("Data ranks shard 1 optimizer, 2 gradients, 3 weights.", "0..3")] = 1,
    shard: Annotated[int | None, _plan("Data ranks that shard (all of them).", "N")] = None,
    sequence_parallel: Annotated[bool, _plan("Tensor ranks share the sequence between matrices.")] = True,
    context_by: Annotated[Literal["ring", "all_gather"] | None, _plan("How keys and values travel (ring).")] = None,
) -> Plan | Job:
    """Return the plan, or the job of a trainer's own file. InputError for options that lack their axis, or a file."""
    there = os.path.exists(plan)  # noqa: PTH110 - it answers for impossible names as well
    if there or (Path(plan).suffix and "=" not in plan):
        beside = {"virtual-stages": virtual_stages != 1, "zero": zero != 1, "shard": shard, "context-by": context_by}
        for name, given in beside.items():
            if given:
                raise InputError(name, Path(plan).name, "the file says it: leave the option out, or change the file")
        return read_job(Path(plan))
    parsed = parse_plan(plan, virtual=virtual_stages, zero=zero, shard=shard)
    named = {axis.name for axis in parsed.axes}
    needed = {"data": zero not in (0, 1) or shard is not None, "context": context_by, "tensor": not sequence_parallel}
    for axis, given in needed.items():
        if given and axis not in named:
            raise InputError("plan", plan, f"{axis}=N belongs in it beside an option of the {axis} axis")
    return Plan(*(_changed(axis, sequence_parallel, context_by or "ring") for axis in parsed.axes))


def _changed(axis: Axis, sequence: bool, by: str) -> Axis:
    changes: dict[str, dict[str, Any]] = {"tensor": {"sequence": sequence}, "context": {"by": by}}
    return dataclasses.replace(axis, **changes.get(axis.name, {}))


def recipe(
    global_batch: Annotated[int | None, _recipe("Sequences of one step.", "N")] = None,
    micro_batch: Annotated[int | None, _recipe("Sequences that a rank takes at once (1).", "N")] = None,
    sequence: Annotated[int | None, _recipe("Tokens of a sequence (8192).", "N")] = None,
    precision: Annotated[str | None, _recipe("bf16 (if nothing is said), fp16, fp8, mxfp8 or nvfp4.")] = None,
    recompute: Annotated[str | None, _recipe("none (as it is), selective, full, or Megatron's modules by +.")] = None,
    recompute_layers: Annotated[int | None, _recipe("Layers of each stage (all).", "N", min=1)] = None,
    schedule: Annotated[str | None, _recipe("Of the pipeline: gpipe, 1f1b, interleaved, zero-bubble.")] = None,
    overlap_tensor: Annotated[bool | None, _recipe("Megatron's --tp-comm-overlap (no).")] = None,
    overlap_data: Annotated[bool | None, _recipe("--overlap-grad-reduce, --overlap-param-gather (yes).")] = None,
    overlap_pipeline: Annotated[bool | None, _recipe("--overlap-p2p-communication (with virtual stages).")] = None,
    overlap_expert: Annotated[bool | None, _recipe("Experts' dispatch and combine behind compute (no).")] = None,
    imbalance: Annotated[float | None, _recipe("Tokens of the most loaded expert rank over the mean (1).")] = None,
    attention: Annotated[str | None, _recipe("Kernel: flash2, flash3 ... or unfused (the newest).")] = None,
    cuda_graphs: Annotated[bool | None, _recipe("Launch kernels from graphs (no).")] = None,
    compiled: Annotated[bool | None, _recipe("torch.compile fuses what is between matmuls (no).")] = None,
    unfused: Annotated[str | None, _recipe("In PyTorch's own kernels, by +: norm, loss ... (none).")] = None,
    loss_parallel: Annotated[bool | None, _recipe("Tensor ranks share the vocabulary (yes).")] = None,
    expandable_segments: Annotated[bool | None, _recipe("Of PyTorch's allocator (yes).")] = None,
    stops_early: Annotated[bool | None, _recipe("Recompute no result that nobody reads (no).")] = None,
    overlap_backward: Annotated[bool | None, _recipe("Sums of input gradients behind matmuls (yes).")] = None,
    dispatcher: Annotated[str | None, _recipe("To experts: alltoall (as it is), deepep or hybridep.")] = None,
    scaling: Annotated[str | None, _recipe("Of fp8: delayed (as it is), tensorwise or rowwise.")] = None,
    routing: Annotated[str | None, _recipe("Experts of a token: spread (as it is), consecutive.")] = None,
    dropless: Annotated[bool | None, _recipe("The host waits for the counts of tokens (yes).")] = None,
    efficiency: Annotated[float | None, _recipe("Of your trainer, to the best (1).")] = None,
    gradient_bytes: Annotated[float | None, _recipe("Of a gradient, kept and summed (4).", "B")] = None,
    weight_bytes: Annotated[float | None, _recipe("Of a weight, kept and gathered (2).", "B")] = None,
) -> dict[str, Any]:
    """Return the keywords of `Recipe` that are given; `Recipe` checks them, and has the defaults of the others."""
    return {name: value for name, value in locals().items() if value is not None}


def settled(plan: Plan | Job, recipe: dict[str, Any], machine: System, model: Model) -> tuple[Plan, dict[str, Any]]:
    """Return the plan and the keywords of the recipe for a model on a machine.

    A trainer's file is laid out over the machine; options of the command line come before what it says, and its
    remarks are printed. InputError where nothing says how large a batch is.
    """
    options = recipe
    if isinstance(plan, Job):
        for remark in plan.remarks(model):
            note(remark)
        job, plan = plan, plan.plan(machine.gpus)
        options = job.options(plan) | recipe
    need_batch(options)
    return plan, options


def need_batch(options: Mapping[str, Any]) -> None:
    """Raise InputError unless something says how large a batch is."""
    if "global_batch" not in options:
        raise InputError("global-batch", None, "the sequences of one step belong here, as in --global-batch 1024")
