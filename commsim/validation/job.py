"""Which model, plan and recipe did a published result run?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from commsim.errors import InputError
from commsim.training.axes import Axis, Context, Data, Expert, Pipeline, Tensor
from commsim.training.configs.rows import row_model
from commsim.training.estimate import Estimate, estimate
from commsim.training.plan import Plan
from commsim.training.recipe import OPERATIONS
from commsim.training.setting import UNFUSED
from commsim.validation.machine import machine
from commsim.validation.trainers import Trainer, trainer_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from commsim.training.model import Model
    from commsim.validation.published import Published

_BYTES = {"fp32": 4.0, "bf16": 2.0, "fp16": 2.0}
_KERNELS = {"torch": UNFUSED, "fused": UNFUSED}
"""Kernels that write the scores to memory, fused softmax or not."""
_SHOWN = {None: "the newest", True: "yes", False: "no"}
_SCALES = {"current": "tensorwise"}
"""Scalings by their other names; one scale for each block of a tensor is found as one for all of it."""
_NEIGHBOURS = "fake balanced gate"
"""A stand-in for the router that gives a token experts with neighbouring numbers (NeMo AutoModel)."""
_HARDER = ("selective", "full")


@dataclass(frozen=True)
class Job:
    """A result's estimate, and what was assumed because its source does not say it."""

    estimate: Estimate
    assumptions: tuple[str, ...]


def job(result: Published, models: Mapping[str, Mapping[str, str]]) -> Job:
    """Return the estimate of a result. InputError when its plan, model or machine cannot be estimated.

    The measured time, the source and the name of the row are never read.
    """
    if result.model_id not in models:
        raise InputError("model_id", result.model_id, "no such model in the table of models", among=models)
    trainer = trainer_of(result.trainer, result.framework, result.year)
    if trainer is None:
        raise InputError("trainer", result.trainer or result.framework, "a known trainer belongs here")
    filled = _Filled(result, trainer)
    model = _model(result, models[result.model_id])
    system, assumed = machine(result)
    plan, recipe = filled.plan(), filled.recipe(model, system.accelerator.architecture)
    found = estimate(model, plan, system, **recipe)
    if not result.recompute_mode and trainer.rematerialises:
        found = filled.fitting(found, recipe)
    return Job(found, (*assumed, *dict.fromkeys(filled.assumed), *_unmodelled(result)))


def _unmodelled(result: Published) -> Iterator[str]:
    """Yield what the source does say and an estimate cannot tell apart."""
    if result.packed:
        yield "samples are packed, but attention is counted over whole sequences"
    if result.cuda_graph == "partial":
        yield "no kernel is launched from a graph, as experts are not"
    if (result.ep or 1) > 1 and not result.moe_balance:
        yield "tokens are spread evenly over the experts"


def _model(result: Published, row: Mapping[str, str]) -> Model:
    model = row_model(row, result.model_overrides)
    if not result.parallel_block:
        return model
    return replace(model, blocks=tuple(replace(block, parallel=True) for block in model.blocks))


def _bytes_of(number_format: str) -> float:
    if number_format not in _BYTES:
        raise InputError("gradient_format", number_format, "no such format", among=_BYTES)
    return _BYTES[number_format]


