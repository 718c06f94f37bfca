"""Tables that tests judge: what a machine would deliver by the model, changed as a test wants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import commsim as cs
from commsim.collectives.kinds import collective
from commsim.collectives.layout import Layout
from commsim.libraries.nccl import Nccl
from commsim.measurement.records import Measurement, Row, Timing

if TYPE_CHECKING:
    from collections.abc import Iterable

    from commsim.hardware.system import System
    from commsim.libraries.calibration import Case
    from commsim.libraries.library import Floats, Library

SIZES = np.logspace(16, 32, 9, base=2, dtype=np.float64)


def made(op: str, system: System, seconds: Iterable[float], sizes: Floats = SIZES, **more: Any) -> Measurement:  # noqa: ANN401
    """Return a table of all GPUs of a system with those times, s."""
    rows = tuple(Row(int(size), int(size) // 4, Timing(float(time))) for size, time in zip(sizes, seconds))
    return Measurement(((collective(op), system.gpus),), rows, nodes=system.nodes, **more)


def by_model(op: str, system: System, *, case: Case | None = None, library: Library | None = None) -> Floats:
    """Return what the model gives for SIZES on all GPUs of a system, s."""
    by = library or Nccl()
    more = {"case": case} if case else {}
    return by.time(collective(op), SIZES, Layout.first(system.gpus), system.topology, **more).seconds


def busbw(op: str, system: System, size: float, gb_per_s: float) -> Measurement:
    """Return a table of one row: a size, B, at a bus bandwidth."""
    kind = collective(op)
    return made(op, system, [size * kind.factor(system.gpus) / gb_per_s / 1e9], np.array([size]))


H100 = cs.load("hgx-h100")
TWO = cs.load("hgx-h100", nodes=2)
