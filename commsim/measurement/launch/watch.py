"""Do the ranks get on, and who was where when they did not?"""

from __future__ import annotations

import signal
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from commsim.errors import CommsimError, InputError, LackError, PartialError
from commsim.measurement.launch.whereabouts import JOINING
from commsim.units import show

if TYPE_CHECKING:
    from collections.abc import Callable

    from commsim.measurement.launch.crew import Crew
    from commsim.measurement.launch.whereabouts import Whereabouts
    from commsim.units import Seconds

_POLL: Seconds = 0.05
_GRACE: Seconds = 3.0
"""How long the other ranks may take to say where they were when one has ended."""
_MARGIN: Seconds = 5.0
"""How much longer than the ranks themselves their watcher waits for one that hangs."""


@dataclass(frozen=True)
class End:
    """How one rank ended: where it was, how long it had been there, its exit code, and what it said last."""

    rank: int
    where: Whereabouts
    since: Seconds
    code: int | None
    said: str

    @property
    def how(self) -> str:
        """How it ended, in a few words."""
        if self.code is None:
            return "hung"
        if self.code < 0:
            return f"killed: {signal.Signals(-self.code).name}"
        return "finished" if self.code == 0 else f"gave up ({self.code})"


class UnfinishedError(PartialError):
    """Some ranks did not finish; `ends` says how each ended."""

    def __init__(self, why: str, ends: list[End]) -> None:
        """Keep the ends beside the line."""
        super().__init__(why)
        self.ends = ends


def watch(crew: Crew, seen: Callable[[Whereabouts], None] = lambda _: None) -> None:
    """Return when every rank has finished; `seen` is told where rank 0 is.

    InputError and LackError are those of the ranks. UnfinishedError when one dies, gives up or hangs, or when the user
    interrupts; whatever was measured until then is in the file.
    """
    try:
        while True:
            codes, where = crew.codes(), crew.where()
            seen(where[0])
            if all(code == 0 for code in codes):
                return
            if any(codes):
                _raise(_settled(crew))
            patience = max(crew.order.timeout, JOINING if any(one.case < 0 for one in where) else 0.0)
            if time.monotonic() - max(one.since for one in where) > patience + _MARGIN:
                raise UnfinishedError(f"no rank got on for {patience:g} s", ends(crew, codes))
            time.sleep(_POLL)
    except KeyboardInterrupt:
        raise UnfinishedError("interrupted", ends(crew, crew.codes())) from None


def ends(crew: Crew, codes: list[int | None]) -> list[End]:
    """Return how each rank ended, or where it is."""
    now = time.monotonic()
    return [
        End(rank, where, now - where.since, code, crew.said(rank))
        for rank, (where, code) in enumerate(zip(crew.where(), codes))
    ]


def _settled(crew: Crew) -> list[End]:
    """How the ranks ended, once all have or the grace is over."""
    until = time.monotonic() + _GRACE
    while None in crew.codes() and time.monotonic() < until:
        time.sleep(_POLL)
    return ends(crew, crew.codes())


def _raise(found: list[End]) -> None:
    """Say in one line why the ranks ended."""
    for kind in (InputError, LackError):
        told = [end.said for end in found if end.code == kind.exit_code]
        if told:
            raise _ToldError(told[0], kind.exit_code)
    killed = [f"rank {end.rank} was {end.how}" for end in found if (end.code or 0) < 0]
    hung = [
        f"rank {end.rank} hangs, {end.where.state} for {show(end.since, 's', 2)}" for end in found if end.code is None
    ]
    others = [end.said or f"rank {end.rank} {end.how}" for end in found if end.code]
    raise UnfinishedError([*killed, *hung, *others][0], found)


class _ToldError(CommsimError):
    """What a rank said, with its exit code."""

    def __init__(self, line: str, code: int) -> None:
        super().__init__(line)
        self.exit_code = code
