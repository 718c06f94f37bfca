"""What hides behind what, and what does hiding cost? Seconds may be arrays with one entry a plan."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from commsim.training.axes import Behind
    from commsim.training.operations import Array

CONTENTION = 0.4
"""What a second of hidden communication costs the compute that hides it, s: 16 to 24 of 132 multiprocessors run NCCL's
channels meanwhile (one channel is one multiprocessor), which share memory, power, and waves of tiles that no longer fit
with what they leave. Fitted on published step times, range 0.3 to 0.5."""
WITHIN: dict[Behind, tuple[Behind, ...]] = {
    "nothing": (),
    "columns": ("columns", "matmul", "pass"),
    "matmul": ("matmul", "pass"),
    "attention": ("attention", "pass"),
    "pass": ("pass",),
}
"""What is part of what: compute behind which one thing hides can hide nothing else, under any name."""


class Cover:
    """Compute that can hide communication: `left` says how much of each part of a pass hides nothing yet, s."""

    def __init__(self, parts: dict[Behind, Array]) -> None:
        """Take the seconds of each part (see `WITHIN`); what is not named is nothing."""
        self.left = parts

    def exposed(self, seconds: Array, behind: Behind) -> Array:
        """Return what communication adds to the pass, and use the cover up."""
        within = WITHIN[behind]
        cover = reduce(np.minimum, [self.left.get(part, 0.0) for part in within]) if within else 0.0
        for part in within:
            self.left[part] = self.left.get(part, 0.0) - np.minimum(seconds, cover)
        return exposed(seconds, cover)


def exposed(seconds: Array, cover: Array) -> Array:
    """Return what communication adds to the pass that hides it: what sticks out, and the contention of the rest."""
    hidden = np.minimum(seconds, cover)
    found: Array = seconds - hidden + CONTENTION * hidden
    return found
