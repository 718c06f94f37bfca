"""What bandwidth does NCCL's tuner expect of an algorithm and a protocol?

As `ncclTopoTuneModel` of NCCL 2.18 to 2.30 counts it (src/graph/tuning.cc).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commsim.libraries.nccl.constants import row

if TYPE_CHECKING:
    from collections.abc import Callable

    from commsim.libraries.nccl.communicator import Communicator
    from commsim.libraries.nccl.graphs import Graph

GATHERS = ("all_gather", "reduce_scatter")
_ROOTED = ("broadcast", "reduce")
_HOPPER, _FEWEST_HEADS, _OLD_NVLS = 90, 2, 5 / 6
_SIMPLE_TREE = 3


def algbw(comm: Communicator, op: str, algorithm: str, protocol: str) -> float:
    """Return bytes over time for large sizes, B/s; 0 when the graph has no channels for it.

    The size of an all-gather or a reduce-scatter is that of the whole buffer over all ranks.
    """
    busbw = _BUS[algorithm](comm, op, protocol)
    if op in GATHERS and algorithm != "Ring" and (algorithm != "NVLS" or _counts_wire(comm)):
        return busbw
    return busbw * _per_bus(comm, op, algorithm)


def steps(ranks: int, op: str) -> int:
    """Return how often a ring sends: 2(n-1) to reduce to all, n-1 to gather or scatter, n from or to a root."""
    if op == "all_reduce":
        return 2 * (ranks - 1)
    return ranks - 1 if op in GATHERS else ranks


def _per_bus(comm: Communicator, op: str, algorithm: str) -> float:
    """Bytes over time for each byte/s of the bus."""
    if algorithm in ("NVLS", "NVLSTree") and comm.constants.rules.nvls != "efficiency":
        plain_tree = algorithm == "NVLSTree" and comm.constants.rules.nvls == "plain"
        return 0.7 * comm.nodes / (2 * (comm.nodes - 1)) if plain_tree else _OLD_NVLS
    whole = algorithm in ("Ring", "NVLS", "NVLSTree")
    return comm.ranks / steps(comm.ranks, op) if whole else 0.5


def _counts_wire(comm: Communicator) -> bool:
    """Whether the version counts the gathers of NVLS by what goes over the wire."""
    return comm.constants.rules.nvls not in ("plain", "narrower")


def _channel(comm: Communicator, graph: Graph) -> float:
    """What a channel carries: up to two nodes the network is not the limit of a tree, so the node's speed counts."""
    return graph.speed_intra if comm.nodes <= 2 else graph.speed_inter  # noqa: PLR2004 - NCCL's own two


def _ring(comm: Communicator, op: str, protocol: str) -> float:
    graph, shares = comm.graphs.ring, comm.constants.shares
    channels = comm.graphs.channels
    whole = channels * _channel(comm, graph)
    if protocol == "LL":
        far = comm.nodes > 1 or op in ("all_reduce", "reduce")
        return min(comm.ll_cap, whole * shares.ring_ll[0 if far else 1])
    if protocol == "LL128":
        cap = row(comm.constants.caps.ring_ll128, comm.capability)[comm.column]
        return min(whole * shares.ring_ll128[1 if comm.per_node < 2 else 0], channels * cap)  # noqa: PLR2004
    return whole


def _tree(comm: Communicator, _op: str, protocol: str) -> float:
    graph, shares, caps = comm.graphs.tree, comm.constants.shares, comm.constants.caps
    channels = comm.graphs.channels
    cap = row(caps.tree, comm.capability)[comm.column]
    whole = min(channels * _channel(comm, graph) * shares.tree, channels * cap)
    if protocol == "LL":
        whole = min(whole * shares.tree_ll, comm.ll_cap)
    if protocol == "LL128":
        share, cap = shares.tree_ll128[comm.nodes > 1], row(caps.tree_ll128, comm.capability)[comm.column]
        whole = min(whole * share, channels * cap)
    return whole * _simple(comm)


def _simple(comm: Communicator) -> float:
    """What is left when all network traffic of a tree goes through one GPU."""
    return comm.constants.shares.simple_tree if comm.graphs.tree.pattern == _SIMPLE_TREE else 1.0


def _pat(comm: Communicator, _op: str, _protocol: str) -> float:
    return comm.graphs.channels * _channel(comm, comm.graphs.tree) * comm.constants.shares.pat


def _collnet_chain(comm: Communicator, _op: str, _protocol: str) -> float:
    graph = comm.graphs.collnet_chain
    return graph.channels * graph.speed_intra


def _collnet_direct(comm: Communicator, op: str, _protocol: str) -> float:
    graph = comm.graphs.collnet_direct
    if not graph.channels:
        return 0.0
    if op in GATHERS:
        return comm.per_node * _gather(comm, graph)
    surplus = comm.per_node / graph.channels  # of GPUs over NICs; half of it costs
    share = comm.constants.shares.collnet if comm.capability >= _HOPPER else 1.0
    return graph.channels * graph.speed_intra / ((surplus + 1) / 2) * share


def _gather(comm: Communicator, graph: Graph) -> float:
    """What each rank gathers through its own NIC."""
    if comm.constants.rules.collnet_gathers == "narrower":
        return min(graph.speed_intra, 0.9 * graph.speed_inter)
    weight = (comm.per_node - 1) / 7
    return graph.speed_intra * (weight * 0.85 + (1 - weight) * 0.95)


def _nvls(comm: Communicator, op: str, _protocol: str) -> float:
    graph, form = comm.graphs.nvls, comm.constants.rules.nvls
    narrower = min(graph.speed_intra, graph.speed_inter)
    if form == "plain":
        return graph.channels * _channel(comm, graph)
    if form == "efficiency":
        return _heads(comm, min(_in_switch(comm, op), graph.speed_inter))
    if form == "narrower, gathers apart" and op in GATHERS:
        narrower = min(graph.speed_intra * (comm.per_node - 1) / comm.per_node, 0.9 * graph.speed_inter)
    return graph.channels * narrower


def _nvls_tree(comm: Communicator, op: str, _protocol: str) -> float:
    graph, form, pair = comm.graphs.nvls, comm.constants.rules.nvls, comm.nodes <= 2  # noqa: PLR2004
    if form == "plain":
        return graph.channels * _channel(comm, graph)
    if form == "efficiency":
        cap = row(comm.constants.caps.nvls_tree, comm.capability)[comm.column]
        return _heads(comm, min(_in_switch(comm, op), graph.speed_inter * (2 if pair else 1), cap))
    return graph.channels * min(graph.speed_intra, graph.speed_inter if pair else graph.speed_inter / 2)


def _heads(comm: Communicator, each: float) -> float:
    """The sum over the heads, of which there must be two."""
    return comm.graphs.nvls.channels * each if comm.graphs.nvls.channels >= _FEWEST_HEADS else 0.0


def _in_switch(comm: Communicator, op: str) -> float:
    """What a head makes of the switch: an all-reduce goes up and down at once, its own share stays."""
    graph = comm.graphs.nvls
    others = (graph.channels - 1) / max(1, graph.channels)
    both = 2.0 if op == "all_reduce" else (comm.per_node - 1) / comm.per_node
    return graph.speed_intra * row(comm.constants.shares.nvls, comm.capability) * others * both


_BUS: dict[str, Callable[[Communicator, str, str], float]] = {
    "Tree": _tree,
    "Ring": _ring,
    "CollNetDirect": _collnet_direct,
    "CollNetChain": _collnet_chain,
    "NVLS": _nvls,
    "NVLSTree": _nvls_tree,
    "PAT": _pat,
}
