"""What does a replayed trace say?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from commsim.units import show

if TYPE_CHECKING:
    from collections.abc import Mapping

    from commsim.units import Seconds

NO_CAUSE, UNKNOWN = "none", "not identifiable"
ONE_WORKER, LAST_STAGE, SEQUENCES = "one worker", "last stage", "sequence length"
COMMUNICATION, PAUSES = "communication", "garbage collection"


@dataclass(frozen=True)
class Worker:
    """A rank at its place: all ranks of a tensor group are one. `slowdown` is what it makes of the ideal step alone.

    None where a trace cannot tell.
    """

    rank: int
    stage: int
    replica: int
    slowdown: float | None


@dataclass(frozen=True)
class Finding:
    """A cause under its name, and the figures that speak for it."""

    cause: str
    evidence: tuple[str, ...]


@dataclass(frozen=True)
class Waiting:
    """How a rank met the others: mean seconds of work before, of waiting, and the share of meetings it came last to."""

    rank: int
    work: Seconds | None
    waits: Seconds
    last: float


@dataclass(frozen=True)
class Span:
    """When an operation began and ended in one step, as it was and as it would be, s from the start of the step."""

    op: str
    stage: int
    actual: tuple[Seconds, Seconds]
    ideal: tuple[Seconds, Seconds]


@dataclass(frozen=True, eq=False)
class Replay:
    """The steps of a trace as they were and as they would be if nobody were late; None where a trace cannot tell.

    Each `by_...` holds the slowdown of the ideal step if only those operations are as slow as they were. Ranks are
    those of the data axis where there are stages (see `workers` for each place). `shares` say which part of the time
    lost would be won by mending one thing alone: `M_W` the worst 3 % of the workers, `M_S` the last stage.
    `by_step` are the slowdowns of each step, `measured` what a step took by the clock, host and all. `transfers` are
    what communication takes once all are there; `timeline` is the median step of the slowest replica.
    """

    source: str
    finding: Finding
    actual: Seconds | None = None
    ideal: Seconds | None = None
    by_stage: Mapping[int, float] = field(default_factory=dict)
    by_rank: Mapping[int, float] = field(default_factory=dict)
    by_op: Mapping[str, float] = field(default_factory=dict)
    workers: tuple[Worker, ...] = ()
    worst: tuple[Worker, ...] = ()
    shares: Mapping[str, float] = field(default_factory=dict)
    by_step: tuple[float, ...] = ()
    measured: Seconds | None = None
    transfers: Mapping[str, Seconds] = field(default_factory=dict)
    waiting: tuple[Waiting, ...] = ()
    timeline: tuple[Span, ...] = ()
    repairs: tuple[str, ...] = ()

    @property
    def slowdown(self) -> float | None:
        """The actual step over the ideal one."""
        return self.actual / self.ideal if self.actual is not None and self.ideal else None

    def __str__(self) -> str:
        """The answer in a line or two."""
        known = self.actual is not None and self.ideal is not None and self.slowdown is not None
        times = [] if not known else [self._times()]
        return "\n".join([*times, f"cause: {self.finding.cause}", *self.finding.evidence])

    def _times(self) -> str:
        actual, ideal = show(self.actual or 0.0, "s", 4), show(self.ideal or 0.0, "s", 4)
        return f"{self.source}: a step takes {actual}, {ideal} if nobody were late: slowdown {self.slowdown or 0.0:.4f}"
