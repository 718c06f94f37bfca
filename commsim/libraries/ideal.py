"""What would the wire alone allow?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from commsim.collectives.algorithms import serving_on
from commsim.collectives.price import priced
from commsim.libraries.calibration import NOMINAL, Case
from commsim.libraries.library import Candidate, Floats, Timing, seconds, wire_only

if TYPE_CHECKING:
    from commsim.collectives.kinds import Collective
    from commsim.collectives.layout import Layout
    from commsim.hardware.topology import Topology


@dataclass(frozen=True)
class Ideal:
    """The physical limit: for each size the cheapest schedule, at full bandwidth and without any overhead."""

    name: str = "ideal"

    def time(
        self, op: Collective, sizes: Floats, layout: Layout, topology: Topology, *, case: Case = NOMINAL
    ) -> Timing:
        """Return the time of the cheapest algorithm for each size (see `Library.time`)."""
        wire = wire_only(topology, case)
        candidates = []
        for algorithm in serving_on(op, layout, topology):
            cost = priced(algorithm.name, op, layout, topology)
            candidates.append(Candidate(algorithm.name, "", cost, *seconds(cost, sizes, wire)))
        stacked = np.stack([candidate.seconds for candidate in candidates])
        return Timing(op, layout.size, sizes, tuple(candidates), np.argmin(stacked, axis=0))
