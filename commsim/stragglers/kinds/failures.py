"""What does a job lose that has to start again?"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from commsim.errors import InputError
from commsim.stragglers.kinds.straggler import Effects, Straggler, not_negative
from commsim.stragglers.maxima import hit_at_all
from commsim.units import Duration

LLAMA_3 = 419 / (54 * 24 * 16_384)
"""Interruptions that nobody planned, for each GPU and hour: 419 in 54 days of 16,384 H100 (Llama 3, section 3.3.4)."""
_USELESS = 0.01
"""A job that makes use of less of its time does not come to an end."""


@dataclass(frozen=True)
class Failures(Straggler):
    """GPUs fail, each `per_gpu_hour`, and the job goes back to its last checkpoint.

    `checkpoint` s of work lie between two checkpoints, or as many as cost least; one takes `writing` s, in which nobody
    works. `restart` s pass until the job runs again.
    """

    restart: Duration
    checkpoint: Duration | None = None
    per_gpu_hour: float = LLAMA_3
    writing: Duration = 0.0

    def __post_init__(self) -> None:
        """Refuse times and rates that are none, and intervals that nothing says; InputError."""
        for name in ("restart", "per_gpu_hour", "writing"):
            not_negative(self, name)
        if self.checkpoint is not None:
            not_negative(self, "checkpoint")
        if not self.checkpoint and not self.writing:
            expected = "the time between two, or the time of writing one, belongs here"
            raise InputError("failures: checkpoint", self.checkpoint, expected)

    @property
    def effects(self) -> Effects:
        """None on a step that is done."""
        return ()

    def between(self, gpus: int) -> float:
        """Return the mean time between two failures of a job on so many GPUs, s; infinite without any."""
        per_second = self.per_gpu_hour * gpus / 3600
        return 1 / per_second if per_second else math.inf

    def interval(self, gpus: int) -> float:
        """Return the work between two checkpoints, s: what is said, else what costs least (Daly 2006, equation 37)."""
        return self.checkpoint or best_interval(self.writing, self.between(gpus))

    def lost(self, gpus: int) -> float:
        """Return the time lost, in parts of the time that counts (Daly 2006: failures that are exponential).

        With M between failures, R to restart, d to write and t of work between checkpoints a job takes
        M e^(R/M) (e^((t + d)/M) - 1) / t of its work. InputError when nothing is left.
        """
        between, interval = self.between(gpus), self.interval(gpus)
        if between == math.inf:
            return self.writing / interval if interval < math.inf else 0.0
        exponent = (self.restart + interval + self.writing) / between
        if exponent < -math.log(_USELESS):
            whole = math.exp(self.restart / between) * math.expm1((interval + self.writing) / between)
            if whole * between / interval < 1 / _USELESS:
                return whole * between / interval - 1
        raise InputError("failures: gpus", gpus, "so many fail before the job is back; fewer belong here")

    def chance(self, gpus: int, seconds: float) -> float:
        """Return the chance that any of the GPUs fails within so many seconds."""
        return hit_at_all(-float(np.expm1(-self.per_gpu_hour * seconds / 3600)), gpus)


def best_interval(writing: float, between: float) -> float:
    """Return the work between two checkpoints that costs least, s (Daly 2006, equation 37).

    It begins with the square root of twice the time to write times the time between failures (Young 1974).
    """
    if between == math.inf:
        return math.inf
    if writing >= 2 * between:
        return between
    half = writing / (2 * between)
    return math.sqrt(2 * writing * between) * (1 + math.sqrt(half) / 3 + half / 9) - writing
