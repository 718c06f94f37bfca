"""What are the rows of estimates: a step, its parts, what is said?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commsim.figures import at
from commsim.tables.ranges import between
from commsim.tables.records import Record, records
from commsim.training.estimate import Estimate
from commsim.training.passes import Said

if TYPE_CHECKING:
    from commsim.tables.ranges import Pair
    from commsim.training.memory import Memory
    from commsim.training.steps import Step


@records.register
def _said(one: Said) -> list[Record]:
    traffic, timed = one.traffic, records(one.timing)[0]
    timed.pop("range")
    place = {"axis": traffic.axis, "group": traffic.group, "layers": one.kind, "when": traffic.when}
    return [{**place, "hidden_behind": traffic.behind, "count": traffic.count, **timed}]


@records.register
def _estimate(estimate: Estimate) -> list[Record]:
    step = estimate.step
    return [
        {
            "step_time_s": estimate.step_time,
            "tokens_per_s_per_gpu": estimate.tokens_per_second_per_gpu,
            "mfu": estimate.mfu,
            "model_flops_per_gpu": estimate.model_flops_per_gpu,
            "memory_bytes": estimate.memory.total,
            "fits": estimate.memory.fits,
            "breakdown": {
                "compute_s": step.compute,
                "bubble_s": step.bubble,
                "exposed_s": dict(step.exposed),
                "optimizer_s": step.optimizer,
            },
            "assumptions": list(estimate.assumptions),
            "range": _estimate_range(estimate),
        }
    ]


def time_parts(step: Step) -> dict[str, float]:
    """Return what the time of a step goes to, s, under names for people."""
    exposed = {f"exposed: {axis}": seconds for axis, seconds in step.exposed.items()}
    return {"compute": step.compute, "pipeline bubble": step.bubble, **exposed, "optimizer": step.optimizer}


def memory_parts(memory: Memory) -> dict[str, float]:
    """Return what the memory of the fullest GPU holds, B, under names for people."""
    return {name: getattr(memory, name) for name in ("weights", "gradients", "optimizer", "activations", "other")}


def _estimate_range(estimate: Estimate) -> dict[str, Pair] | None:
    """Step time, throughput and MFU at both ends of the figures, each against the peak at that end."""
    if not estimate.range:
        return None
    setting, number_format = estimate.setting, estimate.setting.recipe.matmul_format
    peaks = [at(setting.system.accelerator.peak[number_format], corner) for corner in ("high", "low")]
    ends = [
        {
            "step_time_s": seconds,
            "tokens_per_s_per_gpu": setting.tokens_per_step / seconds / setting.system.gpus,
            "mfu": estimate.model_flops_per_gpu / seconds / peak,
        }
        for seconds, peak in zip(estimate.range, peaks)
    ]
    return between(*ends)
