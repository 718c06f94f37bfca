"""What does the graph hold so far, and how does a PCI device join it?"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import networkx as nx

from commsim.errors import InputError
from commsim.hardware.fabrics import join
from commsim.hardware.generations import PCIE_RATES, pcie_generation, pcie_kind

if TYPE_CHECKING:
    from commsim.hardware.nccl_xml.elements import Element
    from commsim.hardware.nccl_xml.inventory import Inventory
    from commsim.hardware.system import Accelerator
    from commsim.hardware.topology import Link

_RATE = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,2})?) GT/s(?: PCIe)?")
_MOST_LANES = 32


@dataclass(eq=False)
class Drawing:
    """A graph in the making: what it draws, the vertex of each element, and what had to be assumed (`notes`).

    Bandwidths are physical, one direction of one link. What NCCL would need to search the same machine stays on the
    vertices: `xml` holds the attributes as written.
    """

    listed: Inventory
    accelerator: Accelerator
    notes: dict[str, None]
    cell: nx.DiGraph[str] = field(default_factory=nx.DiGraph)
    vertex: dict[Element, str] = field(default_factory=dict)
    parts: Counter[str] = field(default_factory=Counter)

    @property
    def capability(self) -> int:
        """The compute capability that stands for the generation; AMD's accelerators stand beside Hopper."""
        return self.accelerator.compute_capability or 90

    def add(self, part: str, *elements: Element | None, **more: Any) -> str:  # noqa: ANN401 - data of a vertex
        """Add a vertex of a part with the attributes of these elements; return its name."""
        name, index = f"{part}{self.parts[part]}", self.parts[part]
        self.parts[part] += 1
        xml = {key: value for element in elements if element for key, value in element.attributes.items()}
        what = {"part": part, "tier": 0, "index": index, "stands_for": 1, "reduces": False, "multicasts": False}
        self.cell.add_node(name, **(what | {"xml": xml} | more))
        return name

    def draw(self, part: str, element: Element, *also: Element | None, **more: Any) -> str:  # noqa: ANN401
        """Add the vertex that stands for an element, and remember it."""
        self.vertex[element] = self.add(part, element, *also, **more)
        return self.vertex[element]

    def hang(self, name: str, pci: Element) -> None:
        """Join the vertex of a device to the switch or CPU above it."""
        if pci.above:
            join(self.cell, name, self.vertex[pci.above], self.slot(pci))

    def slot(self, pci: Element) -> Link:
        """Return the link of a device to what is above it, by `link_speed` and `link_width` (0 = 16, as in NCCL)."""
        lanes = pci.number("link_width", 0, _MOST_LANES) or 16
        speed = pci.text("link_speed")
        if not speed or speed.startswith("Unknown"):
            generation = pcie_generation(self.capability)
            self.notes[f"link_speed is missing: PCIe {generation}, of the GPU's generation (NCCL takes PCIe 3)"] = None
            return pcie_kind(generation, lanes)
        rate = _RATE.fullmatch(speed)
        if not rate or float(rate[1]) not in PCIE_RATES:
            known = [f"{known:.1f} GT/s PCIe" for known in PCIE_RATES]
            raise InputError(f"{pci.where}: link_speed", speed, "no rate of PCI Express", among=known)
        return pcie_kind(PCIE_RATES[float(rate[1])], lanes)
