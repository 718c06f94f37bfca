"""Which machines are prices tried on? Small ones, of every shape that routing tells apart."""

from __future__ import annotations

from functools import cache

import networkx as nx

from commsim.hardware.fabrics import Part, Wire, add_parts, add_wires
from commsim.hardware.topology import Link, Tier, Topology

LINKS = {
    "nvlink": Link("nvlink", 100e9, 0.25e-6),
    "pcie": Link("pcie", 60e9, 0.3e-6),
    "nic": Link("nic", 50e9, 0.5e-6),
    "fibre": Link("fibre", 25e9, 0.12e-6),
}
CAN = {"reduces": True, "multicasts": True}


def cell(*levels: tuple[dict[str, Part], tuple[Wire, ...]]) -> nx.DiGraph[str]:
    """Return a cell of these parts and wires, tier by tier."""
    drawn: nx.DiGraph[str] = nx.DiGraph()
    for tier, (parts, wires) in enumerate(levels):
        add_parts(drawn, tier, parts)
        add_wires(drawn, wires, LINKS, "test")
    return drawn


@cache
def switch(gpus: int) -> Topology:
    """Return so many GPUs on one switch that reduces: what the textbooks assume."""
    parts = {"gpu": Part(gpus), "nvswitch": Part(**CAN)}
    return Topology(cell((parts, (Wire(("gpu", "nvswitch"), "nvlink"),))))


@cache
def pods(nodes: int, gpus: int = 4, *, per_leaf: int = 2) -> Topology:
    """Return nodes of GPUs on one NVSwitch with a NIC each, on leaves (one a rail) under spines: uplinks are scarce."""
    node = {"gpu": Part(gpus), "nvswitch": Part(**CAN), "nic": Part(gpus)}
    wires = (Wire(("gpu", "nvswitch"), "nvlink", count=2), Wire(("gpu", "nic"), "pcie"))
    leaf = ({"leaf": Part(gpus, **CAN)}, (Wire(("nic", "leaf"), "nic"),))
    spine = ({"spine": Part(**CAN)}, (Wire(("leaf", "spine"), "fibre"),))
    return Topology(cell((node, wires), leaf, spine), (Tier("leaf", per_leaf), Tier("spine", 8)), nodes)


@cache
def racks(units: int, nodes: int = 2) -> Topology:
    """Return racks of nodes of two GPUs on one rack switch, the racks wired to each other: a domain of two tiers."""
    node = ({"gpu": Part(2)}, ())
    rack = ({"nvswitch": Part(**CAN)}, (Wire(("gpu", "nvswitch"), "nvlink"),))
    domain: tuple[dict[str, Part], tuple[Wire, ...]] = ({}, (Wire(("nvswitch", "nvswitch"), "fibre", "peers"),))
    return Topology(cell(node, rack, domain), (Tier("rack", nodes), Tier("domain", 4)), nodes * units, domain=2)


@cache
def mesh(gpus: int) -> Topology:
    """Return GPUs joined to each other directly."""
    return Topology(cell(({"gpu": Part(gpus)}, (Wire(("gpu", "gpu"), "nvlink", "mesh"),))))


@cache
def sockets() -> Topology:
    """Return four GPUs on two sockets: no switch reduces, and the link between the sockets is shared."""
    wires = (Wire(("gpu", "cpu"), "pcie"), Wire(("cpu", "cpu"), "fibre", "mesh"))
    return Topology(cell(({"gpu": Part(4), "cpu": Part(2)}, wires)))


SMALL = {"switch": switch(8), "pods": pods(6), "odd pods": pods(5, 3, per_leaf=3), "racks": racks(3), "mesh": mesh(4)}
SMALL["sockets"] = sockets()
