"""What comes once a step, before and after the micro-batches?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from commsim.training.memory import owned
from commsim.training.overlap import exposed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commsim.training.axes import When
    from commsim.training.passes import Machine, Said
    from commsim.training.setting import Setting
    from commsim.training.stages import Stages

Floats = NDArray[np.float64]
ADAM_BYTES = 24.0
"""Bytes that Adam reads and writes for each weight, beside its gradient and the weight itself: an fp32 master copy and
two fp32 moments (Rajbhandari et al. 2020, section 3.1)."""


@dataclass(frozen=True, eq=False)
class Once:
    """What comes once a step, s: before the first stage begins, and after the last backward pass of each stage [stage].

    The latter are what data parallelism exposes, what the ends say to each other, and the optimizer.
    """

    before: float
    data: Floats
    ends: Floats
    optimizer: Floats

    @property
    def after(self) -> Floats:
        """Everything that follows the last backward pass, [stage]."""
        return self.data + self.ends + self.optimizer


def once(setting: Setting, machine: Machine, said: Sequence[Sequence[Said]], passes: Stages) -> Once:
    """Return what comes once a step: `said` by each piece, behind the `passes` of one micro-batch."""
    first, last = (_data(setting, said, passes, which) for which in (0, 1))
    ends = _seconds(setting, said, "step")
    return Once(float(first[0]), last, ends, _optimizer(setting, machine))


def _data(setting: Setting, said: Sequence[Sequence[Said]], passes: Stages, which: int) -> Floats:
    """What data parallelism exposes [stage] around the first forward (0) or after the last backward pass (1).

    It hides behind one micro-batch's pass through the stage; the weights of the first piece, and the gradients of the
    last, cannot.
    """
    chunks, when = setting.chunks, _WHEN[which]
    whole = _seconds(setting, said, when)
    speak = np.array([any(one.traffic.when == when for one in spoken) for spoken in said])
    pieces = chunks.of_stages(chunks.counts @ speak)
    cover = chunks.of_stages(passes.seconds[which]) * setting.recipe.overlap_data
    found: Floats = np.maximum(exposed(whole, cover), whole / np.maximum(pieces, 1))
    return found


_WHEN: tuple[When, When] = ("first forward", "last backward")


def _seconds(setting: Setting, said: Sequence[Sequence[Said]], when: When) -> Floats:
    """The time of everything that the pieces of each stage say then, [stage]."""
    each = np.array([sum(one.seconds for one in spoken if one.traffic.when == when) for spoken in said])
    return setting.chunks.of_stages(setting.chunks.counts @ each)


def _optimizer(setting: Setting, machine: Machine) -> Floats:
    """The time of the update on each stage, s: all memory-bound.

    Gradients are set to zero where they are held, read for their norm and by Adam where they are owned.
    """
    recipe, mine = setting.recipe, owned(setting)
    update = ADAM_BYTES + 2 * recipe.gradient_bytes + recipe.weight_bytes
    moved = mine["gradients"] * recipe.gradient_bytes + mine["optimizer"] * update
    return np.asarray(moved / machine.kernels.memory)
