"""What comes once a step, before and after the micro-batches?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from commsim.training.overlap import exposed

if TYPE_CHECKING:
    from commsim.training.chunks import Chunks
    from commsim.training.memory import Owned
    from commsim.training.recipe import Recipe
    from commsim.training.sync import Sync

Floats = NDArray[np.float64]
ADAM_BYTES = 24.0
"""Bytes that Adam reads and writes for each weight, beside its gradient and the weight itself: an fp32 master copy and
two fp32 moments (Rajbhandari et al. 2020, section 3.1)."""


@dataclass(frozen=True, eq=False)
class Once:
    """What comes once a step, s: before the first stage begins [plan], after each stage's last backward [stage, plan].

    The latter are what data parallelism exposes, what the ends say to each other, and the optimizer.
    """

    before: Floats
    data: Floats
    ends: Floats
    optimizer: Floats

    @property
    def after(self) -> Floats:
        """Everything that follows the last backward pass, [stage, plan]."""
        return self.data + self.ends + self.optimizer


def once(chunks: Chunks, sync: Sync, cover: Floats, optimizer: Floats) -> Once:
    """Return what comes once a step; `optimizer`[stage, plan] is its update.

    Data parallelism hides behind one micro-batch's pass through the stage, the `cover`[pass, stage, plan]; the weights
    of the first piece, and the gradients of the last, cannot.
    """
    said = chunks.by_stage(sync.values[4:9])
    whole, pieces = said[:3], said[3:]
    data = np.maximum(exposed(whole[:2], cover), whole[:2] / np.maximum(pieces, 1))
    return Once(data[0, 0], data[1], whole[2], optimizer)


def update(recipe: Recipe, owned: Owned, memory: float) -> Floats:
    """Return the time of the optimizer's update on each stage, [stage, plan] in s, at so many B/s: all memory-bound.

    Gradients are set to zero where they are held, read for their norm and by Adam where they are owned.
    """
    each = ADAM_BYTES + 2 * recipe.gradient_bytes + recipe.weight_bytes
    return np.asarray((owned["gradients"] * recipe.gradient_bytes + owned["optimizer"] * each) / memory)
