"""What are the GPUs joined to by NVLink, xGMI and C2C?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commsim.errors import InputError
from commsim.hardware.alike import add_nvlinks
from commsim.hardware.devices import GCN
from commsim.hardware.fabrics import join
from commsim.hardware.generations import architecture, c2c_kind, nvlink_kind, xgmi_kind
from commsim.hardware.meshes import pass_on
from commsim.hardware.nccl_xml.chip import capability_of

if TYPE_CHECKING:
    from commsim.hardware.nccl_xml.drawing import Drawing
    from commsim.hardware.nccl_xml.elements import Element
    from commsim.hardware.nccl_xml.inventory import Gpu
    from commsim.hardware.topology import Link

SWITCH = "nvswitch0"
"""The one vertex that draws all NVSwitch chips of a domain, as NCCL does."""
_SWITCH_CLASS, _CPU_CLASS, _NOWHERE = "0x0680", "0x068001", "ffff"
_MULTICAST_FROM = 90
_MOST_LINKS, _MEGABYTE = 1000, 1e6


def draw_gpu_links(drawing: Drawing) -> None:
    """Join the GPUs by their NVLinks and C2C links, and hang each in its slot unless such a link takes its place."""
    address = {(gpu.host, gpu.pci.text("busid").lower()): drawing.vertex[gpu.pci] for gpu in drawing.listed.gpus}
    for gpu in drawing.listed.gpus:
        name, cpu = drawing.vertex[gpu.pci], _cpu(drawing, gpu)
        for element in gpu.links("nvlink", "xgmi"):
            peer = address.get((gpu.host, element.text("target").lower()), "")
            _draw_nvlink(drawing, element, (name, _far_end(element, cpu, peer)), _lane(drawing, gpu, element))
        if len(gpu.links("c2c")) > 1:
            raise InputError(gpu.pci.where, "two <c2c>", "one belongs here: `count` says how many links it has")
        for element in gpu.links("c2c"):
            lanes = element.needed("bw", 1), element.needed("count", 1, _MOST_LINKS)
            drawing.cell.nodes[name]["c2c"] = lanes
            speed = lanes[0] * lanes[1] * _MEGABYTE
            join(drawing.cell, name, cpu, c2c_kind(drawing.capability, speed))
        if gpu.pci.above and not drawing.cell.has_edge(name, drawing.vertex[gpu.pci.above]):
            drawing.hang(name, gpu.pci)
    if drawing.listed.gpus_by_class:
        _draw_as_sold(drawing)
    pass_on(drawing.cell)


def _far_end(element: Element, cpu: str, peer: str) -> str:
    """The vertex at the other end of an NVLink, "" when the file has none such."""
    tclass = element.text("tclass")
    if tclass.startswith(_CPU_CLASS):
        return cpu
    to_switch = tclass.startswith(_SWITCH_CLASS) or element.text("target").startswith(_NOWHERE)
    return SWITCH if to_switch else peer


def _draw_nvlink(drawing: Drawing, element: Element, ends: tuple[str, str], link: Link) -> None:
    """Draw the links of one element: both ways to a switch or CPU, one way to a GPU, which names its own way back."""
    count, cell = element.needed("count", 1, _MOST_LINKS), drawing.cell
    if ends[0] == ends[1]:
        drawing.notes[f"{element.where}: a link of a GPU to itself leads nowhere: left out"] = None
    elif not ends[1]:
        drawing.notes[f"{element.where}: the file has no such GPU: left out, as NCCL does"] = None
    elif ends[1].startswith("gpu"):
        already = cell.edges[ends]["count"] if cell.has_edge(*ends) else 0
        cell.add_edge(*ends, link=link, count=already + count)
    else:
        if ends[1] == SWITCH:
            _add_chip(drawing, element.text("target").lower())
        join(cell, *ends, link, count)


def _add_chip(drawing: Drawing, target: str) -> None:
    """Add the vertex of the NVSwitches, or count one more chip into it when the file tells them apart."""
    if SWITCH not in drawing.cell:
        in_network = drawing.capability >= _MULTICAST_FROM
        drawing.add("nvswitch", reduces=in_network, multicasts=in_network, chips={})
    data = drawing.cell.nodes[SWITCH]
    if not target.startswith(_NOWHERE):
        data["chips"][target] = None
    data["stands_for"] = max(1, len(data["chips"]))


def _lane(drawing: Drawing, gpu: Gpu, element: Element) -> Link:
    """The kind of one such link."""
    if element.tag == "nvlink":
        return nvlink_kind(capability_of(gpu) or drawing.capability)
    gcn = (gpu.said.text("gcn") if gpu.said else "") or GCN.get(drawing.accelerator.name, "")
    link = xgmi_kind(architecture(gcn))
    if link is None:
        raise InputError(f"{gpu.pci.where}: gcn", gcn, "an architecture with known links, such as gfx942, belongs here")
    return link


def _cpu(drawing: Drawing, gpu: Gpu) -> str:
    """The CPU above a GPU."""
    place = gpu.pci
    while place.above and place.tag != "cpu":
        place = place.above
    return drawing.vertex[place]


def _draw_as_sold(drawing: Drawing) -> None:
    """Give the GPUs of a skeleton the NVLinks that such machines have: NCCL asks the driver, a file cannot."""
    like = ", ".join(add_nvlinks(drawing.cell, drawing.accelerator))
    wiring = f"NVLinks are those of {like}" if like else "none are drawn, as no shipped system has such GPUs so joined"
    drawing.notes[f"the file is a skeleton without NVLinks: {wiring}"] = None
