"""What latency does NCCL's tuner expect of an algorithm and a protocol?

As `ncclTopoTuneModel` of NCCL 2.18 to 2.30 counts it (src/graph/tuning.cc).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commsim.libraries.nccl.bandwidth import steps
from commsim.libraries.nccl.constants import PROTOCOLS
from commsim.libraries.nccl.graphs import Path

if TYPE_CHECKING:
    from collections.abc import Callable

    from commsim.libraries.nccl.communicator import Communicator

_NANOSECOND = 1e-9
_POSTING = {"amd": 2e-6}
_POSTING_ELSEWHERE = 1e-6
_PAT_HOP, _PAT_RANK = 1 / 3.5, 2.8e-6


def latency(comm: Communicator, op: str, algorithm: str, protocol: str) -> float:
    """Return the time of the smallest message, s."""
    base = comm.constants.latency.base[algorithm][PROTOCOLS.index(protocol)]
    return base + _HOPS[algorithm](comm, op, protocol)


def _intra(comm: Communicator, algorithm: str, protocol: str) -> float:
    """A hop inside the node: NVLink's cost when every path is NVLink, else PCIe's."""
    table, number = comm.constants.latency, PROTOCOLS.index(protocol)
    if comm.graphs.of(algorithm).type_intra == Path.NVL:
        return table.nvlink[algorithm][number]
    if (comm.cpu, algorithm, protocol) == ("power", "Tree", "Simple"):
        return table.pci["Ring"][number]
    return table.pci[algorithm][number]


def _inter(comm: Communicator, algorithm: str, protocol: str) -> float:
    """A hop between nodes; with Simple it counts the NIC twice, as data is followed by a flush."""
    lone = comm.per_node == 1 and comm.constants.rules.lone_rank_on_tree_hop
    hop = comm.constants.latency.net["Tree" if lone else algorithm][PROTOCOLS.index(protocol)]
    nic = comm.graphs.of(algorithm).latency_inter
    return hop + nic * (2 if protocol == "Simple" else 1)


def _doublings(nodes: int) -> int:
    """The depth of a binary tree of nodes: log2, rounded down."""
    return nodes.bit_length() - 1


def _ring(comm: Communicator, op: str, protocol: str) -> float:
    if op in ("broadcast", "reduce"):
        return _rooted(comm, protocol)
    network = _network_steps(comm, op)
    inside = max(_intra(comm, "Ring", protocol), _posting(comm, protocol))
    return (steps(comm.ranks, op) - network) * inside + network * _inter(comm, "Ring", protocol)


def _network_steps(comm: Communicator, op: str) -> int:
    """How many of a ring's steps go between nodes."""
    if comm.nodes == 1:
        return 0
    every = op == "all_reduce" and comm.constants.rules.ring_network_steps == "nodes"
    return (2 if op == "all_reduce" else 1) * (comm.nodes if every else comm.nodes - 1)


def _posting(comm: Communicator, protocol: str) -> float:
    """What a proxy needs to post a message: a ring between nodes cannot step faster, inside them neither."""
    if comm.nodes == 1:
        return 0.0
    given = comm.knobs.net_overhead
    usual = _POSTING.get(comm.cpu, _POSTING_ELSEWHERE)
    return (usual if given is None else given * _NANOSECOND) * (3 if protocol == "Simple" else 1)


def _rooted(comm: Communicator, protocol: str) -> float:
    """One hop when every channel has the GPUs in one order, else as many as there are ranks."""
    same = comm.graphs.ring.same_channels
    algorithm = "Tree" if protocol == "Simple" and not same else "Ring"
    if comm.nodes > 1:
        hop = comm.constants.latency.net[algorithm][PROTOCOLS.index(protocol)]
    else:
        on_nvlink = comm.graphs.ring.type_intra == Path.NVL
        table = comm.constants.latency.nvlink if on_nvlink else comm.constants.latency.pci
        as_ring = algorithm == "Ring" or (comm.cpu == "power" and not on_nvlink)
        hop = table["Ring" if as_ring else "Tree"][PROTOCOLS.index(protocol)]
    return hop if same else comm.ranks * hop


def _tree(comm: Communicator, _op: str, protocol: str) -> float:
    """A chain inside the node, a binary tree between nodes, up and down."""
    inside = (comm.local - 1) * _intra(comm, "Tree", protocol)
    return 2 * (inside + _doublings(comm.nodes) * _inter(comm, "Tree", protocol))


def _collnet_direct(comm: Communicator, _op: str, protocol: str) -> float:
    served = comm.local - 1
    inside = min(1, served) * _intra(comm, "CollNetDirect", protocol) + served * comm.constants.latency.arity
    return 2 * inside + _inter(comm, "CollNetDirect", protocol)


def _collnet_chain(comm: Communicator, _op: str, protocol: str) -> float:
    inside = (comm.local - 1) * _intra(comm, "CollNetChain", protocol)
    return 2 * inside + _inter(comm, "CollNetChain", protocol)


def _nvls(comm: Communicator, _op: str, protocol: str) -> float:
    return _intra(comm, "NVLS", protocol) + (_inter(comm, "NVLS", protocol) if comm.nodes > 1 else 0.0)


def _nvls_tree(comm: Communicator, _op: str, protocol: str) -> float:
    along = comm.constants.rules.nvls_tree_hops == "nodes"
    hops = comm.nodes - 1 if along else _doublings(comm.nodes)
    return _intra(comm, "NVLSTree", protocol) + 2 * hops * _inter(comm, "NVLSTree", protocol)


def _pat(comm: Communicator, _op: str, protocol: str) -> float:
    return _doublings(comm.nodes) * _inter(comm, "PAT", protocol) * _PAT_HOP + comm.ranks * _PAT_RANK


_HOPS: dict[str, Callable[[Communicator, str, str], float]] = {
    "Tree": _tree,
    "Ring": _ring,
    "CollNetDirect": _collnet_direct,
    "CollNetChain": _collnet_chain,
    "NVLS": _nvls,
    "NVLSTree": _nvls_tree,
    "PAT": _pat,
}
