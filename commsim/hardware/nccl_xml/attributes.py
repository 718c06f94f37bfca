"""Which attributes does each element have, of what a file said and of what must be made up?

What was read from a file is written as it was, except addresses, ranks, numbers and guids, which are made up in order.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from commsim.errors import InputError
from commsim.hardware.devices import AMD, GCN, NVIDIA, adapter_of, of_accelerator
from commsim.hardware.fabrics import members
from commsim.hardware.generations import PCIE_RATES, PROCESSORS, pcie_kind

if TYPE_CHECKING:
    import networkx as nx

    from commsim.hardware.system import Accelerator, System
    from commsim.hardware.topology import Link

Attributes = dict[str, str]
GPU_CLASSES = {"NVIDIA": "0x030200", "AMD": "0x120000"}
_BRIDGE_CLASS, _INFINIBAND_CLASS, _ETHERNET_CLASS = "0x060400", "0x020700", "0x020000"
_PCIE = re.compile(r"pcie([1-6])-x([0-9]+)")
_WIDTHS, _CLOSE, _MEGABIT = (16, 8, 4, 2, 1), 0.02, 1e6 / 8


def of_cpu(cell: nx.DiGraph[str], name: str, host: int) -> Attributes:
    """Return the attributes of a CPU; the kind of link to the next socket tells the processors when no file did."""
    said, cpus = _said(cell, name), members(cell, "cpu")
    made = {"host_hash": f"{host + 1:#x}", "numaid": str(cpus.index(name))}
    if said.get("vendor") or said.get("arch"):
        return made | {key: said[key] for key in ("affinity", "arch", "vendor", "familyid", "modelid") if key in said}
    kinds = [cell.edges[name, other]["link"].kind for other in cpus if cell.has_edge(name, other)]
    if not kinds:
        coherent = any(data["link"].kind.startswith("c2c") for _, _, data in cell.in_edges(name, data=True))
        kinds = ["socket-arm" if coherent else "upi-sapphire-rapids"]
    entry = next((entry for entry in PROCESSORS if entry.kind in kinds), None)
    if entry is None:
        expected = "NCCL knows sockets by the processors' model; no such kind is in the catalogue of processors"
        raise InputError(f"link of {name}", kinds[0], expected, among=dict.fromkeys(e.kind for e in PROCESSORS))
    if not entry.family:
        return made | {"arch": entry.vendor}
    numbers = {"familyid": str(entry.family), "modelid": str(entry.model)}
    return made | {"arch": "x86_64", "vendor": entry.vendor, **numbers}


def of_device(system: System, name: str, link: Link | None, address: str) -> Attributes:
    """Return the attributes of a PCI device in the slot `link` (None: it has none of its own)."""
    cell = system.topology.cell
    said, part = _said(cell, name), cell.nodes[name]["part"]
    made = {"class": _BRIDGE_CLASS, "vendor": "0x0000", "device": "0x0000"}
    if part == "gpu":
        made = _identity(of_accelerator(system.accelerator.name) or f"{_vendor(system.accelerator)}:0000")
        made["class"] = GPU_CLASSES.get(system.accelerator.vendor, GPU_CLASSES["NVIDIA"])
    elif part in ("nic", "slow-nic"):
        fabric = system.scale_out.fabric if system.scale_out else ""
        made = _identity(adapter_of(fabric, speed_of(system, name)) or "0000:0000")
        made["class"] = _INFINIBAND_CLASS if fabric == "infiniband" else _ETHERNET_CLASS
    kept = {key: said.get(key, made[key]) for key in ("class", "vendor", "device")}
    subsystem = {key: said.get(key, "0x0000") for key in ("subsystem_vendor", "subsystem_device")}
    slot = _slot(link, name) if link else {key: said.get(key, "") for key in ("link_speed", "link_width")}
    return {"busid": address, **kept, **subsystem, **slot}


def of_gpu(system: System, name: str, host: int) -> Attributes:
    """Return the attributes of a GPU: `sm` is its compute capability, of AMD its compute units, beside `gcn`."""
    said, chip, local = _said(system.topology.cell, name), system.accelerator, int(name.removeprefix("gpu"))
    number = said.get("sm") or str(chip.compute_capability or chip.multiprocessors or 0)
    made = {"dev": str(local), "sm": number}
    if chip.vendor == "AMD":
        made["gcn"] = gcn_of(system, name)
    rank = host * system.topology.gpus_per_node + local
    return made | {"rank": str(rank), "gdr": said.get("gdr", "1")}


def gcn_of(system: System, name: str) -> str:
    """Return the architecture of an AMD GPU; InputError when it is not known."""
    gcn = _said(system.topology.cell, name).get("gcn") or GCN.get(system.accelerator.name, "")
    if not gcn:
        raise InputError(
            f"{system.name}: {name}", system.accelerator.name, "its gfx architecture is not known", among=GCN
        )
    return gcn


def of_net(system: System, name: str, host: int) -> Attributes:
    """Return the attributes of a network port."""
    cell = system.topology.cell
    said, ports = _said(cell, name), [*members(cell, "nic"), *members(cell, "slow-nic")]
    dev = ports.index(name)
    kept = {
        "port": "1",
        "latency": "0.000000",
        "guid": f"{(host << 16) + 0x1000 + dev:#x}",
        "maxconn": "131072",
        "gdr": "1",
    }
    kept |= {key: said[key] for key in ("port", "latency", "maxconn", "gdr", "coll") if key in said}
    speed = str(round(speed_of(system, name) / _MEGABIT))
    return {"name": said.get("name", f"mlx5_{dev}"), "dev": str(dev), "speed": speed, **kept}


def speed_of(system: System, name: str) -> float:
    """Return the speed of a network port (B/s)."""
    speed = system.topology.cell.nodes[name].get("speed") or (system.scale_out.nic if system.scale_out else 0.0)
    if not speed:
        raise InputError(f"{system.name}: {name}", speed, "the speed of a NIC belongs in the system's scale_out")
    return float(speed)


def _slot(link: Link, name: str) -> Attributes:
    """The rate and width of a slot: those in the name of the kind, else those that carry as much."""
    match = _PCIE.fullmatch(link.kind)
    options = [(int(match[1]), int(match[2]))] if match else [(g, w) for g in PCIE_RATES.values() for w in _WIDTHS]
    for generation, lanes in options:
        if match or abs(pcie_kind(generation, lanes).bandwidth / link.bandwidth - 1) < _CLOSE:
            rate = next(rate for rate, number in PCIE_RATES.items() if number == generation)
            return {"link_speed": f"{rate:.1f} GT/s PCIe", "link_width": str(lanes)}
    raise InputError(f"link of {name}", link.kind, "a slot of PCI Express (x1 to x16, generation 1 to 6) belongs here")


def _said(cell: nx.DiGraph[str], name: str) -> Attributes:
    """What the file said of a vertex that was read from one."""
    return dict(cell.nodes[name].get("xml", {}))


def _identity(pair: str) -> Attributes:
    vendor, device = pair.split(":")
    return {"vendor": f"0x{vendor}", "device": f"0x{device}"}


def _vendor(chip: Accelerator) -> str:
    return AMD if chip.vendor == "AMD" else NVIDIA
