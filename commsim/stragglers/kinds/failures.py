"""What does a job lose that has to start again?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from commsim.errors import InputError
from commsim.stragglers.kinds.straggler import Effects, Straggler, not_negative
from commsim.stragglers.maxima import hit_at_all
from commsim.units import Seconds


@dataclass(frozen=True)
class Failures(Straggler):
    """GPUs fail, and the job goes back to its last checkpoint.

    419 unplanned interruptions in 54 days of 16,384 H100 (Llama 3, section 3.3.4). `checkpoint` s lie between two
    checkpoints, `restart` s pass until the job runs again.
    """

    restart: Seconds
    checkpoint: Seconds
    per_gpu_hour: float = 419 / (54 * 24 * 16_384)

    def __post_init__(self) -> None:
        """Refuse times and rates that are none; InputError."""
        for name in ("restart", "checkpoint", "per_gpu_hour"):
            not_negative(self, name)

    @property
    def effects(self) -> Effects:
        """None on a step that is done."""
        return ()

    def lost(self, gpus: int) -> float:
        """Return the time lost, in parts of the time that counts.

        Each failure costs a restart and half the work between two checkpoints (Daly 2006). InputError when nothing is
        left.
        """
        per_second = self.per_gpu_hour * gpus / 3600
        left = 1 - per_second * (self.restart + self.checkpoint / 2)
        if left <= 0:
            raise InputError("failures: gpus", gpus, "so many fail before the job is back; fewer belong here")
        return 1 / left - 1

    def chance(self, gpus: int, seconds: float) -> float:
        """Return the chance that any of the GPUs fails within so many seconds."""
        return hit_at_all(-float(np.expm1(-self.per_gpu_hour * seconds / 3600)), gpus)
