"""Whom does a cause hit, where, for how long, and by how much?"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, get_args

from commsim.errors import InputError
from commsim.stragglers.laws import Law, Normal, Rare
from commsim.units import Seconds

if TYPE_CHECKING:
    from collections.abc import Iterator


Place = Literal["compute", "latency", "bandwidth", "host"]
Persistence = Literal["job", "episode", "step", "operation"]
Whom = Literal["rank", "group", "replica", "stage", "link", "all"]
Unit = Literal["factor", "s", "step"]
Moment = Literal["any", "first"]
NEVER = 1e-12
"""A chance that counts as none: a factor may be negative no oftener (normal laws with a mean of 7 deviations)."""


@dataclass(frozen=True)
class Target:
    """Whom a cause hits: every one of `each`, those of these numbers alone, or so many of them at random.

    rank: a GPU. group: the GPUs of one stage and replica, which wait for each other in every operation, numbered stage
    first, then replica. replica: one whole pipeline. stage: a stage of all pipelines (-1: the last). link: from a stage
    to the next, numbered as groups. all: everybody at once.
    """

    each: Whom = "rank"
    which: tuple[int, ...] = ()
    count: int | None = None

    def __post_init__(self) -> None:
        """Refuse what names nobody; InputError."""
        if self.each not in get_args(Whom):
            raise InputError("target", self.each, "no such target", among=get_args(Whom))
        if self.count is not None and (not isinstance(self.count, int) or self.count < 1):
            raise InputError(f"{self.each}: count", self.count, "a whole number of at least 1 belongs here")
        if self.count is not None and self.which:
            raise InputError(f"{self.each}: count", self.count, "either a count or numbers belong here, not both")

    @property
    def chosen(self) -> bool:
        """Whether only some are hit."""
        return bool(self.which) or self.count is not None


@dataclass(frozen=True)
class Effect:
    """One thing that a cause does: a law at a place, for a target, drawn anew with each job, step or operation.

    A factor multiplies the time of what it hits; seconds, or parts of a step, are added. place: `compute`, the
    `bandwidth` of what a group says, the `latency` of messages between stages, or the `host` (added where it waits).
    `rate`: it happens so many times in a second of work, instead of once. moment: what comes once a step comes with any
    micro-batch, or with the first.
    """

    place: Place
    persistence: Persistence
    law: Law
    target: Target = field(default_factory=Target)
    unit: Unit = "factor"
    passes: tuple[str, ...] = ("forward", "backward")
    moment: Moment = "any"
    rate: float = 0.0

    def __post_init__(self) -> None:
        """Refuse names that are none, and laws with negative values; InputError."""
        for name, given, known in (
            ("place", self.place, get_args(Place)),
            ("persistence", self.persistence, get_args(Persistence)),
            ("unit", self.unit, get_args(Unit)),
        ):
            if given not in known:
                raise InputError(f"cause: {name}", given, f"no such {name}", among=known)
        if self.law.support[0] < 0 and float(self.law.below(0.0)) > NEVER:
            better = "; a lognormal law has none" if isinstance(self.law, Normal) else ""
            raise InputError("cause: law", self.law, f"it may be negative, and no time can{better}")

        for expected in self._misfits():
            raise InputError("cause", f"{self.place}, {self.persistence}, {self.unit}", expected)

    def _misfits(self) -> Iterator[str]:
        """What does not go together, one sentence each."""
        if self.place == "bandwidth" and self.unit != "factor":
            yield "bandwidth takes a factor"
        if self.unit == "step" and (self.place == "latency" or self.persistence == "operation"):
            yield "parts of a step belong to what computes, once a step; give a factor or seconds"
        if self.target.each == "link" and self.place in {"compute", "host"}:
            yield "a link has a latency and a bandwidth"
        if self.rate and (self.persistence, self.unit) != ("operation", "s"):
            yield "a rate belongs to seconds of operations"

    @property
    def nothing(self) -> float:
        """What leaves things as they are: the factor 1, or no seconds."""
        return 1.0 if self.unit == "factor" else 0.0


@dataclass(frozen=True)
class Episodes:
    """Something that comes and goes: so many times an hour, for so many seconds on average."""

    per_hour: float
    lasting: Seconds

    def __post_init__(self) -> None:
        """Refuse what is no rate or no time; InputError."""
        for name, given in (("per_hour", self.per_hour), ("lasting", self.lasting)):
            if not 0 <= given < float("inf"):
                raise InputError(f"episodes: {name}", given, "a finite number, not negative, belongs here")

    @property
    def share(self) -> float:
        """The share of the time in which at least one episode lasts: 1 - e^-(rate x duration), M/G/infinity."""
        return -math.expm1(-self.per_hour / 3600 * self.lasting)

    def of(self, law: Law, otherwise: float = 1.0) -> Rare:
        """Return the law at a random moment: what it is in an episode, else `otherwise`."""
        return Rare(self.share, law, otherwise)
