"""What is a measurement of a collective?

Sizes, algorithm and bus bandwidth mean what they mean in nccl-tests (its doc/PERFORMANCE.md), whatever tool measured.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from commsim.collectives.kinds import COLLECTIVES, Collective
from commsim.errors import InputError
from commsim.units import BytesPerSecond, Seconds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

Samples = tuple[tuple[Seconds, ...], ...]
"""Seconds by [rank][iteration]."""
Candidate = tuple[Collective, int | None]
"""An operation that a table may show, with its ranks where they are known."""


SHORTEST = 1e-12
"""Seconds: less is no time of anything."""


@dataclass(frozen=True)
class Spread:
    """How the iterations of one row differ: seconds, and the coefficient of variation as a share."""

    fastest: Seconds
    slowest: Seconds
    p99: Seconds
    variation: float


@dataclass(frozen=True)
class Timing:
    """How long one operation took, out of place or in place; bandwidths are those that the tool printed."""

    seconds: Seconds
    algbw: BytesPerSecond | None = None
    busbw: BytesPerSecond | None = None
    wrong: int | None = None
    spread: Spread | None = None
    samples: Samples = ()
    arrivals: Samples = ()

    def __post_init__(self) -> None:
        """Refuse a time that nothing can take."""
        if not (math.isfinite(self.seconds) and self.seconds >= SHORTEST):
            raise InputError(
                "time of an operation", self.seconds, "a finite number of seconds, no less than 1 ps, belongs here"
            )


@dataclass(frozen=True)
class Row:
    """One size of a measurement: bytes as nccl-tests counts them (0 happens), and elements as it prints them."""

    size: int
    count: int
    out_of_place: Timing | None = None
    in_place: Timing | None = None

    @property
    def timing(self) -> Timing:
        """Return the time out of place, or in place where there is no other."""
        found = self.out_of_place or self.in_place
        if found is None:
            raise InputError(f"row of {self.size} B", None, "a time belongs here")
        return found


@dataclass(frozen=True)
class Host:
    """One machine of a run, known by its number only: its ranks, and what its GPUs call themselves."""

    ranks: tuple[int, ...]
    accelerator: str = ""


@dataclass(frozen=True)
class Nics:
    """What network ports a host has, as stated beside a measurement: bandwidth of one direction of one port."""

    per_node: int | None = None
    bandwidth: BytesPerSecond | None = None
    fabric: str | None = None


@dataclass(frozen=True)
class Measurement:
    """One table of a tool: one operation over many sizes, on one group of ranks.

    `candidates` are the operations that it may be: one where the tool says it or its columns leave no choice. `notes`
    say what was inferred or repaired, `problems` what makes the table doubtful: lost rows, wrong results, a run that
    died. A run that died before its first row has no rows. `accelerators` are the names that its GPUs give themselves,
    also where a shortened list of devices does not tell the hosts.
    """

    candidates: tuple[Candidate, ...]
    rows: tuple[Row, ...]
    dtype: str = ""
    redop: str = "none"
    root: int = -1
    nodes: int | None = None
    hosts: tuple[Host, ...] = ()
    accelerators: tuple[str, ...] = ()
    system: str = ""
    nics: Nics | None = None
    library: str = ""
    version: str = ""
    tool: str = ""
    tool_version: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    source: str = ""
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a group of no ranks."""
        for _, ranks in self.candidates:
            if ranks is not None and ranks < 1:
                raise InputError(self.source or "measurement", ranks, "at least one rank belongs here")

    @property
    def op(self) -> Collective:
        """Return the operation; InputError asks for it where the table leaves a choice or shows none that is known."""
        names = sorted({kind.name for kind, _ in self.candidates})
        if len(names) != 1:
            choice = " or ".join(names) if names else f"no operation of {', '.join(COLLECTIVES)}"
            raise InputError(self.source or "measurement", choice, "say which operation was measured: --op, or op=...")
        return COLLECTIVES[names[0]]

    @property
    def ranks(self) -> int:
        """Return the number of ranks; InputError asks for it where the table does not say it."""
        counts = {ranks for _, ranks in self.candidates}
        if len(counts) != 1 or None in counts:
            known = " or ".join(str(n) for n in sorted(n for n in counts if n)) or None
            raise InputError(self.source or "measurement", known, "say how many ranks took part: --ranks, or ranks=...")
        return next(n for n in counts if n is not None)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Return the bytes of each row, shape (rows,)."""
        return np.array([row.size for row in self.rows], dtype=np.int64)

    @property
    def seconds(self) -> NDArray[np.float64]:
        """Return the seconds of each row, shape (rows,): out of place, or in place where there is no other."""
        return np.array([row.timing.seconds for row in self.rows], dtype=np.float64)

    @property
    def in_place_seconds(self) -> NDArray[np.float64]:
        """Return the seconds of each row in place, shape (rows,); NaN where it was not measured."""
        return np.array([row.in_place.seconds if row.in_place else math.nan for row in self.rows], dtype=np.float64)

    @property
    def algbw(self) -> NDArray[np.float64]:
        """Return size / time, B/s, shape (rows,)."""
        return self.sizes / self.seconds

    @property
    def busbw(self) -> NDArray[np.float64]:
        """Return the bus bandwidth, B/s, shape (rows,); asks as `op` and `ranks` do."""
        return self.algbw * self.op.factor(self.ranks)

    def narrowed(self, op: Collective | None, ranks: int | None) -> Measurement:
        """Return this with what its reader was told; InputError where that contradicts what the table shows."""
        left = tuple(
            (kind, count or ranks)
            for kind, count in self.candidates
            if op in {None, kind} and (ranks is None or count in {None, ranks})
        )
        if self.candidates and not left:
            told = " on ".join(([op.name] if op else []) + ([f"{ranks} ranks"] if ranks else []))
            shown = " or ".join(f"{kind.name} on {count or '?'} ranks" for kind, count in self.candidates)
            raise InputError(self.source or "measurement", told, f"the table shows {shown}")
        return dataclasses.replace(self, candidates=left)
