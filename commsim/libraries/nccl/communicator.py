"""Who takes part in a collective, over what, and with which settings: all that NCCL's tuner knows of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal, get_args

from commsim.errors import InputError
from commsim.libraries.nccl.constants import Constants, constants, row, step
from commsim.libraries.nccl.knobs import Knobs

if TYPE_CHECKING:
    from commsim.libraries.nccl.graphs import Graphs

Cpu = Literal["intel", "amd", "zhaoxin", "mixed", "arm", "power"]
X86: tuple[Cpu, ...] = ("intel", "amd", "zhaoxin", "mixed")
MOST_COLLNET_RANKS = 8
"""Of a node with CollNet (NCCL_MAX_DIRECT_ARITY + 1)."""
MOST_NVLS_RANKS = 32
"""Of a node that gathers or scatters with NVLS (NCCL_MAX_NVLS_ARITY)."""


@dataclass(frozen=True)
class Communicator:
    """The ranks of a collective, the graphs that they have, and the NCCL that they run.

    A node is what GPUs reach without a network: a box, or a whole NVLink domain. `capability` is the lowest compute
    capability (90 for 9.0), `highest_capability` the highest when they differ; `cpu` the vendor, or the architecture
    when it is not x86; `nvswitch` says that GPUs are joined by switches.
    """

    ranks: int
    nodes: int
    capability: int
    graphs: Graphs
    cpu: Cpu = "intel"
    highest_capability: int = 0
    nvswitch: bool = True
    knobs: Knobs = field(default_factory=Knobs)
    constants: Constants = field(default_factory=constants)

    def __post_init__(self) -> None:
        """Refuse numbers that no communicator has. InputError."""
        for name, given in (("ranks", self.ranks), ("nodes", self.nodes), ("compute capability", self.capability)):
            if isinstance(given, bool) or not isinstance(given, int) or given < 1:
                raise InputError(name, given, "a whole number of 1 or more belongs here")
        if self.ranks < self.nodes:
            raise InputError("ranks", self.ranks, f"at least {self.nodes} belong here, one for each node")
        if self.cpu not in get_args(Cpu):
            raise InputError("cpu", self.cpu, "NCCL tells no such processors apart", among=get_args(Cpu))

    @property
    def per_node(self) -> float:
        """Ranks of a node, on average."""
        return self.ranks / self.nodes

    @property
    def local(self) -> int:
        """Ranks of a node as NCCL's latencies count them: rounded down."""
        return self.ranks // self.nodes

    @property
    def most_local(self) -> int:
        """Ranks of the fullest node, when they are spread evenly."""
        return -(-self.ranks // self.nodes)

    @property
    def column(self) -> int:
        """Which of the three sizes of a table counts: one node, two, more."""
        return min(self.nodes, 3) - 1

    @property
    def collnet(self) -> bool:
        """Whether reduction in the network is used: when asked for, found, and worth while by NCCL's threshold."""
        found = self.graphs.collnet_chain.channels > 0
        return bool(self.knobs.collnet_enable) and found and self.nodes >= self.knobs.collnet_node_threshold

    @property
    def nvls(self) -> bool:
        """Whether the switches of the node may reduce and multicast."""
        return bool(self.knobs.nvls_enable) and self.graphs.nvls.channels > 0

    @property
    def collnet_heads(self) -> int:
        """Ranks of a node that speak to the network with CollNet."""
        return self.graphs.nvls.channels if self.nvls else self.graphs.collnet_direct.channels

    @cached_property
    def channels(self) -> int:
        """Channels that run for rings and trees (2.30, src/graph/connect.cc, ncclTopoPostset)."""
        knobs, ring, chain = self.knobs, self.graphs.ring, self.graphs.collnet_chain
        most = self.constants.channels.most
        count = min(most, 2 * self.graphs.channels)
        if self.collnet and chain.speed_intra > chain.speed_inter and self.ranks > self.nodes:
            count = min(most, count + count // 2)
        if self.capability >= _HOPPER and self.nodes > 1 and ring.speed_intra > _FAST and count < _FEW:
            count *= 2
        count = min([count, *(limit for limit in (knobs.max_nchannels, knobs.max_ctas) if limit is not None)])
        count = max([count, *(least for least in (knobs.min_nchannels, knobs.min_ctas) if least is not None)])
        return min(most, max(count, self.nvls_channels) if self.constants.channels.as_nvls else count)

    @property
    def nvls_channels(self) -> int:
        """Channels that run for NVLS, before 2.30 counts the NICs of Blackwell's nodes; 0 without NVLS."""
        if not self.nvls:
            return 0
        usual = step(self.constants.channels.nvls, self.capability)[self.nodes > 1]
        return usual if self.knobs.nvls_nchannels is None else self.knobs.nvls_nchannels

    @property
    def cap_row(self) -> int:
        """The compute capability by which LL is limited: between nodes it is the CPU's vendor that counts."""
        if self.nodes == 1:
            return self.capability
        like_amd = self.cpu == "amd" or (self.cpu == "mixed" and self.constants.rules.mixed_vendors_as_amd)
        return _AMPERE if like_amd else 0

    @property
    def ll_cap(self) -> float:
        """The most that LL carries over all channels, B/s."""
        return row(self.constants.caps.ll, self.cap_row)[self.column]


_AMPERE, _HOPPER, _FAST, _FEW = 80, 90, 45e9, 16
