"""Under which switch, bridge and processor does each device stand?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import networkx as nx

if TYPE_CHECKING:
    from commsim.hardware.topo_matrix.text import Matrix

Group = tuple[int, ...]
CLOSENESS = {"X": 0, "PIX": 1, "PXB": 2, "PHB": 3, "NODE": 4, "SYS": 5}
_SAME_SWITCH, _SAME_TREE, _SAME_DOMAIN, _APART = 1, 2, 4, 5


@dataclass(frozen=True)
class Places:
    """Devices by what they share: a NUMA domain (one CPU vertex) holds trees of PCIe switches, a tree holds switches.

    A tree of one switch with one device is no switch at all: the device stands in the CPU's own slot.
    """

    domains: tuple[tuple[tuple[Group, ...], ...], ...]
    notes: tuple[str, ...] = ()


def places(matrix: Matrix) -> Places:
    """Return the places that the codes tell; NVLink codes hide them, there the affinity columns decide."""
    everything = range(len(matrix.devices))
    switches = _joined(everything, matrix, _SAME_SWITCH)
    trees = _joined(everything, matrix, _SAME_TREE)
    domains = _with_affinity(_joined(everything, matrix, _SAME_DOMAIN), matrix)
    notes = []
    if coherent(matrix):
        domains, dealt = _adapters_dealt(domains, matrix)
        notes += [dealt] if dealt else []
    inside = [[[s for s in switches if s[0] in t] for t in trees if t[0] in d] for d in domains]
    found = tuple(tuple(tuple(tree) for tree in domain) for domain in inside)
    return Places(found, (*notes, *_contradictions(matrix, (switches, trees, domains))))


def coherent(matrix: Matrix) -> bool:
    """Tell whether the GPUs' memory is a NUMA node: they hang on their CPU by C2C, and SYS to NICs tells nothing."""
    return all(matrix.affinity[gpu].get("memory", "").isdecimal() for gpu in matrix.gpus)


def _joined(devices: range, matrix: Matrix, closest: int) -> list[Group]:
    """The groups of devices that stand so close to each other, in order."""
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(devices)
    graph.add_edges_from(pair for pair, code in matrix.codes.items() if CLOSENESS.get(code, _APART) <= closest)
    return sorted(tuple(sorted(group)) for group in nx.connected_components(graph))


def _with_affinity(domains: list[Group], matrix: Matrix) -> list[Group]:
    """Merge the domains of GPUs whose relation NVLink hides, when their affinity is the same and no code says SYS."""
    merged = list(domains)
    for number, a in enumerate(matrix.gpus):
        for b in matrix.gpus[number + 1 :]:
            ours, theirs = (next(group for group in merged if gpu in group) for gpu in (a, b))
            if ours != theirs and _same(matrix, a, b) and not _apart(matrix, ours, theirs):
                merged = sorted({*merged, tuple(sorted(ours + theirs))} - {ours, theirs})
    return merged


def _same(matrix: Matrix, a: int, b: int) -> bool:
    """Whether two GPUs can share a domain: the first affinity column that both fill in is the same, or none is."""
    for column in ("numa", "cpu"):
        ours, theirs = (matrix.affinity[gpu].get(column, "N/A") for gpu in (a, b))
        if "N/A" not in (ours, theirs):
            return ours == theirs
    return True


def _apart(matrix: Matrix, ours: Group, theirs: Group) -> bool:
    return any(matrix.code(a, b) == "SYS" and _tells(matrix, a, b) for a in ours for b in theirs)


def _tells(matrix: Matrix, a: int, b: int) -> bool:
    """Whether a code between these two says where they are: with coherent memory only that between GPUs does."""
    return not coherent(matrix) or {a, b} <= set(matrix.gpus)


def _adapters_dealt(domains: list[Group], matrix: Matrix) -> tuple[list[Group], str]:
    """Deal the domains without a GPU out over the others, in order."""
    gpus = set(matrix.gpus)
    hosts = [group for group in domains if gpus & set(group)]
    adapters = [group for group in domains if not gpus & set(group)]
    for number, group in enumerate(adapters):
        at = number * len(hosts) // len(adapters)
        hosts[at] = tuple(sorted(hosts[at] + group))
    note = "topo -m prints SYS between every GPU and NIC of such a machine: NICs are dealt out over the CPUs in order"
    return hosts, note if adapters else ""


def _contradictions(matrix: Matrix, levels: tuple[list[Group], list[Group], list[Group]]) -> list[str]:
    """One line when codes say other than the places that the rest of the matrix gives."""
    closeness = (_SAME_SWITCH, _SAME_TREE, _SAME_DOMAIN)
    odd = []
    for (a, b), code in matrix.codes.items():
        shared = [near for near, groups in zip(closeness, levels) if any({a, b} <= set(group) for group in groups)]
        if a < b and min(shared, default=_APART) < CLOSENESS.get(code, 0) and _tells(matrix, a, b):
            odd.append(f"{matrix.devices[a]}-{matrix.devices[b]}")
    line = f"{len(odd)} codes ({', '.join(odd[:3])}) say farther apart than the rest of the matrix"
    return [line] if odd else []
