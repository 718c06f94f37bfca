"""What of a group of ranks decides how long NCCL takes?"""

from __future__ import annotations

import fnmatch
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from commsim.collectives.algorithms import Group
from commsim.hardware.routing import between
from commsim.libraries.nccl.constants import step
from commsim.libraries.nccl.graphs import Path
from commsim.libraries.nccl.group import communicator

if TYPE_CHECKING:
    from commsim.collectives.layout import Layout
    from commsim.hardware.topology import Link, Topology
    from commsim.libraries.nccl.communicator import Communicator
    from commsim.libraries.nccl.knobs import Knobs

OF_GPUS = ("nvlink*", "xgmi-mi*", "lpu*")
"""Kinds of link that GPUs have among them."""
_USUAL, _USUAL_BETWEEN, _USUAL_SWITCHING = 24, 16, 16
"""Channels where NCCL's search cannot be asked: what it finds on boxes of Hopper, alone and between nodes."""
_HEADS, _RAILS = 32, 8
_PEER_BANDWIDTH = 14e9
"""Of a NIC for which NCCL opens a channel to a peer behind it (NCCL_P2P_PER_CHANNEL_NET_BW)."""
_TOGETHER = 8
"""Peers that a channel serves at once."""


@dataclass(frozen=True, eq=False)
class Team:
    """The ranks of a group, on how many of NCCL's nodes they are, and what they run with.

    `channels` run for rings and trees, `switching` for NVLS. `rings` is the bandwidth of the wires that NCCL's search
    found for its rings together (0: not asked), `nic` what it counts for a rank's NICs. `staged` of the neighbours in a
    node reach each other through the host's memory, `through_host` tells whether their NICs are reached so. `inside`
    and `outside` are the kinds of link that messages inside a node and between nodes go over.
    """

    ranks: int
    nodes: int
    channels: int
    switching: int
    inside: str
    outside: str
    staged: float
    through_host: bool = False
    rings: float = 0.0
    nic: float = math.inf
    comm: Communicator | None = None

    @property
    def local(self) -> int:
        """Ranks of a node, rounded down."""
        return max(1, self.ranks // self.nodes)

    @property
    def heads(self) -> int:
        """Ranks of a node that reduce in its switches."""
        return min(self.local, _HEADS)

    @property
    def sending(self) -> int:
        """Channels of sends and receives: a power of two."""
        return int(2 ** math.ceil(math.log2(max(1, self.channels))))

    def behind_network(self, peers: int) -> int:
        """Return how many channels send to so many peers behind the network at once (NCCL 2.30, src/init.cc)."""
        each = max(1, math.ceil(min(self.nic, 1e12) / _PEER_BANDWIDTH))
        while each > 1 and each * math.ceil(self.ranks / _TOGETHER) > self.sending:
            each //= 2
        return min(each * min(peers, _TOGETHER), self.sending)


def team(layout: Layout, topology: Topology, knobs: Knobs, version: str = "") -> Team:
    """Return what decides on NCCL's time in (the first of) these groups of a machine."""
    group, kinds = Group.of(layout, topology), topology.kinds
    inside, outside = _inside(kinds), next((one.kind for one in kinds if one.kind.endswith(" nic")), "")
    comm = communicator(layout, topology, knobs, version)
    if comm is None:
        usual = _USUAL if group.outer == 1 else _USUAL_BETWEEN
        joined = of_gpus(inside)
        return Team(group.size, group.outer, usual, _USUAL_SWITCHING, inside, outside, staged=float(not joined))
    ring = comm.graphs.ring
    return Team(
        ranks=comm.ranks,
        nodes=comm.nodes,
        channels=comm.channels,
        switching=comm.nvls_channels,
        inside=inside,
        outside=outside,
        staged=_staged(layout, topology, comm.local) if comm.local > 1 and ring.type_intra > Path.PXB else 0.0,
        through_host=comm.nodes > 1 and ring.type_inter > Path.PXN,
        rings=comm.graphs.channels * ring.speed_intra * _wire(comm, kinds, inside) if comm.nodes == 1 else 0.0,
        nic=ring.speed_inter * comm.graphs.channels / min(comm.local, _RAILS),
        comm=comm,
    )


def _staged(layout: Layout, topology: Topology, local: int) -> float:
    """The share of a node's neighbours in a ring whose way leads through a processor; all where none is seen to."""
    cell, ranks = topology.cell, layout.on(topology).ranks()[0][:local] % topology.gpus_per_node
    ways = [between(cell, int(a), int(b), 0).chain for a, b in zip(ranks, np.roll(ranks, -1))]
    hosted = [any(cell.nodes[end]["part"] == "cpu" for edge in way for end in edge) for way in ways]
    return sum(hosted) / len(hosted) or 1.0


def _inside(kinds: tuple[Link, ...]) -> str:
    """The kind of link that GPUs reach each other by: their own, or PCIe."""
    ranked = sorted(kinds, key=lambda link: (not of_gpus(link.kind), not link.kind.startswith("pcie")))
    return ranked[0].kind


def of_gpus(kind: str) -> bool:
    """Tell whether GPUs have this kind of link among them."""
    return any(fnmatch.fnmatchcase(kind, pattern) for pattern in OF_GPUS)


def _wire(comm: Communicator, kinds: tuple[Link, ...], inside: str) -> float:
    """How much more the wire of an NVLink carries than NCCL counts for it; 0 where GPUs have no NVLink."""
    if not inside.startswith("nvlink"):
        return 0.0
    wire = next(float(link.bandwidth) for link in kinds if link.kind == inside)
    return wire / step(comm.constants.links.nvlink, comm.capability)
