"""What machine does a NCCL topology file describe?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from commsim.errors import InputError
from commsim.hardware import shelf
from commsim.hardware.fabrics import Level, Part, Wire, members
from commsim.hardware.nccl_xml.chip import accelerator_of
from commsim.hardware.nccl_xml.draw import draw
from commsim.hardware.nccl_xml.elements import opened, parse
from commsim.hardware.nccl_xml.gpu_links import SWITCH
from commsim.hardware.nccl_xml.inventory import take
from commsim.hardware.nccl_xml.ports import fabric_of
from commsim.hardware.system import ScaleOut, System

if TYPE_CHECKING:
    import networkx as nx

    from commsim.hardware.nccl_xml.elements import Element
    from commsim.hardware.nccl_xml.inventory import Inventory
    from commsim.hardware.system import Accelerator
    from commsim.hardware.topology import Link

    Cell = nx.DiGraph[str]
    Notes = dict[str, None]

_IDENTITIES = ("busid", "rank", "dev", "name", "guid", "host_hash", "affinity", "numaid", "keep")


def read_xml(source: str | Path, accelerator: str | None = None) -> System:
    """Return the machine that NCCL topology XML (a path, or the text itself) describes: a node, or an NVLink domain.

    The accelerator is told by the PCI device or the compute capability, unless the caller names it. What the file
    leaves out and had to be assumed stands in `assumptions`. InputError says in one line which element cannot be.
    """
    if isinstance(source, str) and source.lstrip().startswith("<"):
        return machine(source, "topology", accelerator)
    return machine(opened(Path(source)), str(source), accelerator)


def machine(content: bytes | str, name: str, accelerator: str | None = None) -> System:
    """Return the machine that the content of a file describes; `name` names the file in errors."""
    root = parse(content, name)
    listed, notes = take(root), dict[str, None]()
    chip = accelerator_of(root, listed.gpus, accelerator, notes)
    for net in listed.unused:
        notes[f"{net.where}: left out, as NCCL does (no dev, or net=0)"] = None
    cell, levels = _repeated(root, listed, chip, notes)
    scale_out = _scale_out(cell, notes)
    return System(
        name=Path(name).stem,
        title=f"{len(listed.gpus)} {chip.title} (from {Path(name).name})",
        accelerator=chip,
        cell=cell,
        scale_up=levels,
        links=shelf.link_kinds(),
        scale_out=scale_out,
        fabric=shelf.fabric(scale_out.fabric, scale_out.nic) if scale_out else None,
        nodes=levels[0].units if levels else 1,
        assumptions=tuple(notes),
    )


def _repeated(root: Element, listed: Inventory, chip: Accelerator, notes: Notes) -> tuple[Cell, tuple[Level, ...]]:
    """The graph of one host and the rack of such hosts around it; when hosts differ, one graph of all of them."""
    cells = [draw(listed.of(host), chip, notes) for host in listed.hosts]
    if len(cells) == 1:
        return cells[0], ()
    for host, cell in zip(listed.hosts, cells):
        if not all(cell.has_edge(gpu, SWITCH) for gpu in members(cell, "gpu")):
            expected = "NVLink to a switch joins the hosts of one file; give one file a host"
            raise InputError(listed.of(host).gpus[0].pci.where, "a host apart", expected)
    if len({cpu_host for cpu_host, _ in listed.cpus}) > len(cells):
        raise InputError(root.where, "a host without a GPU", "every host_hash has GPUs in one NVLink domain")
    lanes = {(data["link"].kind, data["count"]) for _, _, data in cells[0].in_edges(SWITCH, data=True)}
    if len(lanes) > 1 or any(_face(cell) != _face(cells[0]) for cell in cells[1:]):
        notes[f"the {len(cells)} hosts differ: they are drawn as one node"] = None
        return draw(listed, chip, notes), ()
    return _rack(cells, *lanes.pop())


def _rack(cells: list[Cell], kind: str, count: int) -> tuple[Cell, tuple[Level, ...]]:
    """The first host without the NVSwitches, and the tier where they stand."""
    node = cells[0].copy()
    switch = node.nodes[SWITCH]
    node.remove_node(SWITCH)
    part = Part(stands_for=switch["stands_for"], reduces=switch["reduces"], multicasts=switch["multicasts"])
    wire = Wire(("gpu", "nvswitch"), kind, "every", count)
    return node, (Level("rack", len(cells), {"nvswitch": part}, (wire,)),)


def _face(cell: Cell) -> tuple[dict[str, dict[str, str]], dict[tuple[str, str], tuple[Link, int]]]:
    """What of a host can be told apart: parts and wires, without addresses, names and ranks."""
    xml = {
        name: {key: value for key, value in what.items() if key not in _IDENTITIES}
        for name, what in cell.nodes(data="xml")
    }
    return xml, {(u, v): (data["link"], data["count"]) for u, v, data in cell.edges(data=True)}


def _scale_out(cell: Cell, notes: Notes) -> ScaleOut | None:
    """The network that the fastest ports lead to; None when the file has no port."""
    nics, slower = members(cell, "nic"), members(cell, "slow-nic")
    if slower:
        notes[f"{len(slower)} network ports are slower than the other {len(nics)} and carry no collectives"] = None
    if not nics:
        return None
    port = cell.nodes[nics[0]]
    return ScaleOut(fabric_of(port["xml"]), port["speed"])
