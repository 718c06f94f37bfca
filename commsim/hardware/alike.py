"""How are GPUs of this kind wired in the machines that they are sold in?"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from commsim.hardware import shelf
from commsim.hardware.fabrics import members
from commsim.hardware.naming import described

if TYPE_CHECKING:
    import networkx as nx

    from commsim.hardware.system import Accelerator, System

_ENDS = ("gpu", "nvswitch")


def sold_with(accelerator: Accelerator) -> list[System]:
    """Return the shipped systems, one node of each, that have this accelerator (of any memory size)."""
    has = {name: str(described("systems", name, "system")["accelerator"]) for name in shelf.names()}
    return [shelf.system(name) for name, chip in has.items() if _family(chip) == _family(accelerator.name)]


def sold_switched(accelerator: Accelerator) -> bool:
    """Tell whether any shipped system joins such GPUs by NVSwitch."""
    return any(members(system.topology.cell, "nvswitch") for system in sold_with(accelerator))


def add_nvlinks(cell: nx.DiGraph[str], accelerator: Accelerator) -> list[str]:
    """Give the GPUs of a cell the NVLinks of the first shipped system that has as many of them.

    Return the names of all shipped systems that are wired so; none when there is no such system, and no NVLinks then.
    """
    gpus = len(members(cell, "gpu"))
    like = [system for system in sold_with(accelerator) if len(members(system.cell, "gpu")) == gpus]
    like = [system for system in like if _joined(system.cell) and _joined(system.cell) == _joined(like[0].cell)]
    for system in like[:1]:
        cell.add_nodes_from((name, system.cell.nodes[name]) for name in members(system.cell, "nvswitch"))
        cell.add_edges_from(_joined(system.cell))
    return [system.name for system in like]


def _joined(cell: nx.DiGraph[str]) -> list[tuple[str, str, dict[str, object]]]:
    """The edges between GPUs and NVSwitches."""
    ends = {name for part in _ENDS for name in members(cell, part)}
    return [(u, v, data) for u, v, data in cell.edges(data=True) if {u, v} <= ends]


def _family(name: str) -> str:
    return re.sub(r"-\d+gb$", "", name)
