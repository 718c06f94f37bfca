"""How are GPUs of this kind wired in the machines that they are sold in?"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from commsim.hardware import catalogue
from commsim.hardware.fabrics import members
from commsim.hardware.naming import described

if TYPE_CHECKING:
    import networkx as nx

    from commsim.hardware.system import Accelerator, System

_ENDS = ("gpu", "nvswitch")


def sold_with(accelerator: Accelerator) -> list[System]:
    """Return the shipped systems, one node of each, that have this accelerator (of any memory size)."""
    has = {name: str(described("systems", name, "system")["accelerator"]) for name in catalogue.names()}
    return [catalogue.load(name, nodes=1) for name, chip in has.items() if _family(chip) == _family(accelerator.name)]


def sold_switched(accelerator: Accelerator) -> bool:
    """Tell whether any shipped system joins such GPUs by NVSwitch."""
    return any(members(system.topology.cell, "nvswitch") for system in sold_with(accelerator))


def add_nvlinks(cell: nx.DiGraph[str], accelerator: Accelerator) -> str:
    """Give the GPUs of a cell the NVLinks of the shipped system with as many of them; return its name, "" for none."""
    gpus = len(members(cell, "gpu"))
    for system in sold_with(accelerator):
        like = system.cell
        if len(members(like, "gpu")) == gpus and _joined(like):
            cell.add_nodes_from((name, data) for name, data in like.nodes(data=True) if data["part"] == "nvswitch")
            cell.add_edges_from(_joined(like))
            return system.name
    return ""


def _joined(cell: nx.DiGraph[str]) -> list[tuple[str, str, dict[str, object]]]:
    """The edges between GPUs and NVSwitches."""
    ends = {name for part in _ENDS for name in members(cell, part)}
    return [(u, v, data) for u, v, data in cell.edges(data=True) if {u, v} <= ends]


def _family(name: str) -> str:
    return re.sub(r"-\d+gb$", "", name)
