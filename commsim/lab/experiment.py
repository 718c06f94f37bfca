"""What is measured in a lab, and what comes out of it beside what the model says?

One launch of the ranks serves every case: rank 0 waits for a file before each, so that the network can be changed
meanwhile.
"""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from commsim.collectives.kinds import ALL_TO_ALL, Collective, collective
from commsim.errors import InputError, PartialError
from commsim.lab.blueprint import blueprint
from commsim.lab.faults import HEALTHY, Fault
from commsim.lab.prediction import Asked, Prediction, in_lab, predicted
from commsim.lab.session import Session
from commsim.measurement.launch.cases import Case, Groups, write_cases
from commsim.measurement.launch.scratch import scratch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from commsim.hardware.topology import Topology
    from commsim.units import Seconds

    Floats = NDArray[np.float64]

_POLL = 0.02
_LEAST_PATIENCE, _TIMES_PREDICTED = 60.0, 10.0
"""A case may take so many seconds, and so many times what it is predicted to take, before the lab is given up."""
_TIMES_AS_OFTEN = 3
"""An all-to-all differs from one to the next (see `gloo.exchange`), by 5 to 20 %: it is repeated more often."""
_START = 120.0
"""Seconds that ranks have to start and to find each other."""


@dataclass(frozen=True, eq=False)
class Experiment:
    """A network, and what is measured on it: each operation of each size, with each of the faults and without."""

    topology: Topology
    ops: tuple[Collective, ...]
    sizes: tuple[int, ...]
    faults: tuple[Fault, ...] = ()
    groups: Groups = ()
    iterations: int = 5
    warmup: int = 1
    calibration: str | None = None

    @property
    def trials(self) -> list[Trial]:
        """What is measured, in order; InputError for what the model cannot be asked."""
        library = in_lab(self.topology.size, self.calibration)
        asked = (Asked(op, size, self.topology, self.groups) for op in self.ops for size in self.sizes)
        every = [(one, wrong) for one in asked for wrong in (HEALTHY, *self.faults)]
        return [Trial(one, wrong, predicted(one, wrong, library)) for one, wrong in every]


@dataclass(frozen=True, eq=False)
class Trial:
    """One operation of one size with or without a fault, and what the model says of it."""

    asked: Asked
    fault: Fault
    prediction: Prediction

    def case(self, experiment: Experiment, token: str) -> Case:
        """Return what the ranks have to do."""
        plain = Case(self.asked.op.name, int(self.asked.size), groups=self.asked.groups, wait_for=token)
        often = experiment.iterations * (_TIMES_AS_OFTEN if self.asked.op is ALL_TO_ALL else 1)
        return self.fault.asked(replace(plain, iterations=often, warmup=experiment.warmup))


@dataclass(frozen=True, eq=False)
class Compared:
    """A trial with what was measured: seconds[iteration], from the first rank that comes to the last that leaves.

    Where no rank is late on purpose, from the last that comes: until then nothing is the network's doing.
    """

    trial: Trial
    seconds: Floats
    checked: bool

    @property
    def typical(self) -> Seconds:
        """What stands beside the prediction: the middle, or the longest where the fault hits one iteration only."""
        return float(self.seconds.max()) if self.trial.fault.held else middle(self.seconds)

    @property
    def error(self) -> float:
        """How far the prediction is off, as a share of what was measured."""
        return self.trial.prediction.typical / self.typical - 1


def middle(seconds: Floats) -> Seconds:
    """Return the mean of the half of the iterations in the middle: what a busy machine does to one of them is out."""
    ordered = np.sort(seconds)
    out = len(ordered) // 4
    return float(ordered[out : len(ordered) - out].mean())


def compared(trial: Trial, record: dict[str, Any]) -> Compared:
    """Return the trial with what the worker recorded."""
    came, took = (np.array(record[name]) for name in ("arrival_s", "samples_s"))
    begun = came.min(axis=0) if trial.fault.moves_arrivals else came.max(axis=0)
    return Compared(trial, (came + took).max(axis=0) - begun, bool(record["checked"]))


def experiment(topology: Topology, ops: Sequence[str], sizes: Sequence[int], **more: Any) -> Experiment:  # noqa: ANN401
    """Return the experiment of operations by their names; InputError for what cannot be measured."""
    for size in sizes:
        if size < 1:
            raise InputError("size", size, "1 B or more belong here")
    return Experiment(topology, tuple(map(collective, ops)), tuple(sizes), **more)


def run(wanted: Experiment, out: Path | None = None) -> Iterator[Compared]:
    """Lay the network out, and yield what is measured, trial by trial; records go to `out`, JSON lines, as they come.

    LackError where this machine cannot; PartialError, after what was measured, when a rank or the lab ends early.
    """
    trials = wanted.trials
    with ExitStack() as held:
        kept = held.enter_context(_fresh(out)) if out else None
        folder = held.enter_context(scratch())
        records = folder / "run.jsonl"
        cases = [trial.case(wanted, f"case{number}") for number, trial in enumerate(trials)]
        write_cases(cases, folder / "cases.json")
        arguments = ["--cases", str(folder / "cases.json"), "--out", str(records)]
        longest = max(map(_patience, trials, cases))
        lab = held.enter_context(Session(blueprint(wanted.topology), folder, arguments, longest + _START))
        tokens = [records.with_name(f"{records.name}.case{number}") for number in range(len(trials))]
        follow = _Records(records, lab, kept)
        follow.next("run", _START)
        for trial, case, token in zip(trials, cases, tokens):
            with trial.fault.present(lab, trial.prediction.typical):
                token.touch()
                done = compared(trial, follow.next("op", _patience(trial, case)))
            yield done


class _Records:
    """The file into which rank 0 writes, read as it grows, and copied where it is to be kept."""

    def __init__(self, path: Path, lab: Session, kept: BinaryIO | None) -> None:
        self._path, self._lab, self._kept = path, lab, kept
        self._read = 0

    def next(self, kind: str, patience: Seconds) -> dict[str, Any]:
        """Return the next record of a kind; PartialError when a rank ends, or nobody writes in time."""
        until = time.monotonic() + patience
        while time.monotonic() < until:
            found = self._line()
            if found and found["record"] == kind:
                return found
            if not found:
                self._lab.check()
                time.sleep(_POLL)
        raise PartialError(f"lab: nothing was measured for {patience:.0f} s; what was measured until then is kept")

    def _line(self) -> dict[str, Any]:
        """The next whole line; empty when there is none yet."""
        if not self._path.exists():
            return {}
        with self._path.open("rb") as stream:
            stream.seek(self._read)
            line = stream.readline()
        if not line.endswith(b"\n"):
            return {}
        self._read += len(line)
        if self._kept:
            self._kept.write(line)
        found: dict[str, Any] = json.loads(line)
        return found


def _fresh(out: Path) -> BinaryIO:
    """The file for the records, which must be new; InputError."""
    try:
        return out.open("xb", buffering=0)
    except OSError as error:
        raise InputError("out", str(out), f"a file that is not there yet belongs here ({error.strerror})") from None


def _patience(trial: Trial, case: Case) -> Seconds:
    longest = float(trial.prediction.seconds.max())
    return _LEAST_PATIENCE + _TIMES_PREDICTED * longest * (case.iterations + case.warmup)
