"""What makes computing slow?"""

from __future__ import annotations

from dataclasses import dataclass

from commsim.stragglers.effects import Effect, Episodes, Target
from commsim.stragglers.kinds.straggler import Effects, Straggler, one_way, positive, some
from commsim.stragglers.laws import Constant, Lognormal
from commsim.units import Duration


@dataclass(frozen=True)
class Variation(Straggler):
    """No two GPUs are alike: silicon, clocks, temperature. `sigma` is that of the logarithm of their time.

    0.017 to 0.028 for matmul-bound, 0.0004 for memory-bound work (blox-pal: 2,075 pairs of GPU and application).
    """

    sigma: float = 0.02

    @property
    def effects(self) -> Effects:
        """A factor of each rank, for the job."""
        return (Effect("compute", "job", Lognormal(self.sigma)),)


@dataclass(frozen=True)
class Jitter(Straggler):
    """No two runs of an operation are alike. It is that of a tensor group, as traces show it.

    0.013 to 0.022 for the pass of a micro-batch in healthy jobs (ByteDance StragglerAnalysis, traces AR and ST).
    """

    sigma: float = 0.015

    @property
    def effects(self) -> Effects:
        """A factor of each operation of each group."""
        return (Effect("compute", "operation", Lognormal(self.sigma), Target("group")),)


@dataclass(frozen=True)
class SharedJitter(Straggler):
    """No two steps are alike, for all ranks at once: it moves the step and makes no straggler.

    0.0055 to 0.026 (ByteDance StragglerAnalysis).
    """

    sigma: float = 0.01

    @property
    def effects(self) -> Effects:
        """A factor of each step."""
        return (Effect("compute", "step", Lognormal(self.sigma), Target("all")),)


@dataclass(frozen=True)
class SlowRank(Straggler):
    """A GPU is slower than the others: these `ranks`, so many at random (`count`), or each with a `chance`.

    Without any of them one rank is. MegaScale: 10 % slower on 0.5 % of the machines.
    """

    factor: float = 1.1
    chance: float | None = None
    count: int | None = None
    ranks: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a factor that is none, and more than one way to say who; InputError."""
        positive(self, "factor")
        one_way(self, "chance", "count", "ranks")

    @property
    def effects(self) -> Effects:
        """A factor of some ranks, for the job."""
        return (some("compute", Constant(self.factor), self.chance, Target("rank", self.ranks, self.count)),)


@dataclass(frozen=True)
class Throttling(Straggler):
    """A GPU is too hot for its clock, now and then.

    20 % slow for 10 minutes, 2 of 392 runs of 80 minutes on 4 GPUs (Greyhound, ATC 2025).
    """

    factor: float = 1.2
    per_hour: float = 2 / (392 * 80 / 60 * 4)
    lasting: Duration = 600.0

    def __post_init__(self) -> None:
        """Refuse a factor that is none; InputError."""
        positive(self, "factor")

    @property
    def effects(self) -> Effects:
        """A factor of each rank, for an episode."""
        law = Episodes(self.per_hour, self.lasting).of(Constant(self.factor))
        return (Effect("compute", "episode", law),)


@dataclass(frozen=True)
class LastStage(Straggler):
    """The last stage computes the loss besides, and nobody gave it fewer layers.

    2.07 times as long forward and 1.41 backward in ByteDance's job ST, before it was tuned (OSDI 2025). Estimates know
    the loss already: this is for what they do not know.
    """

    forward: float = 2.07
    backward: float = 1.41

    def __post_init__(self) -> None:
        """Refuse factors that are none; InputError."""
        positive(self, "forward")
        positive(self, "backward")

    @property
    def effects(self) -> Effects:
        """A factor of each pass of the last stage, for the job."""
        last = Target("stage", (-1,))
        return tuple(
            Effect("compute", "job", Constant(factor), last, passes=(name,))
            for name, factor in (("forward", self.forward), ("backward", self.backward))
        )
