"""Small networks for labs, and whoever may lay them out."""

from __future__ import annotations

import os
import sys

import networkx as nx
import pytest

from commsim.hardware.fabrics import join
from commsim.hardware.topology import Link, Topology

needs_root = pytest.mark.skipif(
    not sys.platform.startswith("linux") or os.geteuid() != 0, reason="a lab needs Linux and root"
)
MBIT = 1e6 / 8


def star(*rates: float) -> Topology:
    """Ranks on one switch, each on a link of its rate, Mb/s."""
    cell: nx.DiGraph[str] = nx.DiGraph()
    _add(cell, "gpu", len(rates))
    _add(cell, "switch", 1)
    for rank, rate in enumerate(rates):
        join(cell, f"gpu{rank}", "switch0", Link(f"port {rate}", rate * MBIT, 0.0))
    return Topology(cell)


def two_level(ranks: int, rate: float, uplink: float) -> Topology:
    """Two switches of half of the ranks each, joined by a third."""
    cell: nx.DiGraph[str] = nx.DiGraph()
    _add(cell, "gpu", ranks)
    _add(cell, "leaf", 2)
    _add(cell, "spine", 1)
    for rank in range(ranks):
        join(cell, f"gpu{rank}", f"leaf{2 * rank // ranks}", Link("port", rate * MBIT, 0.0))
    for leaf in ("leaf0", "leaf1"):
        join(cell, leaf, "spine0", Link("uplink", uplink * MBIT, 0.0))
    return Topology(cell)


def ring(ranks: int, rate: float) -> Topology:
    """Ranks in a ring that forward for each other."""
    cell: nx.DiGraph[str] = nx.DiGraph()
    _add(cell, "gpu", ranks, forwards=True)
    for rank in range(ranks):
        join(cell, f"gpu{rank}", f"gpu{(rank + 1) % ranks}", Link("cable", rate * MBIT, 0.0))
    return Topology(cell)


def _add(cell: nx.DiGraph[str], part: str, count: int, **more: bool) -> None:
    for number in range(count):
        cell.add_node(f"{part}{number}", part=part, tier=0, **more)
