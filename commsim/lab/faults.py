"""What can be wrong in a lab, how is it brought about, and what does the model take it for?

A fault is one class, entered in the table `FAULTS`; a person writes it as `slow-link: link=gpu3,switch0 factor=2`.
"""

from __future__ import annotations

import dataclasses
import signal
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from commsim.errors import InputError
from commsim.hardware.topology import Link, Topology
from commsim.stragglers.causes import described
from commsim.stragglers.laws import Law
from commsim.units import Duration, Seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.random import Generator
    from numpy.typing import NDArray

    from commsim.lab.session import Session
    from commsim.measurement.launch.cases import Case

    Floats = NDArray[np.float64]

Ends = tuple[str, str]
"""The two ends of a link, as the topology names them."""


@dataclass(frozen=True)
class Fault:
    """Something that is wrong while a case is measured; this one is nothing."""

    moves_arrivals: ClassVar[bool] = False
    """Whether ranks come at different times, so that an operation is timed from the first that comes."""

    @property
    def held(self) -> Seconds:
        """How much longer the one iteration takes that the fault hits, where it hits one only."""
        return 0.0

    def seen(self, topology: Topology) -> Topology:
        """Return the machine with the fault in it; InputError when it does not fit the machine."""
        return topology

    def asked(self, case: Case) -> Case:
        """Return the case as ranks have to know it."""
        return case

    def arrivals(self, ranks: int, trials: int, rng: Generator) -> Floats:
        """Return when ranks come, [rank, trial] in s after the first that is not held back."""
        del rng
        return np.zeros((ranks, trials))

    @contextmanager
    def present(self, lab: Session, lasting: Seconds) -> Iterator[None]:
        """Have the fault in a lab while a case of iterations of about so many seconds is measured."""
        del lab, lasting
        yield


HEALTHY = Fault()


@dataclass(frozen=True)
class SlowLink(Fault):
    """A link that carries `factor` times less, in both directions."""

    link: Ends
    factor: float

    def __post_init__(self) -> None:
        """Refuse a factor that slows nothing; InputError."""
        if self.factor < 1:
            raise InputError("slow-link: factor", self.factor, "1 or more belongs here")

    def seen(self, topology: Topology) -> Topology:
        """Return the machine with that link slower."""
        return slowed(topology, self.link, self.factor)

    @contextmanager
    def present(self, lab: Session, lasting: Seconds) -> Iterator[None]:
        """Shape the link anew, and as it was afterwards."""
        del lasting
        cable = lab.plan.cable(*self.link)
        lab.shape(cable, lab.plan.cables[cable].rate / self.factor)
        try:
            yield
        finally:
            lab.shape(cable, lab.plan.cables[cable].rate)


@dataclass(frozen=True)
class FlappingLink(Fault):
    """A link that stands still for `down` in every `every` seconds: it holds back what it is given, and loses none."""

    link: Ends
    down: Duration
    every: Duration

    def __post_init__(self) -> None:
        """Refuse a link that is never up, or never down; InputError."""
        if not 0 < self.down < self.every:
            raise InputError("flapping-link: down", float(self.down), "more than 0 and less than `every` belongs here")

    def seen(self, topology: Topology) -> Topology:
        """Return the machine with the bandwidth that is left of that link in the mean."""
        return slowed(topology, self.link, self.every / (self.every - self.down))

    @contextmanager
    def present(self, lab: Session, lasting: Seconds) -> Iterator[None]:
        """Stop and start the link until the case is over."""
        del lasting
        cable, over = lab.plan.cable(*self.link), threading.Event()
        flapping = threading.Thread(target=self._flap, args=(lab, cable, over), daemon=True)
        flapping.start()
        try:
            yield
        finally:
            over.set()
            flapping.join()

    def _flap(self, lab: Session, cable: int, over: threading.Event) -> None:
        while not over.wait(self.every - self.down):
            lab.shape(cable, _STILL)
            time.sleep(self.down)
            lab.shape(cable, lab.plan.cables[cable].rate)


_STILL = 20e3
"""B/s of a link that stands still: a frame in 75 ms. Shapers that are much slower lose what they are given."""


