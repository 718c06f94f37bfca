"""Which program does the pipeline of a plan run, and what is in flight meanwhile?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from commsim.training.pipeline.compiling import compiled
from commsim.training.pipeline.periods import WHOLE, fewer
from commsim.training.pipeline.schedules import FORWARD, SCHEDULES, Shape

if TYPE_CHECKING:
    from commsim.training.pipeline.program import Program

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Course:
    """A schedule with its shape and its way to communicate; it is compiled only when it is solved.

    It runs `times` times, one after the other: a lone stage repeats the program of one micro-batch.
    """

    schedule: str
    stages: int
    microbatches: int
    virtual: int = 1
    communication: str = "asynchronous"
    times: int = 1

    @cached_property
    def program(self) -> Program:
        """What is solved."""
        return compiled(self.schedule, self.stages, self.microbatches, self.virtual, communication=self.communication)

    @property
    def free(self) -> Course:
        """The same, but messages occupy nobody."""
        return replace(self, communication="asynchronous")

    @property
    def peaks(self) -> tuple[Ints, ...]:
        """For each stage [peak, turn]: how many micro-batches of each of its chunks can be in flight at once."""
        return _peaks(self.schedule, Shape(self.stages, self.microbatches, self.virtual))


@lru_cache(maxsize=4096)
def _peaks(schedule: str, shape: Shape) -> tuple[Ints, ...]:
    few = fewer(schedule, shape)
    order = SCHEDULES[schedule](few)
    kind, rest = np.divmod(order, few.chunks * few.microbatches)
    turn = rest // (few.microbatches * few.stages)
    made = (kind == FORWARD).astype(np.int32) - (kind == kind.max())
    peaks = tuple(_highest(*both, few.virtual) for both in zip(made, turn))
    every = schedule in WHOLE
    return tuple(peak * shape.microbatches for peak in peaks) if every else peaks


def _highest(made: NDArray[np.int32], turn: Ints, virtual: int) -> Ints:
    """The counts [peak, turn] after which nothing is made before something is freed, without those below others."""
    if virtual == 1:
        return np.full((1, 1), made.cumsum().max())
    last = np.flatnonzero((made > 0) & (np.append(made[1:], -1) < 0))
    counts = np.stack([np.where(turn == one, made, 0).cumsum()[last] for one in range(virtual)], axis=1)
    distinct = np.unique(np.vstack([counts, np.zeros_like(counts, shape=(1, virtual))]), axis=0)
    below = (distinct[:, None] <= distinct[None]).all(axis=2).sum(axis=1) > 1  # of some other, as all are distinct
    found: Ints = distinct[~below]
    return found
