"""How does the list of devices become a graph?"""

from __future__ import annotations

import itertools
from collections import Counter
from typing import TYPE_CHECKING

import networkx as nx

from commsim.errors import InputError
from commsim.hardware.fabrics import join
from commsim.hardware.generations import (
    INSIDE_A_SWITCH,
    pcie_generation,
    port_kind,
    processors,
    processors_beside,
    socket_kind,
)
from commsim.hardware.nccl_xml.drawing import Drawing
from commsim.hardware.nccl_xml.gpu_links import draw_gpu_links
from commsim.hardware.nccl_xml.ports import speed_of

if TYPE_CHECKING:
    from commsim.hardware.nccl_xml.elements import Element
    from commsim.hardware.nccl_xml.inventory import Inventory
    from commsim.hardware.system import Accelerator
    from commsim.hardware.topology import Link


def draw(listed: Inventory, accelerator: Accelerator, notes: dict[str, None]) -> nx.DiGraph[str]:
    """Return the graph of the devices listed: GPUs in the order of their ranks, then what joins them."""
    drawing = Drawing(listed, accelerator, notes)
    for gpu in listed.gpus:
        drawing.draw("gpu", gpu.pci, gpu.said)
    for _, pci in listed.switches:
        drawing.draw("pcie", pci)
    for _, cpu in listed.cpus:
        drawing.draw("cpu", cpu)
    _draw_sockets(drawing)
    for _, pci in listed.switches:
        drawing.hang(drawing.vertex[pci], pci)
    _draw_pcilinks(drawing)
    draw_gpu_links(drawing)
    _draw_ports(drawing)
    return drawing.cell


def _draw_sockets(drawing: Drawing) -> None:
    """Join the CPUs of a host, every two, as NCCL does: a file does not tell NUMA domains from sockets."""
    for (host_a, a), (host_b, b) in itertools.combinations(drawing.listed.cpus, 2):
        if host_a != host_b:
            continue
        vendor = a.text("vendor") or a.text("arch")
        make = processors(vendor, a.number("familyid") or 0, a.number("modelid") or 0)
        if make is None:
            make = processors_beside(pcie_generation(drawing.capability))
            drawing.notes[f"the file names no processors that are known: sockets are joined by {make.kind}"] = None
        join(drawing.cell, drawing.vertex[a], drawing.vertex[b], socket_kind(make.kind))


def _draw_pcilinks(drawing: Drawing) -> None:
    """Join PCIe switches that are halves of one chip (`pcilink`); each of the two may name the other."""
    switches = drawing.listed.switches
    address = {(host, pci.text("busid").lower()): drawing.vertex[pci] for host, pci in switches}
    pairs: nx.Graph[str] = nx.Graph()
    for host, pci in switches:
        for element in pci.each("pcilink"):
            target = element.text("target").lower()
            here, there = drawing.vertex[pci], address.get((host, target), "")
            if not there:
                raise InputError(f"{element.where}: target", target, "the busid of a PCIe switch belongs here")
            if here == there or drawing.cell.has_edge(here, there):
                raise InputError(element.where, target, "these two are joined already: PCIe is a tree")
            pairs.add_edge(here, there)
    if pairs and not nx.is_forest(pairs):
        raise InputError(switches[0][1].where, "pcilinks in a circle", "PCIe is a tree")
    for a, b in pairs.edges:
        join(drawing.cell, a, b, INSIDE_A_SWITCH)


def _draw_ports(drawing: Drawing) -> None:
    """Draw the network ports; those slower than the fastest are no `nic`, as NCCL never prefers them."""
    ports = drawing.listed.ports
    speeds = [speed_of(port, drawing.slot, drawing.notes) for port in ports]
    on = Counter(place for port in ports for place in port.places)
    for port, speed in zip(ports, speeds):
        device = port.places[0] if port.places[0].tag == "pci" else None
        name = drawing.add("nic" if speed == max(speeds) else "slow-nic", device, *port.nets[:1], speed=speed)
        for place in port.places:
            shares = place.tag == "cpu" or on[place] > 1
            _reach(drawing, name, place, port_kind(speed) if shares else None)


def _reach(drawing: Drawing, name: str, place: Element, inside: Link | None) -> None:
    """Join a port to its slot; by a link `inside` the adapter when other ports share that slot."""
    if inside is None:
        drawing.hang(name, place)
        return
    if place not in drawing.vertex:
        drawing.hang(drawing.draw("adapter", place), place)
    join(drawing.cell, name, drawing.vertex[place], inside)
