"""What does one rank keep in memory, and does it fit?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from commsim.training.axes import Data, Pipeline
from commsim.training.pipeline.schedules import FORWARD

if TYPE_CHECKING:
    from commsim.training.chunks import Chunks
    from commsim.training.pipeline import Program
    from commsim.training.setting import Setting

Floats = NDArray[np.float64]
OPTIMIZER_BYTES = 12.0
"""Adam in mixed precision: fp32 master weight and two fp32 moments (Rajbhandari et al. 2020, section 3.1)."""
CONTEXT_BYTES = 1.2e9
"""CUDA context, code and workspaces of the kernels; estimated, range 0.6 to 2 GB."""
GROUP_BYTES = 0.23e9
"""NCCL's buffers for one group of ranks: 24 channels of 9.4 MB, which is 4 MiB for Simple, 4.9 MB for LL128 and 0.5 MiB
for LL; the number of channels is estimated, range 8 to 32."""
FRAGMENTATION = 0.04
"""Share of the activations that the caching allocator cannot use; estimated, range 0 to 0.1."""
SHARDED_FROM = {"weights": 3, "gradients": 2, "optimizer": 1}
"""The stage of ZeRO from which on each is sharded (Rajbhandari et al. 2020, figure 1)."""


@dataclass(frozen=True)
class Memory:
    """Bytes on the fullest rank, which is on pipeline stage `stage`, by what they are.

    `other` are the buffers of communication, weights that are gathered for a while, and the process itself.
    """

    weights: float
    gradients: float
    optimizer: float
    activations: float
    other: float
    capacity: float
    stage: int = 0

    @property
    def total(self) -> float:
        """All of it."""
        return self.weights + self.gradients + self.optimizer + self.activations + self.other

    @property
    def fits(self) -> bool:
        """Whether it is less than the accelerator has."""
        return self.total <= self.capacity


def memory(setting: Setting, chunks: Chunks, program: Program) -> Memory:
    """Return the memory of the fullest rank, when the chunks run by that program."""
    recipe = setting.recipe
    sizes = {"weights": recipe.weight_bytes, "gradients": recipe.gradient_bytes, "optimizer": OPTIMIZER_BYTES}
    parts = {name: held * sizes[name] for name, held in owned(setting).items()}
    parts["activations"] = activations(chunks, program) * (1 + FRAGMENTATION)
    stage = int(np.argmax(sum(parts.values())))
    return Memory(
        **{name: float(part[stage]) for name, part in parts.items()},
        other=_buffers(setting) + CONTEXT_BYTES,
        capacity=float(setting.system.accelerator.memory),
        stage=stage,
    )


def owned(setting: Setting) -> dict[str, Floats]:
    """Return of how many weights a rank of each stage [stage] holds the value, the gradient, the optimizer's state."""
    chunks, plan = setting.chunks, setting.plan
    works = [piece.work for piece in chunks.pieces]
    each = np.array([[float(work.weights), float(work.expert_weights)] for work in works])
    held = chunks.of_stages((chunks.counts @ each).T)
    shards = np.array([[plan.layout(f"{group} shard").size] for group in ("data", "expert data")])
    return {
        name: (held / shards if plan.axis(Data).shards(stage) else held).sum(axis=0)
        for name, stage in SHARDED_FROM.items()
    }


def activations(chunks: Chunks, program: Program) -> Floats:
    """Return the most bytes of activations that a rank of each stage [stage] holds at a time.

    Those of a chunk and micro-batch live from their forward to their last operation; while a piece is computed again,
    all its activations are there.
    """
    made, freed, chunk = _lives(program)
    kept = chunks.counts @ np.array([piece.kept for piece in chunks.pieces])
    most = (kept[chunk] * (made - freed)).cumsum(axis=1).max(axis=1)
    working = (chunks.counts > 0) * np.array([piece.working for piece in chunks.pieces])
    found: Floats = most + working.max(axis=1).reshape(-1, chunks.stages).max(axis=0)
    return found


@lru_cache(maxsize=128)
def _lives(program: Program) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Whether each operation [stage, turn] makes activations, whether it frees them, and on which chunk."""
    kind, chunk, _ = np.unravel_index(program.order, program.dims)
    return (kind == FORWARD).astype(np.intp), (kind == program.dims[0] - 1).astype(np.intp), chunk


def _buffers(setting: Setting) -> float:
    """What communication needs besides: NCCL's buffers for each group, the largest tensor under way of each sort."""
    traffic = [one for piece in setting.chunks.pieces for one in setting.traffic(piece)]
    if setting.plan.pipeline > 1:
        traffic.append(setting.plan.axis(Pipeline).message(setting))
    largest: dict[tuple[str, str], float] = {}
    for one in traffic:
        key = one.group, one.op.name
        largest[key] = max(largest.get(key, 0.0), one.size * one.held)
    return sum(largest.values()) + GROUP_BYTES * len({one.group for one in traffic})
