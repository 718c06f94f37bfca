"""Which versions of NCCL are known to be slower than those before them, at what?

Versions are those that people measured, `first` to `last`; the share that is left is that of their figures. What was
reported without figures is not here: NVIDIA/nccl#1222 (2.20.3), #1997 (2.24), #2094 (2.29).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from commsim.collectives.kinds import ALL_REDUCE, ALL_TO_ALL, Collective

if TYPE_CHECKING:
    from collections.abc import Callable

    from commsim.hardware.system import System
    from commsim.measurement.check.expected import Expected
    from commsim.units import Share

Version = tuple[int, ...]


@dataclass(frozen=True)
class Regression:
    """Versions of NCCL in which an operation is slow on some machines, and the share of its bandwidth that is left."""

    first: Version
    last: Version
    op: Collective
    where: Callable[[System], bool]
    left: tuple[Share, Share]
    source: str

    def holds(self, of: Expected, version: Version) -> bool:
        """Whether a table of that version is one of those that it slows."""
        return self.first <= version[:2] <= self.last and of.table.op is self.op and self.where(of.system)


def _few_nics(system: System) -> bool:
    return system.nodes > 1 and system.nics_per_node < system.topology.gpus_per_node


REGRESSIONS = (
    Regression((2, 11), (2, 16), ALL_REDUCE, _few_nics, (0.1, 0.2), "NVIDIA/nccl#837: 7.05 of 57.06 GB/s"),
    Regression((2, 19), (2, 20), ALL_TO_ALL, lambda of: of.nodes > 2, (0.7, 0.8), "NVIDIA/nccl#1316: 37 of 50 GB/s"),  # noqa: PLR2004
    Regression((2, 25), (2, 27), ALL_REDUCE, _few_nics, (0.1, 0.25), "NVIDIA/nccl-tests#352: 7 of 50 GB/s"),
)


def regression(of: Expected) -> Regression | None:
    """Return the known regression that slows a table; None where there is none, or no version is told."""
    parts = of.table.version.split(".")
    if of.table.library not in {"nccl", ""} or not all(part.isdecimal() for part in parts):
        return None
    version = tuple(int(part) for part in parts)
    return next((one for one in REGRESSIONS if one.holds(of, version)), None)
