"""Which plan and which recipe do the options describe?"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from commsim.cli.output import note
from commsim.errors import InputError
from commsim.hardware.system import System
from commsim.training.axes import Axis
from commsim.training.model import Model
from commsim.training.plan import Plan, parse_plan
from commsim.training.trainers.job import Job
from commsim.training.trainers.read import read_job

_PLAN, _RECIPE = "Plan", "Recipe"
_EXAMPLE = "the axes, the innermost first, such as tensor=8,pipeline=4,data=64"


def plan(
    plan: Annotated[
        str,
        typer.Option(
            metavar="AXES", rich_help_panel=_PLAN, help=f"{_EXAMPLE.capitalize()}; or a trainer's own configuration."
        ),
    ],
    virtual_stages: Annotated[
        int, typer.Option(metavar="N", rich_help_panel=_PLAN, help="Chunks of layers on each pipeline stage.")
    ] = 1,
    zero: Annotated[
        int,
        typer.Option(
            metavar="0..3", rich_help_panel=_PLAN, help="Data ranks shard 1 optimizer, 2 gradients, 3 weights."
        ),
    ] = 1,
    shard: Annotated[
        int | None, typer.Option(metavar="N", rich_help_panel=_PLAN, help="Data ranks that shard (all of them).")
    ] = None,
    sequence_parallel: Annotated[
        bool, typer.Option(rich_help_panel=_PLAN, help="Tensor ranks share the sequence between matrices.")
    ] = True,
    context_by: Annotated[
        Literal["ring", "all_gather"] | None,
        typer.Option(rich_help_panel=_PLAN, help="How keys and values travel (ring)."),
    ] = None,
) -> Plan | Job:
    """Return the plan, or the job of a trainer's own file. InputError for options that lack their axis, or a file."""
    there = os.path.exists(plan)  # noqa: PTH110 - it answers for impossible names as well
    if there or (Path(plan).suffix and "=" not in plan):
        beside = {"virtual-stages": virtual_stages != 1, "zero": zero != 1, "shard": shard, "context-by": context_by}
        for option, given in beside.items():
            if given:
                raise InputError(option, Path(plan).name, "the file says it: leave the option out, or change the file")
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
    global_batch: Annotated[
        int | None, typer.Option(metavar="N", rich_help_panel=_RECIPE, help="Sequences of one step.")
    ] = None,
    micro_batch: Annotated[
        int | None, typer.Option(metavar="N", rich_help_panel=_RECIPE, help="Sequences that a rank takes at once (1).")
    ] = None,
    sequence: Annotated[
        int | None, typer.Option(metavar="N", rich_help_panel=_RECIPE, help="Tokens of a sequence (8192).")
    ] = None,
    precision: Annotated[
        str | None, typer.Option(rich_help_panel=_RECIPE, help="bf16 (if nothing is said), fp16, fp8, mxfp8 or nvfp4.")
    ] = None,
    recompute: Annotated[
        str | None,
        typer.Option(rich_help_panel=_RECIPE, help="none (as it is), selective, full, or Megatron's modules by +."),
    ] = None,
    recompute_layers: Annotated[
        int | None, typer.Option(metavar="N", min=1, rich_help_panel=_RECIPE, help="Layers of each stage (all).")
    ] = None,
    schedule: Annotated[
        str | None,
        typer.Option(rich_help_panel=_RECIPE, help="Of the pipeline: gpipe, 1f1b, interleaved, zero-bubble."),
    ] = None,
    overlap_tensor: Annotated[
        bool | None, typer.Option(rich_help_panel=_RECIPE, help="Megatron's --tp-comm-overlap (no).")
    ] = None,
    overlap_data: Annotated[
        bool | None, typer.Option(rich_help_panel=_RECIPE, help="--overlap-grad-reduce, --overlap-param-gather (yes).")
    ] = None,
    overlap_pipeline: Annotated[
        bool | None, typer.Option(rich_help_panel=_RECIPE, help="--overlap-p2p-communication (with virtual stages).")
    ] = None,
    overlap_expert: Annotated[
        bool | None, typer.Option(rich_help_panel=_RECIPE, help="Experts' dispatch and combine behind compute (no).")
    ] = None,
    imbalance: Annotated[
        float | None,
        typer.Option(rich_help_panel=_RECIPE, help="Tokens of the most loaded expert rank over the mean (1)."),
    ] = None,
    attention: Annotated[
        str | None, typer.Option(rich_help_panel=_RECIPE, help="Kernel: flash2, flash3 ... or unfused (the newest).")
    ] = None,
    cuda_graphs: Annotated[
        bool | None, typer.Option(rich_help_panel=_RECIPE, help="Launch kernels from graphs (no).")
    ] = None,
    unfused: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=_RECIPE,
            help="In PyTorch's own kernels, by +: norm, loss ... (none).",
        ),
    ] = None,
    loss_parallel: Annotated[
        bool | None, typer.Option(rich_help_panel=_RECIPE, help="Tensor ranks share the vocabulary (yes).")
    ] = None,
    expandable_segments: Annotated[
        bool | None, typer.Option(rich_help_panel=_RECIPE, help="Of PyTorch's allocator (yes).")
    ] = None,
    overlap_backward: Annotated[
        bool | None, typer.Option(rich_help_panel=_RECIPE, help="Sums of input gradients behind matmuls (yes).")
    ] = None,
    dispatcher: Annotated[
        str | None, typer.Option(rich_help_panel=_RECIPE, help="To experts: alltoall (as it is), deepep or hybridep.")
    ] = None,
    dropless: Annotated[
        bool | None, typer.Option(rich_help_panel=_RECIPE, help="The host waits for the counts of tokens (yes).")
    ] = None,
    efficiency: Annotated[
        float | None, typer.Option(rich_help_panel=_RECIPE, help="Of your trainer, to the best (1).")
    ] = None,
    gradient_bytes: Annotated[
        float | None, typer.Option(metavar="B", rich_help_panel=_RECIPE, help="Of a gradient, kept and summed (4).")
    ] = None,
    weight_bytes: Annotated[
        float | None, typer.Option(metavar="B", rich_help_panel=_RECIPE, help="Of a weight, kept and gathered (2).")
    ] = None,
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
