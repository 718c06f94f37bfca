"""Which algorithms and protocols may a communicator's tuner take for a collective?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commsim.libraries.nccl.bandwidth import GATHERS
from commsim.libraries.nccl.communicator import MOST_COLLNET_RANKS, MOST_NVLS_RANKS
from commsim.libraries.nccl.constants import ALGORITHMS, PROTOCOLS
from commsim.libraries.nccl.graphs import Path

if TYPE_CHECKING:
    from collections.abc import Callable

    from commsim.libraries.nccl.communicator import Communicator

Pair = tuple[str, str]
_SIMPLE_ONLY = ("CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT")
_VOLTA, _HOPPER, _ATOMICS = 70, 90, 60
_BY_SETTING = 2
"""What NCCL's switches say when they leave the choice to NCCL."""


def allowed(comm: Communicator, op: str) -> list[Pair]:
    """Return the pairs (algorithm, protocol) that machine, version and settings leave, in NCCL's order."""
    able = [name for name in ALGORITHMS if op in comm.constants.does[name] and _GATES[name](comm, op)]
    left = [name for name in able if _asked(comm, op, name)]
    if not left and comm.constants.rules.ring_stays == "when nothing is left":
        left = ["Ring"]
    return [(name, protocol) for name in left for protocol in PROTOCOLS if _protocol(comm, op, name, protocol)]


def _asked(comm: Communicator, op: str, algorithm: str) -> bool:
    """Whether NCCL_ALGO leaves the algorithm."""
    rules = comm.constants.rules
    if algorithm == "Ring" and op != "all_reduce" and rules.ring_stays == "outside all_reduce":
        return True
    asked = comm.knobs.algorithms(by_collective=rules.settings_by_collective).get(op)
    return asked is None or algorithm in asked


def _protocol(comm: Communicator, op: str, algorithm: str, protocol: str) -> bool:
    if algorithm in _SIMPLE_ONLY and protocol != "Simple":
        return False
    asked = comm.knobs.protocols(by_collective=comm.constants.rules.settings_by_collective).get(op)
    if asked is not None:
        return protocol in asked
    return protocol != "LL128" or _ll128(comm, algorithm)


def _ll128(comm: Communicator, algorithm: str) -> bool:
    """Whether LL128 is on by itself: where 128 bytes are known to arrive whole."""
    graph, rules = comm.graphs.of(algorithm), comm.constants.rules
    beyond = comm.capability >= _HOPPER and comm.knobs.ll128_c2c
    if graph.type_inter > (Path.PXN if beyond else Path.PXB) or graph.type_intra > Path.NVB:
        return False
    mixed = comm.highest_capability not in (0, comm.capability)
    if mixed and not (rules.ll128_mixed and comm.capability >= _HOPPER):
        return False
    known = rules.ll128_capabilities
    return comm.capability in known if known else comm.capability >= _VOLTA


def _nvls(comm: Communicator, op: str) -> bool:
    """In the node's switches; between nodes only where the network reduces too."""
    if not comm.nvls or (op in GATHERS and comm.most_local > MOST_NVLS_RANKS):
        return False
    return comm.nodes == 1 or (comm.collnet and _gathers_at_heads(comm, op))


def _gathers_at_heads(comm: Communicator, op: str) -> bool:
    """Gathering through the network needs a NIC for each rank."""
    return op not in GATHERS or comm.most_local <= comm.collnet_heads


def _collnet_direct(comm: Communicator, op: str) -> bool:
    fits = comm.nvswitch and comm.most_local <= MOST_COLLNET_RANKS
    return comm.collnet and fits and _gathers_at_heads(comm, op)


def _pat(comm: Communicator, _op: str) -> bool:
    """By itself only when each node has one rank."""
    setting = comm.knobs.pat_enable
    return comm.capability >= _ATOMICS and (comm.ranks == comm.nodes if setting == _BY_SETTING else bool(setting))


_GATES: dict[str, Callable[[Communicator, str], bool]] = {
    "Tree": lambda _comm, _op: True,
    "Ring": lambda _comm, _op: True,
    "CollNetDirect": _collnet_direct,
    "CollNetChain": lambda comm, _op: comm.collnet and comm.most_local <= MOST_COLLNET_RANKS,
    "NVLS": _nvls,
    "NVLSTree": lambda comm, _op: comm.nvls and comm.nodes > 1,
    "PAT": _pat,
}
