"""Which ways of doing a collective has NCCL, and what is the price of each in a group?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from commsim.collectives.algorithms import serving_on
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

if TYPE_CHECKING:
    from collections.abc import Callable

    from commsim.collectives.layout import Layout
    from commsim.collectives.price import Cost
    from commsim.hardware.topology import Topology

SENDS = "SendRecv"
"""What NCCL does without an algorithm: each rank sends to, and receives from, its peers."""


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
_SHORT = ("LL", "Simple")
WAYS = {
    "ring": Way("Ring", _ROOTED),
    "mesh_ring": Way("Ring", (ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER)),
    "tree": Way("Tree", (ALL_REDUCE,)),
    "nvls": Way("NVLS", (ALL_REDUCE,), _SIMPLE, in_network=True),
    "nvls_tree": Way("NVLSTree", (ALL_REDUCE,), _SIMPLE, in_network=True),
    "nvls_sharp": Way("NVLS", (ALL_REDUCE,), _SIMPLE, in_network=True, collnet=True),
    "sharp": Way("CollNetDirect", (ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER), _SIMPLE, collnet=True),
    "pat": Way("PAT", (ALL_GATHER, REDUCE_SCATTER), _SIMPLE),
    "direct": Way(SENDS, (ALL_TO_ALL,), _SHORT),
    "two_level": Way(SENDS, (ALL_TO_ALL,), _SHORT),
    "pair": Way(SENDS, (SEND_RECV,), _SHORT),
}
"""NCCL's algorithms by their names in our table (NCCL 2.30: which collective may pick which). NVLS for all-gather and
reduce-scatter exists, and is seldom picked; an all-to-all goes along rails (PXN), so `direct` serves one domain.
Where GPUs are wired to each other, its channels are rings over different links, together a `mesh_ring`."""
ALGORITHMS = frozenset(way.name for way in WAYS.values())


def ways(
    op: Collective, layout: Layout, topology: Topology, leave: Callable[[Way], bool]
) -> dict[str, tuple[Way, Cost]]:
    """Return NCCL's ways that serve a group of a machine, each once by its name in the table, with their prices.

    Only what the settings `leave` is priced.
    """
    serving = {one.name for one in serving_on(op, layout, topology)}
    left = {name: way for name, way in WAYS.items() if name in serving and op in way.ops and leave(way)}
    if "two_level" in left:
        left.pop("direct", None)
    if "pat" in left and layout.within(topology.domain_size) > 1:
        left.pop("pat")
    found = {name: (way, priced(name, op, layout, topology)) for name, way in left.items()}
    if "mesh_ring" in found:
        found.pop("mesh_ring" if _busiest(found["ring"][1]) <= _busiest(found["mesh_ring"][1]) else "ring")
    return found


def _busiest(cost: Cost) -> float:
    """The time that one byte takes on the busiest link, at its full bandwidth."""
    return float((cost.load / np.array([link.bandwidth for link in cost.kinds])).max())
