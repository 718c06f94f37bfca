"""Which machines are there, and what do they consist of?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import networkx as nx

from commsim.errors import InputError
from commsim.hardware.fabrics import (
    SCALE_OUTS,
    Fabric,
    Level,
    Part,
    Wire,
    add_parts,
    add_wires,
    members,
)
from commsim.hardware.topology import Link, Tier, Topology
from commsim.units import Bytes, BytesPerSecond, FlopsPerSecond, Seconds, Share, Watts

Lifecycle = Literal["shipping", "announced", "roadmap", "rumour", "legacy", "given"]


@dataclass(frozen=True)
class Accelerator:
    """One GPU package (or LPU): dense peaks by number format, memory, and which share of them software reaches.

    `peak` and `achieved` are by number format (`bf16`, `fp8`, `nvfp4`, ...); `vector` is the FP32 rate outside the matrix
    units. `achieved` also holds `memory`, the share of `memory_bandwidth` that a stream reaches.
    """

    name: str
    title: str
    architecture: str
    peak: Mapping[str, FlopsPerSecond]
    memory: Bytes
    memory_bandwidth: BytesPerSecond
    aliases: tuple[str, ...] = ()
    vendor: str = "NVIDIA"
    compute_capability: int | None = None
    multiprocessors: int | None = None
    vector: FlopsPerSecond | None = None
    achieved: Mapping[str, Share] = field(default_factory=dict)
    launch: Seconds | None = None
    power: Watts | None = None
    note: str = ""


@dataclass(frozen=True)
class ScaleOut:
    """How nodes are joined beyond the scale-up domain: which fabric, how fast a NIC is, how it is wired."""

    fabric: str
    nic: BytesPerSecond
    wiring: str = "rails"
    oversubscription: float = 1.0


@dataclass(frozen=True)
class Node:
    """One host: its parts and the wires between them."""

    parts: Mapping[str, Part]
    wires: tuple[Wire, ...]


@dataclass(frozen=True, eq=False)
class System:
    """A machine of some number of nodes: accelerators, scale-up domain, NICs, scale-out fabric.

    `cell` is the graph of one node. `nodes` and `gpus_per_node` (those used) say how much of it there is; change them
    with `dataclasses.replace`. `template` names the system whose figures stand in for unpublished ones.
    """

    name: str
    title: str
    accelerator: Accelerator
    cell: nx.DiGraph[str]
    status: Lifecycle = "given"
    summary: str = ""
    aliases: tuple[str, ...] = ()
    scale_up: tuple[Level, ...] = ()
    links: Mapping[str, Link] = field(default_factory=dict)
    scale_out: ScaleOut | None = None
    fabric: Fabric | None = None
    nodes: int = 1
    gpus_per_node: int = 0
    template: str = ""
    assumptions: tuple[str, ...] = ()

    @property
    def gpus(self) -> int:
        """The number of GPUs (packages: what CUDA shows as one device)."""
        return self.topology.size

    @property
    def nodes_per_domain(self) -> int:
        """Nodes of one full scale-up domain (1 for a box, 18 for an NVL72 rack)."""
        nodes = 1
        for level in self.scale_up:
            nodes *= level.units
        return nodes

    @property
    def nics_per_node(self) -> int:
        """NICs of one node."""
        return len(members(self.cell, "nic"))

    @cached_property
    def topology(self) -> Topology:
        """The graph of this machine. InputError when several domains are asked for and nothing joins them."""
        cell = self.cell.copy()
        tiers: list[Tier] = []
        for height, level in enumerate(self.scale_up, start=1):
            add_parts(cell, height, level.parts)
            add_wires(cell, level.wires, self.links, f"{self.name}: scale_up[{height - 1}]")
            tiers.append(Tier(level.tier, level.units))
        domain = len(tiers)
        if self.nodes > self.nodes_per_domain:
            tiers += self._join(cell)
        return Topology(cell, tuple(tiers), self.nodes, self.gpus_per_node, domain)

    def _join(self, cell: nx.DiGraph[str]) -> tuple[Tier, ...]:
        if self.scale_out is None or self.fabric is None or not self.nics_per_node:
            most = self.nodes_per_domain
            raise InputError(f"{self.name}: nodes", self.nodes, f"at most {most}: this system has no NICs; give a NIC")
        if self.scale_out.wiring not in SCALE_OUTS:
            raise InputError(f"{self.name}: scale_out: wiring", self.scale_out.wiring, "no such one", among=SCALE_OUTS)
        wiring = SCALE_OUTS[self.scale_out.wiring]
        return wiring(cell, self.fabric, self.nodes_per_domain, self.scale_out.oversubscription)

    def sized(self, nodes: int = 0, gpus: int = 0, gpus_per_node: int = 0) -> System:
        """Return this system with so many nodes, or so many GPUs in all; InputError when they do not divide."""
        per_node = gpus_per_node or self.gpus_per_node or len(members(self.cell, "gpu")) or len(members(self.cell, "lpu"))
        if nodes and gpus:
            raise InputError("nodes and gpus", f"{nodes} and {gpus}", "one of the two belongs here, not both")
        if gpus and gpus <= per_node and not gpus_per_node:
            nodes, per_node = 1, gpus
        if gpus and not nodes:
            nodes, rest = divmod(gpus, per_node)
            if rest:
                raise InputError("gpus", gpus, f"a multiple of {per_node} belongs here: the GPUs used of each node")
        return replace(self, nodes=nodes or self.nodes, gpus_per_node=per_node)
