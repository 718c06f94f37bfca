"""Which algorithm and protocol does NCCL run, and how long does that take?

A first model: NCCL's algorithms priced on the graph, each with each of its protocols, and the quickest of them.
"""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from commsim.collectives.algorithms import Group, serving_on
from commsim.collectives.kinds import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    BROADCAST,
    REDUCE,
    REDUCE_SCATTER,
    SEND_RECV,
    Collective,
)
from commsim.collectives.price import priced
from commsim.errors import InputError
from commsim.libraries.calibration import NOMINAL, Calibration, Case, LinkWay, calibration, rates
from commsim.libraries.library import Candidate, Floats, Timing, Wire, seconds

if TYPE_CHECKING:
    from collections.abc import Iterable

    from commsim.collectives.layout import Layout
    from commsim.collectives.price import Cost
    from commsim.hardware.topology import Link, Topology


@dataclass(frozen=True)
class Way:
    """An algorithm of the table as NCCL has it: its name there, for which operations, with which protocols.

    `in_network`: switches reduce. `collnet`: it needs a network that does, and NCCL_COLLNET_ENABLE=1.
    """

    name: str
    ops: tuple[Collective, ...]
    protocols: tuple[str, ...] = ("LL", "LL128", "Simple")
    in_network: bool = False
    collnet: bool = False


_ROOTED = (ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, BROADCAST, REDUCE)
_SIMPLE = ("Simple",)
WAYS = {
    "ring": Way("Ring", _ROOTED),
    "mesh_ring": Way("Ring", (ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER)),
    "tree": Way("Tree", (ALL_REDUCE,)),
    "nvls": Way("NVLS", (ALL_REDUCE,), _SIMPLE, in_network=True),
    "nvls_tree": Way("NVLSTree", (ALL_REDUCE,), _SIMPLE, in_network=True),
    "nvls_sharp": Way("NVLS", (ALL_REDUCE,), _SIMPLE, in_network=True, collnet=True),
    "sharp": Way("CollNetDirect", (ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER), _SIMPLE, in_network=True, collnet=True),
    "direct": Way("SendRecv", (ALL_TO_ALL,), ("LL", "Simple")),
    "two_level": Way("SendRecv", (ALL_TO_ALL,), _SIMPLE),
    "pair": Way("SendRecv", (SEND_RECV,), ("LL", "Simple")),
}
"""NCCL's algorithms by their names in our table (NCCL 2.30: which collective may pick which). NVLS for all-gather and
reduce-scatter exists, and is seldom picked; an all-to-all goes along rails (PXN), so `direct` serves one domain.
Where GPUs are wired to each other, its channels are rings over different links, together a `mesh_ring`."""


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
        inner = Group.of(layout, topology).inner
        candidates = [
            self._candidate(way, protocol, (priced(name, op, layout, topology), inner), sizes, case)
            for name, way in self._allowed(op, layout, topology).items()
            for protocol in self._protocols(way)
        ]
        if not candidates:
            given = f"algorithm {self.algorithm or 'any'}, protocol {self.protocol or 'any'}"
            raise InputError(f"nccl: {op.name} of {layout.size} ranks", given, "NCCL has no such way of doing it")
        stacked = np.stack([candidate.seconds for candidate in candidates])
        return Timing(op, layout.size, sizes, tuple(candidates), np.argmin(stacked, axis=0))

    def _allowed(self, op: Collective, layout: Layout, topology: Topology) -> dict[str, Way]:
        """The ways that the operation, the machine and the settings leave."""
        wanted = _known("algorithm", self.algorithm, {way.name for way in WAYS.values()})
        serving = {one.name for one in serving_on(op, layout, topology)}
        left = {name: way for name, way in WAYS.items() if name in serving and op in way.ops}
        if "two_level" in left:
            left.pop("direct", None)
        return {
            name: way
            for name, way in left.items()
            if wanted in (None, way.name)
            and (self.collnet or not way.collnet)
            and (self.nvls or not way.name.startswith("NVLS"))
        }

    def _protocols(self, way: Way) -> list[str]:
        wanted = _known("protocol", self.protocol, self.fitted.protocols)
        return [protocol for protocol in way.protocols if wanted in (None, protocol)]

    def _candidate(self, way: Way, protocol: str, asked: tuple[Cost, int], sizes: Floats, case: Case) -> Candidate:
        cost, inner = asked
        wire = _wire(self.fitted, protocol, cost.kinds, case, inner if way.in_network else way.name)
        return Candidate(way.name, protocol, cost, *seconds(cost, sizes, wire))


@lru_cache(maxsize=4096)
def _wire(fitted: Calibration, protocol_name: str, kinds: tuple[Link, ...], case: Case, doing: int | str) -> Wire:
    """What turns prices into seconds; `doing` is how many ranks the switches reduce for, else the algorithm's name.

    Remembered: an estimate asks for few of them, many times.
    """
    bandwidth, latency = rates(kinds, case)
    uses, corner = [fitted.use(link.kind) for link in kinds], case.corner
    reducing = doing if isinstance(doing, int) else 0
    way: LinkWay = "staged" if not _joined(kinds) else "exchange" if doing == "SendRecv" else "efficiency"
    reached = [use.reducing(reducing, corner) if reducing else use.share(way, corner) for use in uses]
    protocol = fitted.in_network if reducing and fitted.in_network else fitted.protocols[protocol_name]
    return Wire(
        bandwidth=bandwidth * np.array(reached) * protocol.payload,
        latency=latency + np.array([use.hop for use in uses]),
        launch=protocol.base,
        start=np.array([use.start for use in uses]),
        message=(protocol.inside, protocol.network),
        chunk=protocol.chunk,
        ramp=np.array([use.ramp * (1.0 if use.in_network is None else protocol.ramp) for use in uses]),
        steepness=fitted.steepness,
    )


_OF_GPUS = ("nvlink*", "xgmi-mi*", "lpu*")


def _joined(kinds: tuple[Link, ...]) -> bool:
    """Whether GPUs have links of their own among them; without, they go through the host's memory."""
    return any(fnmatch.fnmatchcase(link.kind, pattern) for link in kinds for pattern in _OF_GPUS)


def _known(what: str, given: str | None, names: Iterable[str]) -> str | None:
    """The name that was given, as NCCL writes it, whatever its case; InputError when there is none such."""
    if given is None:
        return None
    spelt = {name.lower(): name for name in names}
    if given.lower() not in spelt:
        raise InputError(what, given, "NCCL has no such", among=sorted(spelt.values()))
    return spelt[given.lower()]
