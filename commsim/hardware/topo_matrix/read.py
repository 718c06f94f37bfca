"""What machine does a matrix of `nvidia-smi topo -m` describe?

The matrix tells who shares what, no speeds and no products: the accelerator must be named, and the generation of PCI
Express and the speed of network ports are assumed from it, which `assumptions` says.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING

import networkx as nx

from commsim.errors import InputError
from commsim.hardware import shelf
from commsim.hardware.fabrics import Part, add_parts, join, members
from commsim.hardware.generations import (
    c2c_kind,
    pcie_generation,
    pcie_kind,
    port_of_slot,
    processors_beside,
    socket_kind,
)
from commsim.hardware.nccl_xml.elements import opened
from commsim.hardware.nccl_xml.ports import fabric_of
from commsim.hardware.system import ScaleOut, System
from commsim.hardware.topo_matrix.nvlinks import draw_nvlinks, off_nvlink
from commsim.hardware.topo_matrix.places import coherent, places
from commsim.hardware.topo_matrix.text import parse

if TYPE_CHECKING:
    from commsim.hardware.topo_matrix.places import Places
    from commsim.hardware.topo_matrix.text import Matrix
    from commsim.hardware.topology import Link

    Cell = nx.DiGraph[str]

_GIGABIT = 1e9 / 8


def read_matrix(source: str | Path, accelerator: str | None = None) -> System:
    """Return the machine that the matrix describes (a path, or the text itself), with GPUs of the accelerator named.

    InputError when there is no matrix, when it contradicts itself, and without an accelerator.
    """
    if isinstance(source, str) and "\n" in source:
        return machine(source, "topo -m", accelerator)
    return machine(opened(Path(source)).decode("utf-8", "replace"), str(source), accelerator)


def machine(text: str, name: str, accelerator: str | None = None) -> System:
    """Return the machine that the text of a file describes; `name` names the file in errors."""
    matrix = parse(text, name)
    if not accelerator:
        expected = "topo -m does not say which GPUs these are; name the accelerator, such as h100-sxm"
        raise InputError(f"{name}: accelerator", accelerator, expected)
    chip = shelf.accelerator(accelerator)
    if chip.compute_capability is None:
        raise InputError(f"{name}: accelerator", accelerator, "a GPU of NVIDIA belongs here: nvidia-smi lists no other")
    found, generation = places(matrix), pcie_generation(chip.compute_capability)
    sockets = "socket-arm" if coherent(matrix) else processors_beside(generation).kind
    cell = _drawn(matrix, found, (pcie_kind(generation), socket_kind(sockets)))
    if coherent(matrix):
        _by_c2c(cell, found, matrix, chip.compute_capability)
    draw_nvlinks(cell, matrix, chip)
    scale_out, notes = _scale_out(cell, port_of_slot(pcie_kind(generation)))
    slots = f"topo -m gives no speeds: every slot is PCIe {generation} x16, CPUs are joined by {sockets}"
    return System(
        name=Path(name).stem,
        title=f"{len(matrix.gpus)} {chip.title} (from {Path(name).name})",
        accelerator=chip,
        cell=cell,
        links=shelf.link_kinds(),
        scale_out=scale_out,
        fabric=shelf.fabric(scale_out.fabric, scale_out.nic) if scale_out else None,
        assumptions=(*off_nvlink(matrix), slots, *notes, *found.notes),
    )


def _drawn(matrix: Matrix, found: Places, kinds: tuple[Link, Link]) -> Cell:
    """The devices with the switches and CPUs above them, by slots and links between sockets of these kinds."""
    cell: Cell = nx.DiGraph()
    vertex: dict[int, str] = {}
    nics = [place for place in range(len(matrix.devices)) if place not in matrix.gpus]
    for part, devices in (("gpu", matrix.gpus), ("nic", nics)):
        vertex |= {place: f"{part}{number}" for number, place in enumerate(devices)}
        add_parts(cell, 0, {part: Part(len(devices))} if devices else {})
    for place, name in vertex.items():
        cell.nodes[name]["xml"] = {"name": matrix.names[place]}
    add_parts(cell, 0, {"cpu": Part(len(found.domains))})
    for cpu, trees in zip(members(cell, "cpu"), found.domains):
        for tree in trees:
            _hang(cell, cpu, [[vertex[place] for place in group] for group in tree], kinds[0])
    for a, b in itertools.combinations(members(cell, "cpu"), 2):
        join(cell, a, b, kinds[1])
    return cell


def _hang(cell: Cell, above: str, tree: list[list[str]], slot: Link) -> None:
    """Hang one PCIe tree below a CPU: a switch for each group, and one over them when there are several."""
    if len(tree) > 1:
        above = _switch_below(cell, above, slot)
    for group in tree:
        place = _switch_below(cell, above, slot) if len(tree) > 1 or len(group) > 1 else above
        for device in group:
            join(cell, device, place, slot)


def _switch_below(cell: Cell, above: str, slot: Link) -> str:
    name = f"pcie{len(members(cell, 'pcie'))}"
    what = {"part": "pcie", "tier": 0, "index": len(members(cell, "pcie")), "stands_for": 1}
    cell.add_node(name, **what, reduces=False, multicasts=False)
    join(cell, name, above, slot)
    return name


def _by_c2c(cell: Cell, found: Places, matrix: Matrix, capability: int) -> None:
    """Join GPUs whose memory is a NUMA node to their CPU by C2C, in place of the slot."""
    for number, domain in enumerate(found.domains):
        inside = {place for tree in domain for group in tree for place in group}
        for gpu, place in enumerate(matrix.gpus):
            if place in inside:
                cell.remove_edges_from([*cell.in_edges(f"gpu{gpu}"), *cell.out_edges(f"gpu{gpu}")])
                join(cell, f"gpu{gpu}", f"cpu{number}", c2c_kind(capability))


def _scale_out(cell: Cell, port: float) -> tuple[ScaleOut | None, list[str]]:
    """The network that the NICs lead to, and what had to be assumed of it; a mlx5 adapter may be of either kind."""
    nics = members(cell, "nic")
    if not nics:
        return None, []
    name = cell.nodes[nics[0]]["xml"]["name"]
    either = name.startswith(("mlx", "NIC"))
    fabric = "infiniband" if either else fabric_of({"name": name, "class": "0x0200"})
    speed = f"topo -m gives no speeds: a NIC has {port / _GIGABIT:g} Gb/s, what its slot keeps busy"
    return ScaleOut(fabric, port), [
        speed,
        *([f"{name} may be InfiniBand or Ethernet: {fabric} is taken"] if either else []),
    ]
