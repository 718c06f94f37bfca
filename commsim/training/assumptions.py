"""What does an estimate take for granted?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commsim.training.axes import Context
from commsim.training.compute import SPREAD
from commsim.training.overlap import CONTENTION
from commsim.training.passes import ASSEMBLY, HOST
from commsim.training.step import program_of
from commsim.units import counted, show

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commsim.training.setting import Setting
    from commsim.training.steps import Step

COMMUNICATES = {
    "asynchronous": "occupy no stage",
    "blocking": "occupy the stage that sends",
    "rendezvous": "wait for both stages and occupy both",
}
_SHARDS_GRADIENTS = 2
MFU_CONVENTION = "MFU: causal attention, with logits, without recompute, of the dense peak of the matmuls' format"


def assumed(setting: Setting, step: Step, library: str) -> Iterator[str]:
    """Yield the assumptions behind a step, one sentence each: of the model, the machine, the plan, the recipe."""
    recipe, model = setting.recipe, setting.model
    yield MFU_CONVENTION
    yield from (f"{model.name}: {sentence}" for sentence in model.assumptions)
    yield from (f"{setting.system.name}: {sentence}" for sentence in setting.system.assumptions)
    if setting.chunks.assumption:
        yield setting.chunks.assumption
    yield f"collectives by the library {library!r}; a second hidden behind compute costs it {CONTENTION} s"
    yield f"the ranks of a collective need {show(ASSEMBLY, 's', 2)} to meet before it starts"
    yield f"the slowest of {setting.system.gpus:,} GPUs, whose rates differ by {SPREAD:.0%}, is waited for"
    yield from _of_software(setting)
    yield from _of_plan(setting)
    yield from _straddling(setting, step)
    if recipe.matmul_format != recipe.other_format:
        yield f"layers' matmuls in {recipe.matmul_format}, attention and logits in {recipe.other_format}"
    yield f"{recipe.gradient_bytes:g} bytes a gradient, {recipe.weight_bytes:g} a weight, 12 a weight for Adam"


def _of_software(setting: Setting) -> Iterator[str]:
    """What the trainer's kernels, and its host, take for granted."""
    recipe = setting.recipe
    if recipe.efficiency != 1:
        yield f"the trainer reaches {recipe.efficiency:g} of the rates that kernels are taken to reach (efficiency)"
    if setting.model.experts and recipe.dropless and not recipe.cuda_graphs:
        yield f"the host takes {HOST * 1e3:g} ms to launch a layer of experts forward, twice that backward (dropless)"
    if setting.plan.expert > 1 and recipe.dispatcher != "alltoall":
        yield f"{recipe.dispatcher} sends a token once to each place that has some of its experts"
    if setting.plan.expert > 1 and recipe.routing == "consecutive":
        yield "the experts of a token follow each other by number, as no trained router chooses them"


def _of_plan(setting: Setting) -> Iterator[str]:
    """What each axis takes for granted."""
    plan, recipe = setting.plan, setting.recipe
    if plan.tensor > 1 and not recipe.overlap_tensor:
        hidden = ", but for the two of the backward pass that Megatron hides" if recipe.overlap_backward else ""
        yield f"tensor-parallel collectives are exposed{hidden}"
    if plan.context > 1:
        by = {"ring": "passed round behind attention", "all_gather": "gathered before attention"}
        yield f"keys and values of the context axis are {by[plan.axis(Context).by]}"
    if setting.model.experts:
        yield f"experts are dealt out over {counted(plan.expert, 'rank')}, and each is split over {plan.expert_tensor}"
    if plan.expert > 1:
        yield f"the most loaded expert rank gets {recipe.imbalance:g} times the mean of tokens"
    if plan.pipeline > 1:
        yield f"pipeline: {setting.schedule}, messages {COMMUNICATES[program_of(setting).communication]}"
    if plan.zero == _SHARDS_GRADIENTS and plan.pipeline > 1:
        yield "with a pipeline, ZeRO 2 scatters gradients once a step, as Llama 3 did"


def _straddling(setting: Setting, step: Step) -> Iterator[str]:
    """Name the groups that speak of which some lie inside a scale-up domain and others across its border."""
    domain = setting.system.topology.domain_size
    for group in dict.fromkeys(said.traffic.group for said in step.said):
        ranks = setting.plan.layout(group).ranks() // domain
        across = ranks.min(axis=1) != ranks.max(axis=1)
        if across.any() and not across.all():
            size, count = ranks.shape[1], int(across.sum())
            yield f"{count} {group} groups of {size} straddle domains of {domain} GPUs: try --gpus-per-domain"
