"""How long did it take, from its begin on this rank until it was done? Never until it was issued."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import torch

from bench.clocks import NS, clock

if TYPE_CHECKING:
    from collections.abc import Callable


class Timer(Protocol):
    """What times one operation."""

    timed: str
    """How: `wait` (host clock around wait) or `events` (of the device)."""

    def once(self, start: Callable[[], Any]) -> tuple[int, int]:
        """Begin the operation, wait for its end, and return when it began (this rank's clock) and what it took, ns."""


class HostTimer:
    """The host's clock around the operation and the wait for it, for what runs on CPUs."""

    timed = "wait"

    def once(self, start: Callable[[], Any]) -> tuple[int, int]:
        """Return begin and duration in ns."""
        began = clock()
        start().wait()
        return began, clock() - began


class EventTimer:
    """Events of the device on the stream that waits for the operation, read when the device is idle again."""

    timed = "events"

    def __init__(self) -> None:
        """Make the two events."""
        self._before, self._after = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]

    def once(self, start: Callable[[], Any]) -> tuple[int, int]:
        """Return begin on the host's clock and duration in ns by the events."""
        torch.cuda.synchronize()
        began = clock()
        self._before.record()
        work = start()
        if work is not None:
            work.wait()
        self._after.record()
        torch.cuda.synchronize()
        return began, round(self._before.elapsed_time(self._after) * 1e-3 / NS)


def timer(device: torch.device) -> Timer:
    """Return what times operations on a device."""
    return EventTimer() if device.type == "cuda" else HostTimer()


def captured(start: Callable[[], Any]) -> Callable[[], None]:
    """Return the replay of a CUDA graph that holds the operation."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        start().wait()
    replay: Callable[[], None] = graph.replay
    return replay
