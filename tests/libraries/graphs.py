"""Which graphs do the tests of NCCL's tuner use? Results of NCCL 2.30.7's own search, as its log prints them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from commsim.libraries.nccl.communicator import Communicator, Cpu
from commsim.libraries.nccl.constants import constants
from commsim.libraries.nccl.graphs import Graph, Graphs, Path, Pattern
from commsim.libraries.nccl.knobs import Knobs

if TYPE_CHECKING:
    from pathlib import Path as File

GB = 1e9
OPS = {
    "Broadcast": "broadcast",
    "Reduce": "reduce",
    "AllGather": "all_gather",
    "ReduceScatter": "reduce_scatter",
    "AllReduce": "all_reduce",
}
KINDS = {
    "ring": "ring",
    "tree": "tree",
    "collnetChain": "collnet_chain",
    "collnetDirect": "collnet_direct",
    "nvls": "nvls",
}


def graph(pattern: int, channels: int, intra: float, inter: float, paths: str, *, same: bool = False) -> Graph:
    """Return a graph; speeds are GB/s and `paths` is what the log prints as type: NVL/PIX."""
    near, far = (Path[name] for name in paths.split("/"))
    return Graph(Pattern(pattern), channels, intra * GB, inter * GB, near, far, same)


ONE_BOX = Graphs(
    ring=graph(4, 12, 30, 30, "NVL/PIX", same=True),
    tree=graph(1, 12, 30, 30, "NVL/PIX", same=True),
    nvls=graph(5, 8, 40, 60, "NVL/PIX"),
)
"""Eight H100 on NVSwitches."""
BOXES = Graphs(
    ring=graph(4, 8, 48, 48, "NVL/PIX"), tree=graph(3, 8, 48, 48, "NVL/PIX"), nvls=graph(5, 8, 40, 48, "NVL/PIX")
)
"""Boxes of eight H100 with eight NICs of 400 Gb/s."""
SHARP = Graphs(
    ring=BOXES.ring,
    tree=BOXES.tree,
    collnet_chain=graph(3, 8, 48, 48, "NVL/PIX"),
    collnet_direct=graph(6, 8, 48, 48, "NVL/PIX", same=True),
    nvls=BOXES.nvls,
)
"""The same with switches that reduce."""
LONE = Graphs(ring=graph(4, 2, 24, 24, "LOC/PIX", same=True), tree=graph(3, 2, 48, 24, "LOC/PIX", same=True))
"""Nodes of one H100."""


def communicator(
    graphs: Graphs,
    nodes: int,
    local: int = 8,
    *,
    cpu: Cpu = "intel",
    version: str = "",
    **knobs: Any,  # noqa: ANN401
) -> Communicator:
    """Return a communicator of nodes of H100."""
    return Communicator(nodes * local, nodes, 90, graphs, cpu, knobs=Knobs(**knobs), constants=constants(version))


def configurations(data: File) -> dict[str, dict[str, Any]]:
    """Return what NCCL 2.30.7 itself gave for 75 configurations, by their names."""
    found: dict[str, dict[str, Any]] = json.loads((data / "nccl" / "tuner_tables.json").read_text(encoding="utf-8"))
    return found


def switches(name: str) -> tuple[str, int, Knobs]:
    """Return machine, nodes and settings of a configuration called `machine.n16.nvls1.cn0`."""
    machine, nodes, nvls, collnet = name.split(".")
    return machine, int(nodes[1:]), Knobs(nvls_enable=int(nvls[-1]), collnet_enable=int(collnet[-1]))


def printed(found: Graph) -> dict[str, Any]:
    """Return a graph as the configurations have it."""
    return {
        "pattern": int(found.pattern),
        "crossNic": found.cross_nic,
        "nch": found.channels,
        "bwIntra": found.speed_intra / GB,
        "bwInter": found.speed_inter / GB,
        "typeIntra": found.type_intra.name,
        "typeInter": found.type_inter.name,
        "same": int(found.same_channels),
    }


def read(said: dict[str, Any]) -> Graphs:
    """Return the graphs of a configuration."""
    return Graphs(
        **{
            name: Graph(
                Pattern(said[key]["pattern"]),
                said[key]["nch"],
                said[key]["bwIntra"] * GB,
                said[key]["bwInter"] * GB,
                Path[said[key]["typeIntra"]],
                Path[said[key]["typeInter"]],
                bool(said[key]["same"]),
                said[key]["crossNic"],
            )
            for key, name in KINDS.items()
        }
    )
