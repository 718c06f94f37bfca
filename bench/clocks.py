"""What time is it on every rank? Offsets of their clocks, measured over the network that is measured."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench.team import Team
    from commsim.units import Seconds

NS = 1e-9
_PINGS = 8


@dataclass(frozen=True)
class Offsets:
    """How far each rank's clock is ahead of rank 0's, in ns, and how far that may be wrong, in seconds."""

    ahead: tuple[int, ...]
    uncertainty: Seconds

    def between(self, later: Offsets) -> Offsets:
        """Return the offsets in the middle of two measurements; what the clocks drifted meanwhile is uncertain."""
        middle = tuple((a + b) // 2 for a, b in zip(self.ahead, later.ahead))
        drift = max((abs(a - b) for a, b in zip(self.ahead, later.ahead)), default=0)
        return Offsets(middle, max(self.uncertainty, later.uncertainty) + drift / 2 * NS)


def clock() -> int:
    """Return this rank's time in ns: its zero means nothing, its differences do."""
    return time.monotonic_ns()


def offsets(team: Team) -> Offsets:
    """Return how far the clocks are apart.

    Rank 0 asks each rank for its time and takes that to be read in the middle of question and answer; the quickest of
    8 answers counts, and half of what it took is the uncertainty (Cristian 1989).
    """
    ahead, halves = [0], [0]
    for rank in range(1, team.size):
        if team.rank == 0:
            answers = [_asked(team, rank) for _ in range(_PINGS)]
            took, offset = min(answers)
            ahead.append(offset)
            halves.append(took // 2)
        elif team.rank == rank:
            for _ in range(_PINGS):
                team.receive(1, 0)
                team.send([clock()], 0)
    known = team.gathered([*ahead, *halves] if team.rank == 0 else [0] * 2 * team.size)[0]
    return Offsets(tuple(known[: team.size]), max(known[team.size :]) * NS)


def _asked(team: Team, rank: int) -> tuple[int, int]:
    """How long an answer took, and how far the rank's clock is ahead by it, in ns."""
    before = clock()
    team.send([0], rank)
    said = team.receive(1, rank)[0]
    after = clock()
    return after - before, said - (before + after) // 2
