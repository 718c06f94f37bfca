"""What did NCCL's search find on the machines of the catalogue? So that nobody waits for it twice.

A row of topologies/nccl/found.csv is one search: a digest of the node as topology XML with the GPUs that take part, the
version's constants and whether the network is used; what NCCL sees of the node; and the graphs. What is not there is
searched for; scripts/find_nccl.py writes the file anew.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, cast

from commsim.libraries.nccl.graphs import Graph, Graphs, Path, Pattern
from commsim.shipped import folder

if TYPE_CHECKING:
    from collections.abc import Iterable

    from commsim.libraries.nccl.communicator import Cpu


class Seen(NamedTuple):
    """What NCCL sees of a node, and the graphs that it finds."""

    gpus: int
    capability: int
    highest_capability: int
    cpu: Cpu
    switched: bool
    graphs: Graphs


_NAMES = tuple(Graphs().named())
_GB = 1e9


def digest(xml: str, members: Iterable[int], version: str, *, inter: bool) -> str:
    """Return the key of a search."""
    said = f"{','.join(map(str, members))}|{version}|{int(inter)}|{xml}"
    return hashlib.sha256(said.encode()).hexdigest()[:16]


def known(key: str) -> Seen | None:
    """Return what was found, if it was searched for."""
    line = _rows().get(key)
    if line is None:
        return None
    gpus, capability, highest, cpu, switched, graphs = line.split(",", maxsplit=5)
    return Seen(int(gpus), int(capability), int(highest), cast("Cpu", cpu), switched == "1", _graphs(graphs))


def row(key: str, seen: Seen) -> str:
    """Return the line of the file that says what was found."""
    head = [str(seen.gpus), str(seen.capability), str(seen.highest_capability), seen.cpu, str(int(seen.switched))]
    return ",".join([key, *head, *(_text(graph) for graph in seen.graphs.named().values())])


@lru_cache(maxsize=1)
def _rows() -> dict[str, str]:
    path = folder("topologies") / "nccl" / "found.csv"
    lines = path.read_text(encoding="ascii").splitlines() if path.exists() else []
    return dict(line.split(",", maxsplit=1) for line in lines)


def _text(graph: Graph) -> str:
    """A graph as numbers: pattern, channels, speeds in GB/s, kinds of path, same channels, crossed NICs, latency."""
    speeds = (graph.speed_intra / _GB, graph.speed_inter / _GB)
    ends = (graph.same_channels, graph.cross_nic, graph.latency_inter)
    every = (graph.pattern, graph.channels, *speeds, graph.type_intra, graph.type_inter, *ends)
    return " ".join(f"{float(one):.12g}" for one in every)


def _graphs(line: str) -> Graphs:
    return Graphs(**{name: _graph(text) for name, text in zip(_NAMES, line.split(","))})


def _graph(text: str) -> Graph:
    pattern, channels, intra, inter, near, far, same, cross, latency = map(float, text.split(" "))
    return Graph(
        pattern=Pattern(int(pattern)),
        channels=int(channels),
        speed_intra=intra * _GB,
        speed_inter=inter * _GB,
        type_intra=Path(int(near)),
        type_inter=Path(int(far)),
        same_channels=bool(same),
        cross_nic=int(cross),
        latency_inter=latency,
    )