class _Filled:
    """A result whose blanks its trainer fills; `assumed` collects what was filled in."""

    def __init__(self, result: Published, trainer: Trainer) -> None:
        self.result, self.trainer = result, trainer
        self.assumed: list[str] = []

    def _or(self, column: str, default: Any) -> Any:  # noqa: ANN401 - whatever the column holds
        """Return what the column says, else the trainer's default, which is an assumption."""
        said = getattr(self.result, column)
        if said not in (None, ""):
            return said
        shown = _SHOWN.get(default, default) if default is None or isinstance(default, bool) else default
        self.assumed.append(f"{column} is not stated: {shown}, as {self.trainer.name}")
        return default

    def plan(self) -> Plan:
        """Return the plan in Megatron's order, the data axis inside the pipeline."""
        return Plan.ordered(*self._axes())

    def _axes(self) -> list[Axis]:
        said, trainer = self.result, self.trainer
        sequence = said.tp > 1 and self._or("sp", trainer.sequence)
        axes: list[Axis] = [Tensor(said.tp, sequence=sequence), Context(said.cp or 1, by=trainer.context)]
        if (said.ep or 1) * (said.etp or 1) > 1:
            axes.append(Expert(said.ep or 1, tensor=self._expert_tensor()))
        return [*axes, self._data(), Pipeline(said.pp, virtual=(said.vpp or 1) if said.pp > 1 else 1)]

    def _expert_tensor(self) -> int:
        """Ranks that share an expert; Megatron-Core takes those of the tensor axis when it is not told."""
        said = self.result
        folds = said.tp * (said.cp or 1) * said.dp % ((said.ep or 1) * said.tp) == 0
        split = self.trainer.splits_experts and folds
        return int(self._or("etp", said.tp if split else 1)) if said.tp > 1 else said.etp or 1

    def _data(self) -> Data:
        """The data axis; `shard_ranks` counts context ranks as well where data ranks alone cannot be meant."""
        said, zero = self.result, self._or("zero_stage", self.trainer.zero)
        shard = said.shard_ranks
        if shard == 1:
            return Data(said.dp, zero=0)
        if shard and said.dp % shard and shard % (said.cp or 1) == 0:
            shard //= said.cp or 1
        return Data(said.dp, zero=zero, shard=shard)

    def recipe(self, model: Model, architecture: str) -> dict[str, Any]:
        """Return the keywords of the recipe."""
        said, trainer = self.result, self.trainer
        precision = self._or("number_format", "bf16")
        kernel = self._or("attention_kernel", trainer.attention.get(architecture))
        return {
            "global_batch": said.global_batch,
            "micro_batch": said.micro_batch,
            "sequence": said.seq_len,
            "precision": precision,
            "scaling": self._scaling(precision),
            **self._recompute(model),
            "overlap_tensor": said.tp > 1 and self._or("overlap_tensor", trainer.overlap_tensor and not model.experts),
            "overlap_data": self._or("overlap_data", trainer.overlap_data),
            "overlap_pipeline": said.overlap_pipeline,
            "attention": _KERNELS.get(kernel, kernel),
            "compiled": bool(said.torch_compile),
            "cuda_graphs": said.cuda_graph == "full",
            "loss_parallel": trainer.loss_parallel,
            "expandable_segments": trainer.expandable_segments,
            "stops_early": trainer.stops_early,
            "gradient_bytes": _bytes_of(self._or("gradient_format", trainer.gradients)),
            "unfused": self._unfused(precision),
            "overlap_backward": said.tp == 1 or trainer.overlap_backward,
            **self._experts(model, architecture),
            "efficiency": trainer.efficiency,
            "weight_bytes": 1.0 if trainer.gathers_fp8 and precision == "fp8" else 2.0,
        }

    def _scaling(self, precision: str) -> str:
        """How fp8 is scaled, where it is; delayed where nobody says."""
        said = self.result.fp8_scaling if precision == "fp8" else ""
        return _SCALES.get(said, said) or "delayed"

    def _unfused(self, precision: str) -> str:
        """What PyTorch's own kernels do: as the trainer has it, unless the source names a kernel for it.

        Transformer Engine's grouped matmuls in narrow formats do the activation of experts as well.
        """
        said = self.result
        fused = {"norm": said.fused_norm, "clamp": precision != "bf16"}
        plain = [one for one in self.trainer.unfused.split("+") if one and not fused.get(one)]
        return "+".join([*plain, *(["softmax"] if said.attention_kernel == "torch" else [])])

    def _experts(self, model: Model, architecture: str) -> dict[str, Any]:
        """What the recipe says of experts. Tokens over a capacity are dropped, so that no count is waited for."""
        said = self.result
        if not model.experts:
            return {}
        usual = self.trainer.dispatcher.get(architecture, "alltoall")
        return {
            "dispatcher": self._or("moe_dispatcher", usual) if (said.ep or 1) > 1 else "alltoall",
            "overlap_expert": bool(said.overlap_expert),
            "routing": "consecutive" if said.moe_routing == _NEIGHBOURS and (said.ep or 1) > 1 else "spread",
            "dropless": said.moe_balance != "capacity" and said.capacity_factor is None,
        }

    def _recompute(self, model: Model) -> dict[str, Any]:
        """What is computed again: modules by Megatron's names, or every n-th layer whole."""
        said = self.result
        mode = self._or("recompute_mode", self.trainer.recompute)
        if said.recompute_every and mode != "none":
            return {"recompute": "full", "recompute_layers": -(-len(model.layers) // (said.pp * said.recompute_every))}
        if mode != "selective":
            return {"recompute": mode}
        if said.recompute_modules:
            names = {"norm": "layernorm", "act": "moe_act" if model.experts else "activation"}
            return {"recompute": "+".join(names.get(one, one) for one in said.recompute_modules.split(","))}
        return {"recompute": self._operations() if self.trainer.zero > 1 else mode}

    def _operations(self) -> str:
        """What a trainer repeats that chooses operations: no list of what is saved has scaled products (fp8)."""
        if self.trainer.saves_products:
            return OPERATIONS
        return f"{OPERATIONS}+{'matmul' if self.result.number_format == 'fp8' else 'second_matmul'}"

    def fitting(self, found: Estimate, recipe: dict[str, Any]) -> Estimate:
        """Return the estimate with the least recomputation that fits: the run did fit, whatever it does not say."""
        setting = found.setting
        for mode in () if found.memory.fits else _HARDER:
            again = estimate(setting.model, setting.plan, setting.system, **{**recipe, "recompute": mode})
            if again.memory.fits:
                self.assumed.append(f"recompute_mode is not stated: {mode}, the least that fits")
                return again
        return found
