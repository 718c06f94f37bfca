"""What holds processes up?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from commsim.errors import InputError
from commsim.stragglers.effects import Effect, Target, Unit
from commsim.stragglers.kinds.straggler import Effects, Straggler, not_negative, share
from commsim.stragglers.laws import Constant, Law, Rare
from commsim.units import Duration


@dataclass(frozen=True)
class OsNoise(Straggler):
    """The system interrupts each process `rate` times a second of work, for a time that follows a law.

    GPUs work on meanwhile: only what is bound by its launches sees it, a share `seen` of the work. 3,350 times a second
    and 5.2 us in the median on 200 Gb/s Azure nodes (De Sensi et al. 2022).
    """

    rate: float
    lasting: Law
    seen: float

    def __post_init__(self) -> None:
        """Refuse a rate that is negative and a share above 1; InputError."""
        not_negative(self, "rate")
        share(self, "seen")

    @property
    def effects(self) -> Effects:
        """Seconds of each operation of each group, as often as it is interrupted."""
        return (Effect("host", "operation", self.lasting, Target("group"), "s", rate=self.rate * self.seen),)


@dataclass(frozen=True)
class Pause(Straggler):
    """A process stops to collect garbage, once in `every` steps, for `seconds` or for a `share` of a step.

    Planned, all do so at once. 0.15 of a step every 70 steps fits what ByteDance gained by planning, 12.6 % on 128
    data ranks (OSDI 2025); a shorter pause, oftener, fits as well.
    """

    every: float = 70.0
    share: float = 0.15
    seconds: Duration | None = None
    planned: bool = False

    def __post_init__(self) -> None:
        """Refuse pauses oftener than each step, and times that are none; InputError."""
        if not 1 <= self.every < np.inf:
            raise InputError("pause: every", self.every, "a number of steps, 1 or more, belongs here")
        not_negative(self, "share" if self.seconds is None else "seconds")

    @property
    def effects(self) -> Effects:
        """Time added to one forward pass of a rank, by chance in each step."""
        lasting = self.share if self.seconds is None else self.seconds
        unit: Unit = "step" if self.seconds is None else "s"
        law = Rare(1 / self.every, Constant(lasting), 0.0)
        target = Target("all" if self.planned else "rank")
        return (Effect("host", "step", law, target, unit, ("forward",)),)


@dataclass(frozen=True)
class DataLoading(Straggler):
    """The first micro-batch of a pipeline comes late, by chance in each step."""

    lasting: Law
    chance: float = 1.0

    def __post_init__(self) -> None:
        """Refuse a chance that is none; InputError."""
        share(self, "chance")

    @property
    def effects(self) -> Effects:
        """Seconds before the first forward pass of each pipeline."""
        law = Rare(self.chance, self.lasting, 0.0)
        return (Effect("host", "step", law, Target("replica"), "s", ("forward",), "first"),)