@dataclass(frozen=True)
class LateRank(Fault):
    """A rank that comes `by` later than the others, each time."""

    rank: int
    by: Duration
    moves_arrivals: ClassVar[bool] = True

    def asked(self, case: Case) -> Case:
        """Return the case with that rank late."""
        return replace(case, late={self.rank: float(self.by)})

    def arrivals(self, ranks: int, trials: int, rng: Generator) -> Floats:
        """Return when ranks come."""
        _need_rank("late-rank", self.rank, ranks)
        found = super().arrivals(ranks, trials, rng)
        found[self.rank] = self.by
        return found


@dataclass(frozen=True)
class StoppedRank(Fault):
    """A rank whose process stands still for a while in the middle of an operation, once in a case."""

    rank: int
    lasting: Duration

    @property
    def held(self) -> Seconds:
        """How long the rank stands still: nobody ends without it."""
        return self.lasting

    @contextmanager
    def present(self, lab: Session, lasting: Seconds) -> Iterator[None]:
        """Stop the rank once, after about one and a half iterations."""
        _need_rank("stopped-rank", self.rank, len(lab.plan.ranks))
        over = threading.Event()
        stopping = threading.Thread(target=self._stop, args=(lab, over, lasting * 1.5), daemon=True)
        stopping.start()
        try:
            yield
        finally:
            over.set()
            stopping.join()

    def _stop(self, lab: Session, over: threading.Event, after: Seconds) -> None:
        if over.wait(after):
            return
        lab.signal(self.rank, signal.SIGSTOP)
        time.sleep(self.lasting)
        lab.signal(self.rank, signal.SIGCONT)


@dataclass(frozen=True)
class Jitter(Fault):
    """Ranks that compute for a time drawn from a law before each operation, each for itself."""

    law: Law
    how: Literal["sleep", "spin"] = "sleep"
    seed: int = 0
    moves_arrivals: ClassVar[bool] = True

    def asked(self, case: Case) -> Case:
        """Return the case with the law in it."""
        law = {"law": type(self.law).__name__.lower(), "parameters": dict(vars(self.law))}
        return replace(case, jitter={**law, "seed": self.seed, "how": self.how})

    def arrivals(self, ranks: int, trials: int, rng: Generator) -> Floats:
        """Return when ranks come."""
        return np.maximum(self.law.sample(rng, (ranks, trials)), 0.0)


FAULTS: dict[str, type[Fault]] = {
    "slow-link": SlowLink,
    "flapping-link": FlappingLink,
    "late-rank": LateRank,
    "stopped-rank": StoppedRank,
    "jitter": Jitter,
}
"""Every fault by the name that a person writes."""


def fault(text: str) -> Fault:
    """Return the fault that a text describes; InputError for what is none."""
    return described(FAULTS, text, "fault")


def slowed(topology: Topology, ends: Ends, factor: float) -> Topology:
    """Return the machine, drawn out, with one link slower by a factor; InputError when no link joins these two."""
    flat = topology.flat()
    cell = flat.cell.copy()
    if not cell.has_edge(*ends):
        raise InputError(
            "fault: link", ",".join(ends), "no link joins these two", among=[f"{u},{v}" for u, v in cell.edges]
        )
    for u, v in (ends, ends[::-1]):
        link: Link = cell.edges[u, v]["link"]
        cell.edges[u, v]["link"] = Link(f"{link.kind} / {factor:.4g}", link.bandwidth / factor, link.latency)
    return replace(flat, cell=cell)


def written(wrong: Fault) -> str:
    """Return the fault as a person writes it, without what is as it is by default; "" for none."""
    names = [name for name, kind in FAULTS.items() if type(wrong) is kind]
    fields = {field.name: (getattr(wrong, field.name), field.default) for field in dataclasses.fields(wrong)}
    told = " ".join(f"{name}={_shown(value)}" for name, (value, usual) in fields.items() if value != usual)
    return f"{names[0]}: {told}" if names else ""


def _shown(value: object) -> str:
    if isinstance(value, Law):
        inner = ", ".join(f"{name}={_shown(one)}" for name, one in vars(value).items())
        return f"{type(value).__name__.lower()}({inner})"
    return ",".join(value) if isinstance(value, tuple) else f"{value:g}" if isinstance(value, float) else str(value)


def _need_rank(where: str, rank: int, ranks: int) -> None:
    if not 0 <= rank < ranks:
        raise InputError(f"{where}: rank", rank, f"0 to {ranks - 1} belong here")
