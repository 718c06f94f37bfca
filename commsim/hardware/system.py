"""Which machines are there, and what do they consist of?"""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - the reader of YAML resolves annotations
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from commsim.errors import InputError
from commsim.hardware.clos import SCALE_OUTS, Fabric, Joined
from commsim.hardware.fabrics import Level, Part, Wire, add_parts, add_wires, members
from commsim.hardware.routing import nics_of
from commsim.hardware.topology import ENDPOINTS, Link, Tier, Topology
from commsim.units import Bytes, BytesPerSecond, FlopsPerSecond, Seconds, Share, Watts, counted

if TYPE_CHECKING:
    import networkx as nx

Lifecycle = Literal["shipping", "announced", "roadmap", "rumour", "legacy", "given"]


@dataclass(frozen=True)
class Accelerator:
    """One GPU package (or LPU): dense peaks by number format, memory, and which share of them software reaches.

    `peak` and `achieved` are by number format (`bf16`, `fp8`, `nvfp4`, ...); `vector` is the FP32 rate outside the
    matrix units. `achieved` also holds `memory`, the share of `memory_bandwidth` that a stream reaches.
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
    """How nodes are joined beyond the scale-up domain: which fabric, how fast a NIC is, how it is wired.

    `nic` is one direction of one NIC. `wiring` is a key of `clos.SCALE_OUTS`; without one it is the fabric's usual one.
    """

    fabric: str
    nic: BytesPerSecond
    wiring: str = ""
    oversubscription: float = 1.0


@dataclass(frozen=True)
class Node:
    """One host: its parts and the wires between them."""

    parts: Mapping[str, Part]
    wires: tuple[Wire, ...]


@dataclass(frozen=True, eq=False, repr=False)
class System:
    """A machine of some number of nodes: accelerators, scale-up domain, NICs, scale-out fabric.

    `cell` is the graph of one node. `nodes` and `gpus_per_node` (those used) say how much of it there is; change them
    with `sized`. `template` names the system whose figures stand in for unpublished ones, `source` the documents that
    its structure is taken from.
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
    source: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<{self.name}: {self.nodes} nodes, {self.gpus} GPUs ({self.accelerator.name})>"

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
        """NICs of one node, of those that the GPUs used speak through."""
        used = range(self.gpus_per_node or len(self._endpoints))
        return len({nic for gpu in used for nic in nics_of(self.cell, gpu)})

    @property
    def switches(self) -> dict[str, int]:
        """How many chips or switches of each part there are (`nvswitch`, `leaf`, `spine`, ...)."""
        counts: dict[str, int] = {}
        for _, data in self.topology.cell.nodes(data=True):
            if data.get("ports"):
                units = -(-self.nodes // self.topology.spans[data["tier"]])
                counts[data["part"]] = counts.get(data["part"], 0) + units * data["stands_for"]
        return counts

    @property
    def _endpoints(self) -> list[str]:
        return [name for part in ENDPOINTS for name in members(self.cell, part)]

    @cached_property
    def topology(self) -> Topology:
        """The graph of this machine. InputError when several domains are asked for and nothing joins them."""
        cell = self.cell.copy()
        tiers: list[Tier] = []
        for height, level in enumerate(self.scale_up, start=1):
            add_parts(cell, height, level.parts)
            add_wires(cell, level.wires, self.links, f"{self.name}: scale_up[{height - 1}]")
            tiers.append(Tier(level.tier, level.units))
        # A tier without switches of its own (racks wired to each other) is no place to reduce: algorithms split there.
        domain = sum(1 for level in self.scale_up if level.parts)
        if self.nodes > self.nodes_per_domain:
            tiers += self._join(cell)
        return Topology(cell, tuple(tiers), self.nodes, self.gpus_per_node, domain, about={"system": self})

    def _join(self, cell: nx.DiGraph[str]) -> tuple[Tier, ...]:
        if self.scale_out is None or self.fabric is None or not members(cell, "nic"):
            most = self.nodes_per_domain
            expected = f"no NIC joins more than {counted(most, 'node')}: describe one, or take fewer nodes"
            raise InputError(f"{self.name}: nodes", self.nodes, expected)
        wiring = self.scale_out.wiring or self.fabric.wiring
        if wiring not in SCALE_OUTS:
            raise InputError(f"{self.name}: scale_out: wiring", wiring, "no such one", among=SCALE_OUTS)
        joined = Joined(self.nodes, self.nodes_per_domain, self.scale_out.oversubscription, len(self.scale_up))
        return SCALE_OUTS[wiring](cell, self.fabric, joined)

    def sized(self, nodes: int | None = None, gpus: int | None = None, gpus_per_node: int | None = None) -> System:
        """Return this system with so many nodes, or so many GPUs in all; InputError when they do not fit.

        Of each node `gpus_per_node` are used; fewer GPUs than a node has are one node. None leaves things as they are.
        """
        for name, value in (("nodes", nodes), ("gpus", gpus), ("gpus per node", gpus_per_node)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise InputError(name, value, "a whole number of 1 or more belongs here")
        if nodes and gpus:
            raise InputError("nodes and gpus", f"{nodes} and {gpus}", "one of the two belongs here, not both")
        present = len(self._endpoints)
        per_node = gpus_per_node or self.gpus_per_node or present
        if per_node > present:
            raise InputError("gpus per node", per_node, f"1 to {present} belong here, as a node has {present}")
        if gpus and gpus <= per_node and not gpus_per_node:
            return replace(self, nodes=1, gpus_per_node=gpus)
        if gpus and gpus % per_node:
            raise InputError("gpus", gpus, f"a multiple of {per_node} belongs here: the GPUs used of each node")
        return replace(self, nodes=gpus // per_node if gpus else nodes or self.nodes, gpus_per_node=per_node)
