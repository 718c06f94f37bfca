"""Which algorithm and protocol does NCCL run, and how long does that take?

The choice is that of NCCL's own tuner (see `tuner`), which believes in other times; the time is ours (see `timing`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from commsim.collectives.remembered import remembered
from commsim.errors import InputError
from commsim.libraries.calibration import NOMINAL, Calibration, Case, calibration
from commsim.libraries.library import LATENCY, Candidate, Floats, Timing
from commsim.libraries.nccl.asked import Asked, Settings
from commsim.libraries.nccl.constants import constants
from commsim.libraries.nccl.symmetric import Windows
from commsim.libraries.nccl.timed import Timed

if TYPE_CHECKING:
    from commsim.collectives.kinds import Collective
    from commsim.collectives.layout import Layout
    from commsim.hardware.topology import Topology


@dataclass(frozen=True)
class Nccl:
    """NCCL of a version with a calibration, as it is configured.

    `nvls` and `collnet` say whether in-network reduction is used where the machine has it: NCCL uses NVLS (in the
    scale-up domain) by default, CollNet (SHARP in the network) only when asked to. Without a `version` it is the newest
    that takes the `algorithm` and `protocol` that are asked for. `symmetric`: buffers are registered as symmetric
    windows (2.27 on), for which NCCL takes other kernels wherever it has them (see `symmetric.Windows`).
    """

    name: str = "nccl"
    fitted: Calibration = field(default_factory=lambda: calibration("nccl"))
    nvls: bool = True
    collnet: bool = False
    algorithm: str | None = None
    protocol: str | None = None
    version: str = ""
    symmetric: bool = False

    def __post_init__(self) -> None:
        """Refuse symmetric windows in a version that knows none. InputError."""
        if self.symmetric and constants(self.version).symmetric is None:
            raise InputError("symmetric", f"NCCL {self.version}", "only 2.27 or newer has symmetric windows")

    def time(
        self, op: Collective, sizes: Floats, layout: Layout, topology: Topology, *, case: Case = NOMINAL
    ) -> Timing:
        """Return the time of what NCCL's tuner picks; where it cannot be asked, of what is quickest (`Library.time`).

        InputError when the settings leave no algorithm, or no protocol, that does the operation in this group.
        """
        if layout.size == 1:
            return _nothing(op, sizes)
        settings = Settings(self.nvls, self.collnet, self.algorithm, self.protocol, self.version)
        asked = remembered(
            topology, ("nccl", settings, op.name, layout), lambda: Asked.of(settings, op, layout, topology)
        )
        if not asked.ways:
            given = f"algorithm {self.algorithm or 'any'}, protocol {self.protocol or 'any'}"
            raise InputError(f"nccl: {op.name} of {layout.size} ranks", given, "NCCL has no such way of doing it")
        found = _timed(asked, self.fitted, case).timing(sizes)
        if not self.symmetric:
            return found
        question = ("symmetric", settings, op.name, layout)
        windows = remembered(topology, question, lambda: Windows.of(op, asked.team, layout, topology))
        return windows.beside(found, self.fitted, case) if windows else found


@lru_cache(maxsize=4096)
def _timed(asked: Asked, fitted: Calibration, case: Case) -> Timed:
    """What was asked with a calibration, remembered: an estimate asks for few of them, many times."""
    return Timed.of(asked, fitted, case)


def _nothing(op: Collective, sizes: Floats) -> Timing:
    """A group of one: nothing moves, and no time passes."""
    none = np.zeros(len(sizes))
    return Timing(op, 1, sizes, (Candidate.idle(none, np.full(len(sizes), LATENCY)),), np.zeros(len(sizes), np.int64))
