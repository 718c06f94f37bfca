"""How would NCCL describe this machine?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from commsim.errors import InputError
from commsim.hardware.fabrics import members
from commsim.hardware.nccl_xml.host import Host
from commsim.hardware.nccl_xml.text import Written
from commsim.hardware.nccl_xml.tree import with_adapters_in_slots

if TYPE_CHECKING:
    from commsim.hardware.system import System


def write_xml(system: System) -> str:
    """Return the machine as NCCL topology XML: one node, or one NVLink domain; addresses are made up, in order.

    Reading it back gives the same wires, but a NIC that stands beside a GPU stands with it under a PCIe switch.
    InputError for what NCCL's format has no words for: nodes joined by a network, NVSwitches joined to each other,
    parts that are no GPUs.
    """
    if system.nodes > system.nodes_per_domain:
        expected = f"1 to {system.nodes_per_domain} belong here: NCCL's XML describes one node or one NVLink domain"
        raise InputError(f"{system.name}: nodes", system.nodes, expected)
    cell = system.topology.cell
    if not members(cell, "gpu"):
        raise InputError(system.name, min(cell), "a machine of GPUs belongs here: NCCL knows no other parts")
    for a, b in cell.edges:
        if {cell.nodes[end]["part"] for end in (a, b)} == {"nvswitch"}:
            raise InputError(f"{system.name}: {a}", b, "NCCL's XML has no words for NVSwitches joined to each other")
    system = replace(system, cell=with_adapters_in_slots(system.cell))
    if system.accelerator.vendor == "NVIDIA" and not system.accelerator.compute_capability:
        expected = "a GPU whose compute capability is known belongs here: NCCL tells NVLinks by it"
        raise InputError(f"{system.name}: accelerator", system.accelerator.name, expected)
    version = "1" if system.accelerator.vendor == "NVIDIA" else "2"
    hosts = [cpu for number in range(system.nodes) for cpu in Host.of(system, number).cpus()]
    return "\n".join(Written("system", {"version": version}, hosts).lines()) + "\n"
