"""Which collectives are in the traces of PyTorch's profiler (Kineto), one file a rank?

Read from the stream, for a trace may have gigabytes. Collectives are the NCCL and RCCL kernels; gloo's are what the CPU
notes. Times are microseconds.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from commsim.errors import InputError
from commsim.measurement import fields
from commsim.measurement.traces.columns import unpacked
from commsim.measurement.traces.events import UNNUMBERED, EventTrace, Rows, assembled
from commsim.measurement.traces.flight_recorder import rank_of
from commsim.measurement.traces.names import collective_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path
    from types import ModuleType

MOST_EVENTS = 50_000_000
_US = 1e-6
_KERNEL = re.compile(r"^(nccl|rccl)(Dev)?Kernel", re.IGNORECASE)
_ON_CPU = re.compile(r"^gloo:")
_STEP = re.compile(r"^ProfilerStep#(\d+)$")
_LAUNCH = re.compile(r"^(record_param_comms$|nccl:)")
_LINK = "External id"
"""What a kernel and the operation that launched it have in common."""
_MESSAGES = frozenset({"send_recv"})


def recognises(beginning: str) -> bool:
    """Whether a file begins as a trace of Kineto does, in either form."""
    return '"traceEvents"' in beginning or '"schemaVersion"' in beginning or '"ph"' in beginning


def read(paths: Iterable[Path], source: str) -> EventTrace:
    """Return the collectives of several ranks, matched; InputError for two files of one rank."""
    ranks: dict[int, _Rank] = {}
    for path in paths:
        one = _rank(path)
        if one.rank in ranks:
            raise InputError(path.name, f"rank {one.rank} a second time", "one trace of each rank belongs here")
        ranks[one.rank] = one
    found = [(rank, event) for rank, one in sorted(ranks.items()) for event in one.events()]
    repairs = tuple(said for one in ranks.values() for said in one.repairs())
    if not found:
        raise InputError(source, "no collective", "kernels of NCCL or RCCL, or annotations of gloo, belong in a trace")
    columns = zip(*((rank, *event) for rank, event in found))
    kinds = (np.int64, np.int64, np.str_, np.str_, np.int64, np.float64, np.float64)
    rows = Rows(*(np.array(column, dtype=kind) for column, kind in zip(columns, kinds)))
    worlds = [one.world for one in ranks.values() if one.world]
    return assembled(rows, source, world=max(worlds, default=None), repairs=tuple(dict.fromkeys(repairs)))


@dataclass
class _Rank:
    """What one file tells, as it is read."""

    name: str
    rank: int = -1
    world: int | None = None
    on_gpu: list[dict[str, Any]] = field(default_factory=list)
    on_cpu: list[dict[str, Any]] = field(default_factory=list)
    launches: dict[object, float] = field(default_factory=dict)
    steps: list[tuple[float, int]] = field(default_factory=list)
    steps_on_gpu: list[tuple[float, int]] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    before: int = 0

    def take(self, event: dict[str, Any]) -> None:
        """Keep an event if it is a collective, launches one, or begins a step."""
        name, start = event.get("name"), event.get("ts")
        if not isinstance(name, str) or not isinstance(start, int | float):
            return
        step = _STEP.match(name)
        if step:
            on_gpu = event.get("cat") == "gpu_user_annotation"
            (self.steps_on_gpu if on_gpu else self.steps).append((float(start), int(step[1])))
        elif event.get("cat") == "kernel" and _KERNEL.match(name):
            self.on_gpu.append(event)
        elif _ON_CPU.match(name):
            self.on_cpu.append(event)
        elif _LAUNCH.match(name):
            self.launches[fields.part(event, "args").get(_LINK)] = float(start)

    def events(self) -> Iterator[tuple[int, str, str, int, float, float]]:
        """Yield step, operation, group, number, start and duration of each collective."""
        for event in sorted(self._listed, key=lambda one: float(one["ts"])):
            arguments = fields.part(event, "args")
            op = _operation(event["name"], arguments)
            start, seconds = float(event["ts"]) * _US, fields.number(event, "dur", f"{self.name}: {op}") * _US
            number = arguments.get("Seq")
            step = self._step(float(event["ts"]), arguments.get(_LINK))
            if step is None:
                self.before += 1
                continue
            yield (
                step,
                op,
                _group(op, arguments),
                number if isinstance(number, int) and number >= 0 else UNNUMBERED,
                start,
                seconds,
            )

    def _step(self, start: float, link: object) -> int | None:
        """The step in which a collective was launched, for a GPU runs behind; else that in which it runs.

        Without steps all is one; None before the first.
        """
        launched = self.launches.get(link) if link is not None else None
        begins = self.steps_on_gpu if self.on_gpu and launched is None and self.steps_on_gpu else self.steps
        place = bisect_right(begins, (start if launched is None else launched, 2**62)) - 1
        if not begins:
            return 0
        return begins[place][1] if place >= 0 else None

    @property
    def _listed(self) -> list[dict[str, Any]]:
        return self.on_gpu or self.on_cpu

    def repairs(self) -> Iterator[str]:
        """Yield what had to be supposed."""
        yield from self.said
        if self.before:
            yield f"{self.name}: {self.before} collectives before the first step: left out"
        if any("Collective name" not in fields.part(one, "args") for one in self.on_gpu):
            yield "collectives without metadata (older PyTorch): matched by their order in each step"
        if self.on_cpu and not self.on_gpu:
            yield "collectives on the CPU (gloo): their times hold the waiting for a thread"
        told = [(_operation(one["name"], fields.part(one, "args")), fields.part(one, "args")) for one in self._listed]
        messages = sum(op in _MESSAGES and not _group(op, arguments) for op, arguments in told)
        if messages:
            yield f"{self.name}: {messages} sends and receives, whose peers are not told, taken as work of the rank"


def _operation(name: str, arguments: fields.Entry) -> str:
    told = arguments.get("Collective name")
    return (collective_of(told) if isinstance(told, str) else None) or collective_of(name) or str(told or name)[:60]


def _group(op: str, arguments: fields.Entry) -> str:
    """Who takes part: a process group, both ends of a message; "" where a message does not tell its peer.

    Where nobody numbers what a group does, operation and elements tell it apart.
    """
    name = f"{arguments.get('Process Group Name', '')}"
    if op in _MESSAGES:
        ends = (arguments.get("Src Rank"), arguments.get("Dst Rank"))
        return f"{name}/{ends[0]} to {ends[1]}" if all(isinstance(one, int) for one in ends) else ""
    if "Seq" in arguments:
        return name
    return f"{name}/{op}/{arguments.get('In msg nelems', '')}/{arguments.get('dtype', '')}"


def _rank(path: Path) -> _Rank:
    """What a file tells; of one that ends early all that it has."""
    found = _Rank(path.name)
    import ijson  # type: ignore[import-untyped]

    with unpacked(path) as stream:
        first = stream.read(64).lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    with unpacked(path) as stream:
        try:
            _events(found, ijson, stream, "item" if first == b"[" else "traceEvents.item")
        except (ijson.JSONError, UnicodeDecodeError) as error:
            found.said.append(f"{path.name}: the JSON ends early or is damaged ({_short(error)}): read up to there")
    _distributed(found, ijson, path)
    found.steps.sort()
    found.steps_on_gpu.sort()
    return found


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:_SHORT]


_SHORT = 40


def _events(found: _Rank, ijson: ModuleType, stream: IO[bytes], where: str) -> None:
    for number, event in enumerate(ijson.items(stream, where, use_float=True)):
        if number >= MOST_EVENTS:
            raise InputError(found.name, f"more than {MOST_EVENTS} events", "a shorter trace belongs here")
        if isinstance(event, dict):
            found.take(event)


def _distributed(found: _Rank, ijson: ModuleType, path: Path) -> None:
    """The rank and the world by what the trace says, else by the name of the file."""
    told: fields.Entry = {}
    with unpacked(path) as stream:
        try:
            told = next((one for one in ijson.items(stream, "distributedInfo") if isinstance(one, dict)), {})
        except (ijson.JSONError, UnicodeDecodeError):
            told = {}
    world = told.get("world_size")
    found.world = world if isinstance(world, int) and world > 0 else None
    rank = told.get("rank")
    found.rank = rank if isinstance(rank, int) and rank >= 0 else rank_of(path.name)
