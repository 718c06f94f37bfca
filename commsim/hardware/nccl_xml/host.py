"""What does NCCL say of one host of a machine?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from commsim.errors import InputError
from commsim.hardware.fabrics import members
from commsim.hardware.generations import PORT, architecture, nvlink_kind, xgmi_kind
from commsim.hardware.nccl_xml import attributes
from commsim.hardware.nccl_xml.text import Written
from commsim.hardware.nccl_xml.tree import PORTS, Tree, tree_of

if TYPE_CHECKING:
    import networkx as nx

    from commsim.hardware.system import System
    from commsim.hardware.topology import Link

_SWITCH_CLASS, _CPU_CLASS, _UNKNOWN = "0x068000", "0x068001", "ffffff:ff:ff.f"
_SWITCHES, _DEVICES = 0xFE, 0
_CLOSE, _MEGABYTE = 0.02, 1e6


@dataclass(frozen=True, eq=False)
class Host:
    """One host of a machine, written: its graph, its PCIe tree, its number, and the addresses given out so far."""

    system: System
    tree: Tree
    number: int
    addresses: dict[tuple[str, str], str] = field(default_factory=dict)

    @classmethod
    def of(cls, system: System, number: int) -> Host:
        """Return the host of that number; InputError when its PCIe is no tree."""
        return cls(system, tree_of(system.topology.cell, system.name), number)

    @property
    def cell(self) -> nx.DiGraph[str]:
        """The graph of the node."""
        return self.system.topology.cell

    def cpus(self) -> list[Written]:
        """Return the elements of the CPUs with everything below them."""
        cpus = members(self.cell, "cpu")
        return [Written("cpu", attributes.of_cpu(self.cell, cpu, self.number), self._below(cpu)) for cpu in cpus]

    def _address(self, name: str, place: str = "", domain: int = _DEVICES) -> str:
        """The address of a vertex (a port has one for each place), made up when it is asked for the first time."""
        if (name, place) not in self.addresses:
            used = 1 + sum(given.startswith(f"{domain:02x}") for given in self.addresses.values())
            self.addresses[name, place] = f"{domain:02x}{used >> 8:02x}:{used & 255:02x}:00.0"
        return self.addresses[name, place]

    def _below(self, place: str) -> list[Written]:
        """The elements below a CPU or a bridge; ports that share a slot stand in one `nic`."""
        sharing: list[Written] = []
        devices: list[Written] = []
        for name, link in self.tree.below[place]:
            part = self.cell.nodes[name]["part"]
            if part == "gpu" and int(name.removeprefix("gpu")) >= self.system.topology.gpus_per_node:
                continue
            net = [Written("net", attributes.of_net(self.system, name, self.number))] if part in PORTS else []
            if net and link and link.kind.startswith(PORT):
                sharing += net
                continue
            address = self._address(name, place if net else "")
            inside = [Written("nic", {}, net)] if net else self._gpu(name) if part == "gpu" else self._bridge(name)
            devices.append(Written("pci", attributes.of_device(self.system, name, link, address), inside))
        return [Written("nic", {}, sharing)][: len(sharing)] + devices

    def _bridge(self, name: str) -> list[Written]:
        """What stands in a bridge; halves of one chip name each other."""
        pairs = [*self.tree.halves, *((b, a) for a, b in self.tree.halves)]
        return [Written("pcilink", {"target": self._address(b)}) for a, b in pairs if a == name] + self._below(name)

    def _gpu(self, name: str) -> list[Written]:
        return [Written("gpu", attributes.of_gpu(self.system, name, self.number), self._links(name))]

    def _links(self, name: str) -> list[Written]:
        """NVLinks (or xGMI links) by where they lead to, and C2C."""
        written: list[Written] = []
        for end, data in self.cell[name].items():
            part, link, count = self.cell.nodes[end]["part"], data["link"], data["count"]
            if part == "nvswitch":
                written += self._to_switch(end, self._counted(name, link, count))
            elif part == "gpu":
                peer = {"target": self._address(end), "count": self._counted(name, link, count)}
                written.append(Written(self._tag, {**peer, "tclass": self._gpu_class}))
            elif part == "cpu" and link.kind.startswith("nvlink"):
                here = {"target": _UNKNOWN, "count": self._counted(name, link, count), "tclass": _CPU_CLASS}
                written.append(Written("nvlink", here))
            elif part == "cpu" and link.kind.startswith(("c2c", "xgmi")):
                speed, lanes = self.cell.nodes[name].get("c2c", (round(link.bandwidth / _MEGABYTE), round(count)))
                written.append(Written("c2c", {"bw": str(speed), "count": str(lanes)}))
        return written

    @property
    def _tag(self) -> str:
        return "xgmi" if self.system.accelerator.vendor == "AMD" else "nvlink"

    @property
    def _gpu_class(self) -> str:
        return attributes.GPU_CLASSES.get(self.system.accelerator.vendor, attributes.GPU_CLASSES["NVIDIA"])

    def _to_switch(self, switch: str, count: str) -> list[Written]:
        """The links to each chip that the vertex stands for; to an unknown one when it stands for one."""
        chips, total = self.cell.nodes[switch]["stands_for"], int(count)
        if not 1 < chips <= total:
            return [Written("nvlink", {"target": _UNKNOWN, "count": count, "tclass": _SWITCH_CLASS})]
        shares = [total // chips + (chip < total % chips) for chip in range(chips)]
        targets = [self._address(switch, str(chip), _SWITCHES) for chip in range(chips)]
        return [
            Written("nvlink", {"target": target, "count": str(share), "tclass": _SWITCH_CLASS})
            for target, share in zip(targets, shares)
        ]

    def _counted(self, name: str, link: Link, count: float) -> str:
        """The number of links; InputError when they are not those that NCCL takes a GPU of this generation to have."""
        chip = self.system.accelerator
        known = xgmi_kind(architecture(attributes.gcn_of(self.system, name))) if chip.vendor == "AMD" else None
        known = known or nvlink_kind(chip.compute_capability or 0)
        if abs(link.bandwidth / known.bandwidth - 1) > _CLOSE or count != round(count):
            expected = f"whole links of {known.kind} belong here: NCCL knows links by the GPU's generation"
            raise InputError(f"{self.system.name}: {name}", f"{count:g} x {link.kind}", expected)
        return str(round(count))
