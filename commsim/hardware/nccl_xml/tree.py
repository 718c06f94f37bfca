"""Which tree of PCIe devices does the graph of a node hold?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import networkx as nx

from commsim.errors import InputError
from commsim.hardware.fabrics import join, members
from commsim.hardware.generations import INSIDE_A_SWITCH

if TYPE_CHECKING:
    from commsim.hardware.topology import Link

PORTS = ("nic", "slow-nic")
_LEAVES = ("gpu", *PORTS)
_COHERENT = ("c2c", "nvlink", "xgmi")
"""How the kinds of link are called that join a GPU to its CPU beside its slot, or in place of one."""


@dataclass(frozen=True)
class Tree:
    """What hangs below each vertex, by which link (None: by C2C alone), in order; and the switches that are one chip.

    A port that is reached in two ways hangs in two places.
    """

    below: dict[str, list[tuple[str, Link | None]]]
    halves: list[tuple[str, str]]


def tree_of(cell: nx.DiGraph[str], where: str) -> Tree:
    """Return the tree under the CPUs of a node: bridges, then GPUs, then ports. InputError when there is none."""
    part = {name: data["part"] for name, data in cell.nodes(data=True) if not data["tier"]}
    bridges = [name for name in part if part[name] not in (*_LEAVES, "cpu", "nvswitch", "lpu")]
    cpus = members(cell, "cpu")
    inner: nx.Graph[str] = nx.Graph()
    inner.add_nodes_from([*cpus, *bridges])
    if not cpus:
        raise InputError(where, "no cpu", "NCCL hangs every device below one")
    edges = [(a, b) for a, b in cell.edges if {a, b} <= set(inner) and not {a, b} <= set(cpus)]
    halves = sorted({tuple(sorted(pair)) for pair in edges if cell.edges[pair]["link"] == INSIDE_A_SWITCH})
    inner.add_edges_from(pair for pair in edges if cell.edges[pair]["link"] != INSIDE_A_SWITCH)
    if not nx.is_forest(inner) or any(len(group & set(cpus)) != 1 for group in nx.connected_components(inner)):
        raise InputError(where, "PCIe switches", "a tree under each CPU belongs in NCCL's XML")
    below: dict[str, list[tuple[str, Link | None]]] = {}
    for cpu in cpus:
        for place, after in [(cpu, None), *((v, u) for u, v in nx.bfs_edges(inner, cpu))]:
            devices = [b for b in bridges if b in inner[place] and b != after]
            devices += [name for kind in _LEAVES for name in members(cell, kind) if _in_slot(cell, name, place)]
            below[place] = [(name, cell.edges[name, place]["link"]) for name in devices]
    _add_coherent(cell, below, where)
    return Tree(below, [(a, b) for a, b in halves])


def with_adapters_in_slots(cell: nx.DiGraph[str]) -> nx.DiGraph[str]:
    """Return the graph with a PCIe switch over each GPU that has NICs beside it: NCCL hangs nothing below a GPU."""
    drawn = cell.copy()
    for gpu in members(cell, "gpu"):
        nics = [name for name in cell[gpu] if cell.nodes[name]["part"] in PORTS]
        cpus = [name for name in cell[gpu] if cell.nodes[name]["part"] == "cpu"]
        if nics and cpus:
            slot, switch = cell.edges[gpu, nics[0]]["link"], f"beside {gpu}"
            drawn.add_node(switch, **{**cell.nodes[gpu], "part": "pcie", "xml": {}})
            drawn.remove_edges_from([pair for nic in nics for pair in ((gpu, nic), (nic, gpu))])
            for name in (cpus[0], gpu, *nics):
                join(drawn, switch, name, slot)
    return drawn


def _in_slot(cell: nx.DiGraph[str], name: str, place: str) -> bool:
    return cell.has_edge(name, place) and not cell.edges[name, place]["link"].kind.startswith(_COHERENT)


def _add_coherent(cell: nx.DiGraph[str], below: dict[str, list[tuple[str, Link | None]]], where: str) -> None:
    """Hang what has no slot below the CPU that it is joined to by C2C. InputError when there is no such CPU."""
    hung = {name for devices in below.values() for name, _ in devices}
    for name in [name for kind in _LEAVES for name in members(cell, kind) if name not in hung]:
        cpus = [place for place in cell[name] if cell.nodes[place]["part"] == "cpu"]
        if not cpus:
            raise InputError(where, name, "each GPU and each NIC hangs below a CPU in NCCL's XML")
        below[cpus[0]].append((name, None))
