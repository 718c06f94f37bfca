"""How are cases measured one after the other, by all ranks together, and what is kept of them?"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from bench.fit import need_fit
from bench.journal import Journal
from bench.machine import run_record
from bench.measure import Bench
from bench.team import Team, joined, need_backend, need_interfaces

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from bench.ranks import Place
    from commsim.measurement.launch.cases import Case
    from commsim.measurement.launch.whereabouts import Trace
    from commsim.units import Seconds

_POLL = 0.05


def run(cases: Sequence[Case], at: Place, trace: Trace, out: Path, *, backend: str, timeout: Seconds) -> None:
    """Join the other ranks and measure the cases with them. InputError for what cannot be run, LackError for a lack."""
    need_backend(backend)
    need_interfaces(os.environ)
    need_fit(cases, at.world, backend)
    trace.at("joining the others")
    with joined(at, backend, timeout) as team:
        measure(cases, team, trace, out)


def measure(cases: Sequence[Case], team: Team, trace: Trace, out: Path) -> None:
    """Measure the cases in their order; those that the file holds already are not measured again."""
    journal = _opened(team, out)
    for number in _left(cases, team, journal.done if journal else {}):
        case = cases[number]
        if case.wait_for:
            _wait_for(out.with_name(f"{out.name}.{case.wait_for}"), team, trace, number)
        trace.at("preparing", case=number)
        record = Bench(case, team, trace).record()
        trace.at("gathering samples")
        if journal:
            journal.write(record)
    trace.at("done")


def _opened(team: Team, out: Path) -> Journal | None:
    """The journal, with the record of the run in it; rank 0 keeps it."""
    run = run_record(team)
    if team.rank:
        return None
    journal = Journal(out)
    journal.begin(run)
    return journal


def _left(cases: Sequence[Case], team: Team, done: dict[str, int]) -> list[int]:
    """The numbers of the cases that are not measured yet, as rank 0 knows them."""
    left, done = [], dict(done)
    for number, case in enumerate(cases):
        if done.get(case.digest, 0):
            done[case.digest] -= 1
        else:
            left.append(number)
    found: list[int] = team.told("left", left)
    return found


def _wait_for(token: Path, team: Team, trace: Trace, number: int) -> None:
    """Return on every rank when rank 0 sees the file."""
    trace.at("waiting for a token", case=number)
    while team.rank == 0 and not token.exists():
        trace.at("waiting for a token", case=number)
        time.sleep(_POLL)
    team.told(f"token {number}", "seen")
