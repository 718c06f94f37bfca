"""What does NCCL's search find: how many channels, how fast, over what kind of path?"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import IntEnum
from math import isfinite

from commsim.errors import InputError


class Path(IntEnum):
    """How two devices reach each other, from the nearest to the farthest, in NCCL's words (2.30, src/graph/topo.h)."""

    LOC = 0
    NVL = 1
    NVB = 2
    C2C = 3
    PIX = 4
    PXB = 5
    P2C = 6
    PXN = 7
    PHB = 8
    SYS = 9
    NET = 10
    DIS = 11


class Pattern(IntEnum):
    """The shape of a channel within a node, in NCCL's numbers."""

    BALANCED_TREE = 1
    SPLIT_TREE = 2
    TREE = 3
    RING = 4
    NVLS = 5
    COLLNET_DIRECT = 6


@dataclass(frozen=True)
class Graph:
    """The channels of one algorithm within a node; none when the search found none, or was not asked.

    `speed_intra` and `speed_inter` are what one channel carries between GPUs and to the NICs (B/s), `type_intra` and
    `type_inter` the farthest path that it takes there; `same_channels` says that all have the GPUs in one order, and
    `latency_inter` is the NIC's own latency (s).
    """

    pattern: Pattern
    channels: int = 0
    speed_intra: float = 0.0
    speed_inter: float = 0.0
    type_intra: Path = Path.LOC
    type_inter: Path = Path.LOC
    same_channels: bool = False
    cross_nic: int = 0
    latency_inter: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what no graph has. InputError."""
        given = (self.channels, self.speed_intra, self.speed_inter, self.latency_inter)
        if not all(isfinite(figure) and figure >= 0 for figure in given):
            expected = "channels, speeds and latency are finite and not negative"
            raise InputError(f"graph of pattern {self.pattern.name}", given, expected)


@dataclass(frozen=True)
class Graphs:
    """The graphs of a communicator: for each kind the least over its nodes."""

    ring: Graph = field(default_factory=lambda: Graph(Pattern.RING))
    tree: Graph = field(default_factory=lambda: Graph(Pattern.BALANCED_TREE))
    collnet_chain: Graph = field(default_factory=lambda: Graph(Pattern.TREE))
    collnet_direct: Graph = field(default_factory=lambda: Graph(Pattern.COLLNET_DIRECT))
    nvls: Graph = field(default_factory=lambda: Graph(Pattern.NVLS))

    def of(self, algorithm: str) -> Graph:
        """Return the graph that an algorithm of NCCL runs on."""
        graph: Graph = getattr(self, _RUNS_ON[algorithm])
        return graph

    @property
    def channels(self) -> int:
        """Channels of rings and trees alike: the fewer of the two."""
        return min(self.ring.channels, self.tree.channels)

    def named(self) -> dict[str, Graph]:
        """Return the graphs by their names."""
        return {one.name: getattr(self, one.name) for one in fields(self)}


_RUNS_ON = {
    "Tree": "tree",
    "Ring": "ring",
    "CollNetDirect": "collnet_direct",
    "CollNetChain": "collnet_chain",
    "NVLS": "nvls",
    "NVLSTree": "nvls",
    "PAT": "tree",
}
