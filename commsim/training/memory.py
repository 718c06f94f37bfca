"""What does one rank keep in memory, and does it fit?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from commsim.training.sync import SHARDED_FROM

if TYPE_CHECKING:
    from collections.abc import Iterable

    from commsim.training.axes import Traffic
    from commsim.training.chunks import Chunks
    from commsim.training.operations import Array
    from commsim.training.pipeline.course import Course
    from commsim.training.profile import Profile
    from commsim.training.recipe import Recipe
    from commsim.training.sync import Sync

Floats = NDArray[np.float64]
Owned = dict[str, Floats]
OPTIMIZER_BYTES = 12.0
"""Adam in mixed precision: fp32 master weight and two fp32 moments (Rajbhandari et al. 2020, section 3.1)."""
CONTEXT_BYTES = 2.0e9
"""CUDA context, code and workspaces of the kernels; estimated, range 0.6 to 4 GB."""
GROUP_BYTES = 0.23e9
"""NCCL's buffers for one group of ranks: 24 channels of 9.4 MB, which is 4 MiB for Simple, 4.9 MB for LL128 and 0.5 MiB
for LL; the number of channels is estimated, range 8 to 32."""
FRAGMENTATION = {True: 0.04, False: 0.2}
"""What the caching allocator holds beyond the activations, as a share of them, with segments that expand (PyTorch 2.1)
and without; estimated, ranges 0 to 0.1 and 0.1 to 0.3 (BLOOM's ranks held 1.2 times what activations grew)."""


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


@dataclass(frozen=True, eq=False)
class Held:
    """What the ranks of each stage hold: `parts` by name [stage, plan], and `other` [plan], the same on all; B."""

    parts: dict[str, Floats]
    other: Floats

    @property
    def fullest(self) -> NDArray[np.intp]:
        """The stage that holds most, [plan]."""
        found: NDArray[np.intp] = np.argmax(self._parts, axis=0)
        return found

    @property
    def total(self) -> Floats:
        """All that the fullest rank holds, [plan]."""
        found: Floats = self._parts.max(axis=0) + self.other
        return found

    @property
    def _parts(self) -> Floats:
        """All parts together, [stage, plan]."""
        return sum(self.parts.values(), np.zeros(1))

    def memory(self, plan: int, capacity: float) -> Memory:
        """Return the memory of one of the plans on an accelerator that has so much."""
        stage = int(self.fullest[plan])
        parts = {name: float(part[stage, plan]) for name, part in self.parts.items()}
        return Memory(**parts, other=float(self.other[plan]), capacity=capacity, stage=stage)


def held(owned: Owned, recipe: Recipe, activations: Floats, buffers: Floats) -> Held:
    """Return what the ranks hold: the weights they own, `activations`[stage, plan] and `buffers`[plan], B."""
    sizes = {"weights": recipe.weight_bytes, "gradients": recipe.gradient_bytes, "optimizer": OPTIMIZER_BYTES}
    parts = {name: of * sizes[name] for name, of in owned.items()}
    reserved = activations * (1 + FRAGMENTATION[recipe.expandable_segments])
    return Held(parts | {"activations": reserved}, buffers + CONTEXT_BYTES)


def owned(chunks: Chunks, sync: Sync) -> Owned:
    """Return of how many weights a rank holds the value, the gradient, the optimizer's state, [stage, plan] each."""
    here = chunks.by_stage(sync.weights)
    return {name: (here * share[:, None]).sum(axis=0) for name, share in zip(SHARDED_FROM, sync.shares)}


def activations(course: Course, chunks: Chunks, profile: Profile) -> Floats:
    """Return the most bytes of activations that a rank of each stage holds at a time, [stage, plan].

    Those of a chunk and micro-batch live from their forward to their last operation; while the backward pass of a piece
    runs, all its activations are there, and gradients.
    """
    kept = chunks.each(chunks.kinds.astype(float) @ profile.kept)
    by_turn = kept.reshape(-1, chunks.stages, kept.shape[-1]).swapaxes(0, 1)
    most = np.array([(peaks @ here).max(axis=0) for peaks, here in zip(course.peaks, by_turn)])
    present: NDArray[np.bool_] = np.any(chunks.counts.reshape(-1, chunks.stages, len(chunks.counts[0])), axis=0)
    found: Floats = most + (present[:, :, None] * profile.working).max(axis=1)
    return found


def buffers(traffic: Iterable[Traffic]) -> Array:
    """Return what communication needs, B: NCCL's buffers for each group, the largest tensor under way of each sort."""
    said = list(traffic)
    largest: dict[tuple[str, str], Array] = {}
    for one in said:
        key = one.group, one.op.name
        largest[key] = np.maximum(largest.get(key, 0.0), one.size * one.held)
    return sum(largest.values(), GROUP_BYTES * len({one.group for one in said}))
