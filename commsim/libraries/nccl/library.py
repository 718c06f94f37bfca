"""Which algorithm and protocol does NCCL run, and how long does that take?

A first model: NCCL's algorithms priced on the graph, each with each of its protocols, and the quickest of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from commsim.collectives.algorithms import serving_on
from commsim.collectives.price import priced
from commsim.errors import InputError
from commsim.figures import at
from commsim.libraries.calibration import NOMINAL, Calibration, Case, calibration, rates
from commsim.libraries.library import Candidate, Floats, Timing, Wire, seconds

if TYPE_CHECKING:
    from commsim.collectives.kinds import Collective
    from commsim.collectives.layout import Layout
    from commsim.collectives.price import Cost
    from commsim.hardware.topology import Topology

ALGORITHMS = {
    "ring": "Ring",
    "chain_tree": "Tree",
    "nvls": "NVLS",
    "nvls_tree": "NVLSTree",
    "sharp": "CollNet",
    "pairwise": "SendRecv",
    "direct": "SendRecv",
    "rail_all_to_all": "SendRecv",
    "pair": "SendRecv",
}
"""NCCL's names for the algorithms of the table that it has."""
IN_NETWORK = ("nvls", "nvls_tree", "sharp")
"""These run with the protocol Simple only, and reduce in the switches."""


@dataclass(frozen=True)
class Nccl:
    """NCCL with a calibration; `nvls` and `collnet` say whether in-network reduction is used where the machine has it.

    NCCL uses NVLS (in the scale-up domain) by default, CollNet (SHARP in the network) only when asked to.
    """

    name: str = "nccl"
    fitted: Calibration = field(default_factory=lambda: calibration("nccl"))
    nvls: bool = True
    collnet: bool = False
    algorithm: str | None = None
    protocol: str | None = None

    def time(
        self, op: Collective, sizes: Floats, layout: Layout, topology: Topology, *, case: Case = NOMINAL
    ) -> Timing:
        """Return the time of what runs quickest (see `Library.time`).

        InputError when the settings leave no algorithm, or no protocol, that does the operation in this group.
        """
        candidates = [
            self._candidate(name, protocol, priced(name, op, layout, topology), sizes, topology, case)
            for name in self._allowed(op, layout, topology)
            for protocol in self._protocols(name)
        ]
        if not candidates:
            given = f"algorithm {self.algorithm or 'any'}, protocol {self.protocol or 'any'}"
            raise InputError(f"nccl: {op.name} of {layout.size} ranks", given, "NCCL has no such way of doing it")
        stacked = np.stack([candidate.seconds for candidate in candidates])
        return Timing(op, layout.size, sizes, tuple(candidates), np.argmin(stacked, axis=0))

    def _allowed(self, op: Collective, layout: Layout, topology: Topology) -> list[str]:
        names = [one.name for one in serving_on(op, layout, topology) if one.name in ALGORITHMS]
        forbidden = {*(() if self.nvls else ("nvls", "nvls_tree")), *(() if self.collnet else ("sharp",))}
        wanted = self.algorithm.lower() if self.algorithm else None
        known = {label.lower() for label in ALGORITHMS.values()}
        if wanted and wanted not in known:
            raise InputError("algorithm", self.algorithm, "NCCL has no such algorithm", among=sorted(known))
        return [name for name in names if name not in forbidden and wanted in (None, ALGORITHMS[name].lower())]

    def _protocols(self, name: str) -> list[str]:
        wanted = self.protocol.lower() if self.protocol else None
        if wanted and wanted not in map(str.lower, self.fitted.protocols):
            raise InputError("protocol", self.protocol, "NCCL has no such protocol", among=self.fitted.protocols)
        present = ["Simple"] if name in IN_NETWORK else list(self.fitted.protocols)
        return [protocol for protocol in present if wanted in (None, protocol.lower())]

    def _candidate(  # noqa: PLR0917 - one candidate is all of these
        self, name: str, protocol: str, cost: Cost, sizes: Floats, topology: Topology, case: Case
    ) -> Candidate:
        wire = self._wire(protocol, topology, case, in_network=name in IN_NETWORK)
        return Candidate(ALGORITHMS[name], protocol, cost, *seconds(cost, sizes, wire))

    def _wire(self, name: str, topology: Topology, case: Case, *, in_network: bool) -> Wire:
        bandwidth, latency = rates(topology.kinds, case)
        uses = [self.fitted.use(link.kind) for link in topology.kinds]
        reached = [at(use.in_network or use.efficiency if in_network else use.efficiency, case.corner) for use in uses]
        protocol = self.fitted.in_network if in_network and self.fitted.in_network else self.fitted.protocols[name]
        return Wire(
            bandwidth=bandwidth * np.array(reached) * protocol.payload,
            latency=latency,
            launch=protocol.base,
            message=(protocol.inside, protocol.network),
            chunk=protocol.chunk,
        )
