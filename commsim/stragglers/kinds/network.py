"""What makes communication slow?"""

from __future__ import annotations

from dataclasses import dataclass, field

from commsim.stragglers.effects import Effect, Episodes, Target
from commsim.stragglers.kinds.straggler import Effects, Straggler, not_negative, one_way, positive, some
from commsim.stragglers.laws import Constant, Law, Uniform
from commsim.stragglers.occupancy import loads
from commsim.units import Duration


@dataclass(frozen=True)
class SlowLink(Straggler):
    """A link between pipeline stages is slow: messages take `factor` times as long, and `delay` more.

    These `links` (numbered stage first, then replica), so many at random, or each with a `chance`; else one.
    """

    factor: float = 1.0
    delay: Duration = 0.0
    chance: float | None = None
    count: int | None = None
    links: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a factor or a delay that is none, and more than one way to say which; InputError."""
        positive(self, "factor")
        not_negative(self, "delay")
        one_way(self, "chance", "count", "links")

    @property
    def effects(self) -> Effects:
        """A factor of some links and seconds more, for the job."""
        target = Target("link", self.links, self.count)
        found = []
        if self.factor != 1:
            found.append(some("bandwidth", Constant(self.factor), self.chance, target))
        if self.delay:
            found.append(some("latency", Constant(self.delay), self.chance, target, "s"))
        return tuple(found)


@dataclass(frozen=True)
class SlowNetwork(Straggler):
    """A NIC, or the way to it, is slow: all that its group says takes `factor` times as long."""

    factor: float = 2.0
    chance: float | None = None
    count: int | None = None
    ranks: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a factor that is none, and more than one way to say who; InputError."""
        positive(self, "factor")
        one_way(self, "chance", "count", "ranks")

    @property
    def effects(self) -> Effects:
        """A factor of what the groups of some ranks say, for the job."""
        return (some("bandwidth", Constant(self.factor), self.chance, Target("rank", self.ranks, self.count)),)


@dataclass(frozen=True)
class FlappingLink(Straggler):
    """Links between stages go down for `outage` s and come back, each so many times an hour."""

    outage: Duration
    per_hour: float

    def __post_init__(self) -> None:
        """Refuse an outage or a rate that is none; InputError."""
        positive(self, "outage")
        not_negative(self, "per_hour")

    @property
    def effects(self) -> Effects:
        """Seconds until the link is back, of the message that finds it down."""
        law = Episodes(self.per_hour, self.outage).of(Uniform(0.0, self.outage), 0.0)
        return (Effect("latency", "operation", law, Target("link"), "s"),)


@dataclass(frozen=True)
class Collisions(Straggler):
    """Flows of a group are hashed on to paths (ECMP), and the fullest path sets the time of what the group says."""

    flows: int
    paths: int

    @property
    def effects(self) -> Effects:
        """The load of the fullest path over the fair one, of each group, for the job: balls in bins, exact."""
        return (Effect("bandwidth", "job", loads(self.flows, self.paths), Target("group")),)


@dataclass(frozen=True)
class Congestion(Straggler):
    """Others on the same network take part of it, now and then.

    In a shared cluster 0.1 times an hour, 24 minutes on average, down to 0.5 to 0.7 of the speed, for jobs of four
    nodes (Greyhound, ATC 2025, table 1).
    """

    per_hour: float = 0.1
    lasting: Duration = 24 * 60.0
    factor: Law = field(default_factory=lambda: Uniform(1 / 0.7, 1 / 0.5))

    @property
    def effects(self) -> Effects:
        """A factor of all communication, for an episode: on what groups say and on the links between stages."""
        law = Episodes(self.per_hour, self.lasting).of(self.factor)
        return (Effect("bandwidth", "episode", law, Target("all")),)
