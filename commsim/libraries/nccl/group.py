"""Which communicator are the ranks of a group?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from commsim.collectives.remembered import remembered
from commsim.errors import InputError
from commsim.hardware.nccl_xml import write_xml
from commsim.libraries.nccl.constants import constants
from commsim.libraries.nccl.form import Node, formed

if TYPE_CHECKING:
    from commsim.collectives.layout import Layout
    from commsim.hardware.system import System
    from commsim.hardware.topology import Topology
    from commsim.libraries.nccl.communicator import Communicator
    from commsim.libraries.nccl.form import Members
    from commsim.libraries.nccl.knobs import Knobs

INFINIBAND = "infiniband"


class Seats(NamedTuple):
    """Where a group sits in what NCCL calls nodes: how many of them, of how many hosts each, and which GPUs of each.

    Hosts of a rack that have no rank of the group are none of its: NCCL joins the topologies of those that have.
    """

    nodes: int
    hosts: int
    members: Members


def communicator(layout: Layout, topology: Topology, knobs: Knobs, version: str = "") -> Communicator | None:
    """Return the communicator of (the first of) these groups of a machine, remembered for the machine.

    None where NCCL cannot be asked: the machine is not known as a system, has other GPUs or links that NCCL's XML has
    no words for, or the group takes other places in one node than in the next.
    """
    question = ("communicator", layout, knobs, version)
    return remembered(topology, question, lambda: _communicator(layout, topology, knobs, version))


def _communicator(layout: Layout, topology: Topology, knobs: Knobs, version: str) -> Communicator | None:
    system: System | None = topology.about.get("system")
    if system is None or system.accelerator.vendor != "NVIDIA":
        return None
    racks = constants(version).rules.rack_is_node and knobs.mnnvl_enable
    found = seats(layout, topology, topology.domain_size if racks else topology.gpus_per_node)
    xml = found and remembered(topology, ("NCCL's XML", found.hosts), lambda: _written(system, found.hosts))
    return _of(system, found, xml, knobs, version) if found and xml else None


def _written(system: System, hosts: int) -> str:
    """The XML of so many hosts; nothing where NCCL has no words for it."""
    try:
        return write_xml(replace(system, nodes=hosts))
    except InputError:
        return ""


def _of(system: System, found: Seats, xml: str, knobs: Knobs, version: str) -> Communicator:
    reduces = bool(knobs.collnet_enable and system.scale_out and system.scale_out.fabric == INFINIBAND)
    return formed(Node(xml, found.members, reduces), found.nodes, knobs, version)


def seats(layout: Layout, topology: Topology, unit: int) -> Seats | None:
    """Return how a group sits in units of so many GPUs; None when it takes other places in one than in another."""
    node, place = np.divmod(np.sort(layout.on(topology).ranks()[0]), unit)
    nodes, counts = np.unique(node, return_counts=True)
    if (counts != counts[0]).any():
        return None
    places = place.reshape(len(nodes), -1)
    if (places != places[0]).any():
        return None
    taken, host = np.unique(places[0] // topology.gpus_per_node, return_inverse=True)
    members, hosts = host * topology.gpus_per_node + places[0] % topology.gpus_per_node, len(taken)
    whole = len(members) == hosts * topology.gpus_per_node
    return Seats(len(nodes), hosts, () if whole else tuple(members.tolist()))
