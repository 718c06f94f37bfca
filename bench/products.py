"""What does a matmul cost while the network works, and what does the network lose by it?"""

from __future__ import annotations

import threading
from statistics import median
from typing import TYPE_CHECKING

import torch

from bench.clocks import clock

if TYPE_CHECKING:
    from types import TracebackType

_TRIALS = 5
_MS = 1_000_000
"""Nanoseconds of a millisecond."""


class Products:
    """Square products of one dimension that run beside an operation: in a thread on a CPU, on a stream on a GPU.

    There are as many of them as cover the operation half as long again as it takes alone, so that it is never without.
    """

    def __init__(self, dimension: int, device: torch.device) -> None:
        """Take the memory, and measure what one product takes alone, ns."""
        kind = torch.float32 if device.type == "cpu" else torch.bfloat16
        self._a, self._b, self._c = (torch.ones(dimension, dimension, dtype=kind, device=device) for _ in range(3))
        self._stream = torch.cuda.Stream() if device.type == "cuda" else None  # type: ignore[no-untyped-call]
        self.count = 1
        self.alone = median(self._timed() for _ in range(_TRIALS))
        self.took: list[int] = []
        self._thread: threading.Thread | None = None

    def cover(self, longest: int) -> None:
        """Let there be as many as an operation of that many ns needs."""
        self.count = max(1, round(1.5 * longest / self.alone + 0.5))

    def __enter__(self) -> None:
        """Begin them."""
        self._thread = threading.Thread(target=lambda: self.took.append(self._timed() // self.count))
        self._thread.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for their end."""
        if self._thread is not None:
            self._thread.join()

    def _timed(self) -> int:
        """What all of them take, in ns."""
        if self._stream is None:
            began = clock()
            self._multiply()
            return clock() - began
        before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        with torch.cuda.stream(self._stream):
            before.record()
            self._multiply()
            after.record()
        after.synchronize()
        took: float = before.elapsed_time(after)
        return round(took * _MS)

    def _multiply(self) -> None:
        for _ in range(self.count):
            torch.mm(self._a, self._b, out=self._c)
