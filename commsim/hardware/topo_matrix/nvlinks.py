"""Do the NVLinks of the matrix lead to switches, or from GPU to GPU?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import networkx as nx

from commsim.errors import InputError
from commsim.hardware.alike import sold_switched
from commsim.hardware.fabrics import join
from commsim.hardware.generations import nvlink, nvlink_kind
from commsim.hardware.meshes import pass_on

if TYPE_CHECKING:
    from commsim.hardware.system import Accelerator
    from commsim.hardware.topo_matrix.text import Matrix

_MULTICAST_FROM = 90


def draw_nvlinks(cell: nx.DiGraph[str], matrix: Matrix, chip: Accelerator) -> None:
    """Add the NVLinks to a cell whose GPUs are `gpu0`, `gpu1`, ... InputError when they are more than a GPU can have.

    NV# is the number of links between two GPUs. Through switches every GPU shows all its links to every other; that
    is so when together they are more than a GPU has, or all that it has and such GPUs are sold with switches.
    """
    links = _links(matrix)
    graph: nx.Graph[int] = nx.Graph()
    graph.add_edges_from(links)
    for number, group in enumerate(sorted(sorted(group) for group in nx.connected_components(graph))):
        own = {a: max(links.get((a, b), 0) for b in group) for a in group}
        total, busiest = max((sum(links.get((a, b), 0) for b in group), -a) for a in group)
        even = all(links.get((a, b), 0) == min(own[a], own[b]) for a in group for b in group if a != b)
        if even and _switched(total, own, chip):
            _draw_switch(cell, number, own, chip.compute_capability or 0)
            continue
        most = nvlink(chip.compute_capability or 0).most
        if total > most:
            where = f"topo -m: NVLinks of {matrix.devices[matrix.gpus[-busiest]]}"
            raise InputError(where, total, f"a GPU of this generation has {most}; without switches no more belong here")
        for a, b in ((a, b) for a in group for b in group if a < b and (a, b) in links):
            join(cell, f"gpu{a}", f"gpu{b}", nvlink_kind(chip.compute_capability or 0), links[a, b])
    pass_on(cell)


def off_nvlink(matrix: Matrix) -> list[str]:
    """Return a sentence for each GPU without an NVLink where most have some: a fault, as its neighbours show.

    Whatever the group says goes over PCIe to it, and the group is as slow as that.
    """
    joined = {a for a, _ in _links(matrix)}
    alone = [number for number in range(len(matrix.gpus)) if number not in joined]
    if len(joined) <= len(alone):
        return []
    names = [matrix.devices[matrix.gpus[number]] for number in alone]
    return [
        f"{name} is off NVLink, while {len(joined)} others are on it: what they say goes over PCIe" for name in names
    ]


def _switched(total: int, own: dict[int, int], chip: Accelerator) -> bool:
    most = nvlink(chip.compute_capability or 0).most
    if total > most:
        return max(own.values()) <= most
    return min(own.values()) == most and sold_switched(chip)


def _draw_switch(cell: nx.DiGraph[str], number: int, own: dict[int, int], capability: int) -> None:
    """Join the GPUs, each by its own number of links, to one vertex that draws the switches."""
    in_network = capability >= _MULTICAST_FROM
    what = {"part": "nvswitch", "tier": 0, "index": number, "stands_for": 1}
    cell.add_node(f"nvswitch{number}", **what, reduces=in_network, multicasts=in_network)
    for a, count in own.items():
        join(cell, f"gpu{a}", f"nvswitch{number}", nvlink_kind(capability), count)


def _links(matrix: Matrix) -> dict[tuple[int, int], int]:
    """The number of NVLinks between GPUs, both ways round, by their numbers among the GPUs."""
    rank = {place: number for number, place in enumerate(matrix.gpus)}
    found = {(rank[a], rank[b]): code for (a, b), code in matrix.codes.items() if a in rank and b in rank}
    return {pair: int(code[2:]) for pair, code in found.items() if code.startswith("NV") and int(code[2:])}
