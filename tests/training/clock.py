"""A machine of round figures: every kernel takes a second, or what one says, every collective what one says."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import numpy as np

from commsim.libraries.calibration import NOMINAL, Case
from commsim.libraries.library import Candidate, Floats, Timing
from commsim.training.passes import Machine

if TYPE_CHECKING:
    from commsim.collectives.kinds import Collective
    from commsim.collectives.layout import Layout
    from commsim.hardware.topology import Topology
    from commsim.training.compute import Kernels
    from commsim.training.operations import Operation


@dataclass(frozen=True)
class Clock:
    """Kernels that take `kernel` seconds each, whatever they do; `memory` are bytes a second, here without end."""

    memory: float = math.inf
    kernel: float = 1.0

    def seconds(self, operation: Operation, number_format: str, *, backward: bool = False) -> float:
        """Return the same time for each."""
        del operation, number_format, backward
        return self.kernel


@dataclass(frozen=True)
class Steady:
    """A library in which each collective takes the same time."""

    each: float = 1.0
    name: str = "steady"
    asked: list[tuple[str, float, int]] = field(default_factory=list)

    def time(
        self, op: Collective, sizes: Floats, layout: Layout, topology: Topology, *, case: Case = NOMINAL
    ) -> Timing:
        """Return that time, and remember what was asked."""
        del topology, case
        self.asked.append((op.name, float(sizes[0]), layout.size))
        candidate = Candidate("any", "", None, np.full(len(sizes), self.each), np.full(len(sizes), -1))  # type: ignore[arg-type]
        return Timing(op, layout.size, sizes, (candidate,), np.zeros(len(sizes), int))


def clockwork(each: float = 1.0, *, memory: float = math.inf, kernel: float = 1.0) -> Machine:
    """Return a machine on which each `kernel` takes a second and a collective `each`, with so many bytes a second."""
    return Machine(cast("Kernels", Clock(memory, kernel)), Steady(each), NOMINAL, assembly=0.0)
