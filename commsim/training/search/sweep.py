"""What is the best plan of each of many jobs: models, systems, sizes, one after the other or on many machines?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from commsim.errors import CommsimError, LackError
from commsim.hardware.catalogue import load
from commsim.training.configs.well_known import model
from commsim.training.search.search import search
from commsim.units import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from commsim.libraries.library import Library
    from commsim.training.search.found import Found


@dataclass(frozen=True)
class Case:
    """A job by names, which can be sent to other machines: model, system and what is changed of it, and the options."""

    model: str
    system: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    library: Library | None = None

    def __str__(self) -> str:
        """The model, the system and its size."""
        words = {"nodes": "node", "gpus": "GPU"}
        size = [f", {counted(int(self.changes[name]), word)}" for name, word in words.items() if name in self.changes]
        return f"{self.model} on {self.system}{''.join(size)}"


@dataclass(frozen=True)
class Outcome:
    """What came of a case: how many GPUs there are and the best plans, or in one line why there is none."""

    case: Case
    gpus: int
    best: tuple[Found, ...]
    error: str = ""


def outcome(case: Case) -> Outcome:
    """Return what comes of a case; what is wrong with it is part of the outcome."""
    try:
        system = load(case.system, **case.changes)
        found = search(model(case.model), system, library=case.library, **case.options)
    except CommsimError as error:
        return Outcome(case, 0, (), str(error))
    return Outcome(case, system.gpus, found.top(found.shown))


def searches(cases: Iterable[Case], *, scheduler: str | None = None) -> Iterator[Outcome]:
    """Yield the outcome of each case as soon as it is there: whoever stops early keeps those that he has.

    With the address of a Dask `scheduler` (`tcp://HOST:8786`) its workers search, and outcomes come in their order.
    LackError without Dask, or when nobody answers there.
    """
    listed = list(cases)
    yield from map(outcome, listed) if scheduler is None else _elsewhere(listed, scheduler)


def _elsewhere(cases: list[Case], scheduler: str) -> Iterator[Outcome]:
    try:
        from distributed import Client, as_completed
    except ImportError:
        raise LackError("dask: not installed here; `pip install 'commsim[dask]'` brings it") from None
    try:
        client = Client(scheduler, timeout=_PATIENCE)  # type: ignore[no-untyped-call] # Dask has no types
    except (OSError, ValueError) as error:
        raise LackError(f"dask: no scheduler answers at {scheduler} ({type(error).__name__})") from None
    with client:
        futures = client.map(outcome, cases, pure=False)
        for done in as_completed(futures):  # type: ignore[no-untyped-call]
            yield done.result()


_PATIENCE = 10
"""Seconds until a scheduler must have answered."""
