"""Do GPUs pass traffic on to those that they have no link to?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import networkx as nx

from commsim.hardware.fabrics import members

if TYPE_CHECKING:
    from collections.abc import Iterator


def pass_on(cell: nx.DiGraph[str]) -> None:
    """Let the GPUs of every mesh with gaps forward: NCCL goes through one GPU between where two have no NVLink."""
    gpus = members(cell, "gpu")
    for mesh in nx.weakly_connected_components(cell.subgraph(gpus)):
        if any(not cell.has_edge(a, b) for a, b in _pairs(mesh)):
            for gpu in mesh:
                cell.nodes[gpu]["forwards"] = True


def _pairs(mesh: set[str]) -> Iterator[tuple[str, str]]:
    yield from ((a, b) for a in mesh for b in mesh if a != b)
