"""What does one rank keep in memory, and does it fit?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from commsim.training.pipeline import in_flight

if TYPE_CHECKING:
    from commsim.training.chunks import Chunks
    from commsim.training.operations import Work
    from commsim.training.pipeline import Program
    from commsim.training.setting import Setting

OPTIMIZER_BYTES = 12.0
"""Adam in mixed precision: fp32 master weight and two fp32 moments (Rajbhandari et al. 2020, section 3.1)."""
CONTEXT_BYTES = 2.5e9
"""CUDA context, cuBLAS workspace and NCCL's buffers of a training process; estimated, range 1.5 to 4 GB."""
FRAGMENTATION = 0.04
"""Share of the activations that the caching allocator cannot use; estimated, range 0 to 0.1."""


@dataclass(frozen=True)
class Memory:
    """Bytes on the fullest rank, by what they are."""

    weights: float
    gradients: float
    optimizer: float
    activations: float
    other: float
    capacity: float

    @property
    def total(self) -> float:
        """All of it."""
        return self.weights + self.gradients + self.optimizer + self.activations + self.other

    @property
    def fits(self) -> bool:
        """Whether it is less than the accelerator has."""
        return self.total <= self.capacity


def weights_of(setting: Setting, chunks: Chunks) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return how many weights one rank of each stage holds: shared[stage] and of experts[stage]."""
    plan = setting.plan
    by_kind = np.array([setting.weights(kind) for kind in setting.model.kinds])
    by_chunk = chunks.counts @ by_kind
    for chunk, end in zip((0, -1), setting.ends):
        by_chunk[chunk] += (float(end.weights), float(end.expert_weights))
    if setting.model.tied_embeddings and plan.pipeline > 1:
        by_chunk[-1, 0] += float(setting.ends[0].weights)
    by_stage = by_chunk.reshape(plan.virtual, plan.pipeline, 2).sum(axis=0)
    return by_stage[:, 0], by_stage[:, 1]


def memory(setting: Setting, chunks: Chunks, program: Program) -> Memory:
    """Return the memory of the fullest rank.

    ZeRO shards (Rajbhandari et al. 2020, figure 1): stage 1 the optimizer, 2 the gradients as well, 3 the weights as well.
    Activations are those of the micro-batches in flight on the stage (`pipeline.in_flight`).
    """
    plan, recipe = setting.plan, setting.recipe
    held = weights_of(setting, chunks)
    shards = [max(1, plan.axis_shard(group)) for group in ("data", "expert data")]
    sizes = {"weights": recipe.weight_bytes, "gradients": recipe.gradient_bytes, "optimizer": OPTIMIZER_BYTES}
    sharded_from = {"weights": 3, "gradients": 2, "optimizer": 1}
    parts = {
        name: sum(w * size / (shard if plan.zero >= sharded_from[name] else 1) for w, shard in zip(held, shards))
        for name, size in sizes.items()
    }
    kept = _kept(setting, chunks) * in_flight(program)
    kept[-1] += _end_bytes(setting.ends[1])
    kept *= 1 + FRAGMENTATION
    stage = int(np.argmax(sum(parts.values()) + kept))
    return Memory(
        **{name: float(part[stage]) for name, part in parts.items()},
        activations=float(kept[stage]),
        other=CONTEXT_BYTES,
        capacity=float(setting.system.accelerator.memory),
    )


def _kept(setting: Setting, chunks: Chunks) -> NDArray[np.float64]:
    """Bytes of one chunk's activations of one micro-batch, mean over the chunks of each stage."""
    plan, recipe = setting.plan, setting.recipe
    by_kind = np.array([float(layer.kept(recipe.recomputed)) for layer in setting.layers.values()])
    by_chunk = chunks.counts @ by_kind
    mean: NDArray[np.float64] = by_chunk.reshape(plan.virtual, plan.pipeline).mean(axis=0)
    return mean


def _end_bytes(end: Work) -> float:
    """The last stage keeps logits and their kin of one micro-batch."""
    return float(end.kept())
