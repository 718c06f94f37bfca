"""When did each operation of your own training loop begin, and how long did it take? One line each, for replay.

The file stands alone: it imports nothing of commsim, so that a training job can use it or take a copy of it along.

    with Recorder(f"steps.{rank}.csv", rank) as recorder:
        for batch in batches:
            with recorder.step():
                with recorder.operation("forward"):
                    loss = model(batch)
                with recorder.operation("all_reduce") as timed:
                    timed.wait(dist.all_reduce(bucket, async_op=True))
"""

from __future__ import annotations

import json
import time
from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

COLUMNS = ("rank", "step", "op", "start", "duration")
"""What each line says; times in seconds, starts on this host's own clock since 1970."""
_FLUSHED = 1.0
"""Seconds after which lines are handed to the system; so much is lost when the job is killed."""


class Work(Protocol):
    """What torch returns for an operation that was only issued."""

    def wait(self) -> Any:  # noqa: ANN401 - torch says no more
        """Return when it is done, or, on a GPU, when the stream waits for it."""


class Timed:
    """An operation that is being recorded."""

    def wait(self, work: Work | None) -> None:
        """Wait for an operation that was begun with `async_op=True`: without that, only its issue would be timed."""
        if work is not None:
            work.wait()


@dataclass(frozen=True)
class _Marked:
    """An operation between two events of the device, not read yet."""

    step: int
    op: str
    before: Any
    after: Any


class _Device:
    """The clock of a GPU: events between kernels, read when they have passed, so that nothing waits for them.

    Each begin is reckoned from the begin before it: a difference of events is a float of 32 bits, exact only if short.
    """

    def __init__(self, events: Any) -> None:  # noqa: ANN401 - torch.cuda
        self._cuda = events
        self._last = self.mark()
        events.synchronize()
        self._time = time.time()
        self.waiting: deque[_Marked] = deque()

    def mark(self) -> Any:  # noqa: ANN401 - torch.cuda.Event
        event = self._cuda.Event(enable_timing=True)
        event.record()
        return event

    def passed(self, *, everything: bool) -> Iterator[tuple[int, str, float, float]]:
        """Yield the operations that the device is done with, in their order; wait for all of them at the end."""
        if everything:
            self._cuda.synchronize()
        while self.waiting and (everything or self.waiting[0].after.query()):
            one = self.waiting.popleft()
            self._time += self._last.elapsed_time(one.before) * 1e-3
            self._last = one.before
            yield one.step, one.op, self._time, one.before.elapsed_time(one.after) * 1e-3


class Recorder:
    """A file of operations, `.csv` or `.jsonl`. On a GPU (`cuda=torch.cuda`) the device's own clock is read."""

    def __init__(self, path: str | Path, rank: int = 0, cuda: Any = None) -> None:  # noqa: ANN401 - torch.cuda
        """Begin the file; ValueError for another kind."""
        if Path(path).suffix not in {".csv", ".jsonl"}:
            raise ValueError(f"{path}: .csv or .jsonl belongs here")
        self._is_csv = Path(path).suffix == ".csv"
        self._file = Path(path).open("w", encoding="utf-8")  # noqa: SIM115 - closed with the recorder
        self._rank, self._step = rank, 0
        self._began, self._zero = time.time(), time.perf_counter()
        self._flushed = self._zero
        self._device = None if cuda is None else _Device(cuda)
        if self._is_csv:
            self._file.write(f"{','.join(COLUMNS)}\n")

    def __enter__(self) -> Self:
        """Record from here on."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Write what is left and close the file."""
        self._collect(everything=kind is None)
        self._file.close()

    @contextmanager
    def step(self, number: int | None = None) -> Iterator[None]:
        """Record what is inside as one step, the one after the last unless it has a number."""
        self._step = self._step if number is None else number
        yield
        self._step += 1
        self._collect(everything=False)
        if time.perf_counter() - self._flushed > _FLUSHED:
            self._file.flush()
            self._flushed = time.perf_counter()

    @contextmanager
    def operation(self, name: str) -> Iterator[Timed]:
        """Record what is inside as one operation; what is only issued inside must be handed to `Timed.wait`."""
        if self._device is not None:
            before = self._device.mark()
            yield Timed()
            self._device.waiting.append(_Marked(self._step, name, before, self._device.mark()))
            return
        before = time.perf_counter()
        yield Timed()
        after = time.perf_counter()
        self._write(self._step, name, self._began + before - self._zero, after - before)

    def _collect(self, *, everything: bool) -> None:
        for one in self._device.passed(everything=everything) if self._device is not None else ():
            self._write(*one)

    def _write(self, step: int, op: str, start: float, duration: float) -> None:
        values = (self._rank, step, op, f"{start:.9f}", f"{duration:.9f}")
        if self._is_csv:
            named = f'"{op.replace(chr(34), chr(34) * 2)}"' if set(op) & set(',"\n') else op
            self._file.write(f"{values[0]},{step},{named},{values[3]},{values[4]}\n")
            return
        record = dict(zip(COLUMNS, (self._rank, step, op, round(start, 9), round(duration, 9))))
        self._file.write(f"{json.dumps(record)}\n")
