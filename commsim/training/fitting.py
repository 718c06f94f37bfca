"""Do a model, a plan, a recipe and a machine fit each other?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commsim.errors import InputError
from commsim.training.compute import kernel_figures
from commsim.training.operations import FULL
from commsim.training.pipeline.schedules import SCHEDULES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from commsim.training.operations import Recomputed
    from commsim.training.pieces import Piece
    from commsim.training.setting import Setting


def misfits(setting: Setting) -> Iterator[InputError]:
    """Yield an error for everything that does not fit, the gravest first."""
    yield from _ranks(setting)
    yield from _heads(setting)
    yield from _experts(setting)
    yield from _batches(setting)
    yield from options(setting)
    yield from _of_absent_axes(setting)
    yield from _modules(setting)


def _ranks(setting: Setting) -> Iterator[InputError]:
    plan, gpus = setting.plan, setting.system.gpus
    if plan.gpus != gpus:
        said = " x ".join(f"{name} {size}" for name, (size, _) in plan.dims().items() if size > 1) or "one rank"
        yield InputError("plan", f"{said} = {plan.gpus} ranks", f"the {gpus} GPUs of the machine belong here")


def _heads(setting: Setting) -> Iterator[InputError]:
    """Heads go whole to a rank; fewer KV heads than ranks are replicated evenly."""
    tensor, name = setting.plan.tensor, setting.model.name
    for mixer in (block.mixer for block in setting.model.blocks):
        if mixer and tensor > mixer.heads:
            yield InputError("plan: tensor", tensor, f"at most the {mixer.heads} attention heads of {name} belong here")
        if mixer and mixer.heads % tensor:
            yield InputError(
                "plan: tensor", tensor, f"a divisor of the {mixer.heads} attention heads of {name} belongs here"
            )
        if mixer and mixer.kv_heads % tensor and tensor % mixer.kv_heads:
            expected = f"a divisor or a multiple of the {mixer.kv_heads} key and value heads of {name} belongs here"
            yield InputError("plan: tensor", tensor, expected)


def _experts(setting: Setting) -> Iterator[InputError]:
    plan, name = setting.plan, setting.model.name
    counts = {block.experts.count for block in setting.model.blocks if block.experts}
    if plan.expert * plan.expert_tensor > 1 and not counts:
        yield InputError("plan: expert", plan.expert, f"{name} has no experts; leave the axis out")
    for count in counts:
        if count % plan.expert:
            yield InputError("plan: expert", plan.expert, f"a divisor of the {count} experts of {name} belongs here")
    if counts and plan.tensor > 1 and not plan.sequence:
        expected = "sequence parallelism belongs beside experts: each tensor rank dispatches its own tokens"
        yield InputError("plan: tensor", "sequence=False", expected)


def _batches(setting: Setting) -> Iterator[InputError]:
    plan, recipe = setting.plan, setting.recipe
    replicas = recipe.micro_batch * plan.data
    if recipe.global_batch % replicas:
        expected = f"a multiple of micro-batch x data = {recipe.micro_batch} x {plan.data} = {replicas} belongs here"
        yield InputError("global-batch", recipe.global_batch, expected)
    shares = plan.context * (plan.tensor if plan.sequence else 1)
    if recipe.sequence % shares:
        named = "context x tensor" if plan.sequence and plan.tensor > 1 else "context"
        yield InputError("sequence", recipe.sequence, f"a multiple of {named} = {shares} belongs here")
    if setting.schedule == "interleaved" and setting.microbatches < plan.pipeline:
        expected = (
            f"interleaved needs at least {plan.pipeline} micro-batches, one a stage; 1 chunk or schedule gpipe works"
        )
        yield InputError("virtual stages", f"{plan.virtual} with {setting.microbatches} micro-batches a step", expected)


def options(setting: Setting) -> Iterator[InputError]:
    """Yield an error for each option of the recipe that no plan could do on this accelerator."""
    plan, recipe, chip = setting.plan, setting.recipe, setting.system.accelerator
    if recipe.schedule not in {None, *SCHEDULES}:
        yield InputError(
            "schedule", recipe.schedule, "no such schedule", among=[one for one in SCHEDULES if one != "forward"]
        )
    if recipe.schedule == "forward":
        yield InputError("schedule", recipe.schedule, "a schedule with backward passes belongs in a training step")
    for number_format in (recipe.matmul_format, recipe.other_format):
        if number_format not in chip.peak:
            expected = f"{chip.title} multiplies matrices in {', '.join(chip.peak)}"
            yield InputError("precision", recipe.precision, expected)
    kernel_figures(chip).kernel(setting.kernel)  # says itself which kernels there are
    if recipe.overlap_tensor and plan.tensor > 1 and not plan.sequence:
        yield InputError(
            "overlap-tensor",
            recipe.overlap_tensor,
            "sequence parallelism belongs beside it: it cuts along the sequence",
        )


def _of_absent_axes(setting: Setting) -> Iterator[InputError]:
    """Options that would do nothing, as the plan does not name their axis, or the model has no experts."""
    model, recipe, named = setting.model, setting.recipe, {axis.name for axis in setting.plan.axes}
    given = (
        ("tensor", "overlap-tensor", recipe.overlap_tensor, False),
        ("pipeline", "overlap-pipeline", recipe.overlap_pipeline, None),
        ("pipeline", "schedule", recipe.schedule, None),
        ("expert", "overlap-expert", recipe.overlap_expert, False),
        ("expert", "imbalance", recipe.imbalance, 1.0),
        ("expert", "dispatcher", recipe.dispatcher, "alltoall"),
        ("expert", "routing", recipe.routing, "spread"),
        ("tensor", "overlap-backward", recipe.overlap_backward, True),
    )
    for axis, option, value, default in given:
        dense = axis == "expert" and not any(block.experts for block in model.blocks)
        if value != default and (dense or axis not in named):
            lacks = f"{model.name} has no experts" if dense else f"the plan names no {axis} axis"
            yield InputError(option, value, f"{lacks}; leave it out{'' if dense else f' or add {axis}=N'}")


def _modules(setting: Setting) -> Iterator[InputError]:
    """Modules that no layer has, so that there is nothing to compute again."""
    if setting.recipe.recomputed <= FULL:
        return  # every layer can be computed again as a whole
    present = modules(setting.chunks.pieces)
    for absent in sorted(setting.recipe.recomputed - present):
        yield InputError("recompute", absent, f"{setting.model.name} has no such module", among=sorted(present))


def modules(pieces: Iterable[Piece]) -> Recomputed:
    """Return the modules of these pieces that can be computed again."""
    works = [piece.work for piece in pieces]
    repeated = [one.recompute for work in works for one in work.operations]
    freed = [one.recompute for work in works for one in work.stored]
    return frozenset[str]().union(*repeated, *freed)
