"""Which communicator do the GPUs of a machine form?"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from commsim.errors import InputError
from commsim.hardware.nccl_xml import write_xml
from commsim.hardware.nccl_xml.elements import opened, parse
from commsim.libraries.nccl.allowed import allowed
from commsim.libraries.nccl.communicator import Communicator
from commsim.libraries.nccl.constants import constants, versions
from commsim.libraries.nccl.found import Seen, digest, known
from commsim.libraries.nccl.graphs import Graph, Graphs
from commsim.libraries.nccl.knobs import Knobs
from commsim.libraries.nccl.search.detect import detect
from commsim.libraries.nccl.search.find import find

if TYPE_CHECKING:
    from collections.abc import Callable

    from commsim.hardware.system import System
    from commsim.libraries.nccl.search.devices import Machine

Members = tuple[int, ...]
"""GPUs of a node that take part, by their place in it; all when there are none."""
_DEFAULT = Knobs()


class Node(NamedTuple):
    """What NCCL calls a node, as topology XML; which of its GPUs take part, and whether its network can reduce."""

    xml: str
    members: Members = ()
    collnet: bool = False

    def machine(self, version: str) -> Machine:
        """Return what a version of NCCL sees of it. InputError when it is no machine for NCCL."""
        whole = detect(parse(self.xml, "topology"), constants(version).links)
        for net in whole.nets if self.collnet else ():
            net.port.collnet = True
        return whole.only(self.members) if self.members else whole


def of_xml(
    source: str | Path, nodes: int = 1, members: Members = (), *, knobs: Knobs = _DEFAULT, version: str = ""
) -> Communicator:
    """Return the communicator of so many nodes, each as NCCL topology XML (a path, or the text itself) describes it.

    InputError when the file is none, or has no such GPUs.
    """
    if isinstance(source, str) and source.lstrip().startswith("<"):
        return formed(Node(source, members), nodes, knobs, version)
    content = opened(Path(source))
    parse(content, str(source))
    return formed(Node(content.decode("utf-8", "replace"), members), nodes, knobs, version)


def of_dump(file: Path, hosts: int | None = None, *, knobs: Knobs = _DEFAULT, version: str = "") -> Communicator | None:
    """Return the communicator of so many hosts like those in a file that NCCL_TOPO_DUMP_FILE wrote, as it stands.

    Without `hosts` it is one node. None when the file is no such dump (a skeleton has no ranks), or when the hosts are
    no whole number of its NVLink domains. InputError for a dump that cannot be.
    """
    if file.suffix != ".xml" or not file.is_file():
        return None
    root = parse(opened(file), str(file))
    if not any(one.tag == "gpu" and one.text("rank") not in ("", "-1") for one in root.walk()):
        return None
    inside = len({cpu.text("host_hash").lower() for cpu in root.each("cpu")})
    if hosts is not None and hosts % inside:
        return None
    return of_xml(file, (hosts or inside) // inside, knobs=knobs, version=version)


@lru_cache(maxsize=256)
def of_system(system: System, members: Members = (), *, knobs: Knobs = _DEFAULT, version: str = "") -> Communicator:
    """Return the communicator of all GPUs of a machine, or of the `members` of each of NCCL's nodes.

    A node of NCCL is what reaches itself without a network: a box, or all hosts of an NVLink domain (from 2.20 on). The
    last of them may have fewer hosts: then every node does what the least of them can. InfiniBand reduces when the
    settings ask for CollNet. InputError for a machine that NCCL does not run on.
    """
    if system.accelerator.vendor != "NVIDIA":
        raise InputError(f"{system.name}: accelerator", system.accelerator.name, "NCCL runs on NVIDIA's GPUs")
    racks = constants(version).rules.rack_is_node and knobs.mnnvl_enable
    hosts = system.nodes_per_domain if racks else 1
    nodes, rest = -(-system.nodes // hosts), system.nodes % hosts
    sizes = [min(hosts, system.nodes)] + ([rest] if nodes > 1 and rest else [])
    shapes = [write_xml(replace(system, nodes=size)) for size in sizes]
    collnet = bool(knobs.collnet_enable and system.scale_out and system.scale_out.fabric == "infiniband")
    each = [formed(Node(shape, members, collnet), nodes, knobs, version) for shape in shapes]
    ranks = len(members) * nodes if members else system.gpus
    return replace(each[0], ranks=ranks, graphs=least([one.graphs for one in each]))


def least(graphs: list[Graphs]) -> Graphs:
    """Return what nodes with these graphs do together: the least channels and speeds, the farthest paths."""
    named = [one.named() for one in graphs]
    return Graphs(**{name: _least([one[name] for one in named]) for name in named[0]})


def newest(form: Callable[[str], Communicator], op: str, algorithm: str = "", protocol: str = "") -> Communicator:
    """Return the communicator with the newest version of NCCL that may take an algorithm and a protocol for `op`.

    `form` gives the communicator of a version; names that are empty may be any. InputError when no version may.
    """
    for version in reversed(versions()):
        comm = form(version)
        pairs = [pair for pair in allowed(comm, op) if algorithm in ("", pair[0]) and protocol in ("", pair[1])]
        if pairs:
            return comm
    raise InputError(f"nccl: {op}", f"{algorithm or 'any'}/{protocol or 'any'}", "no version of NCCL takes it here")


def _least(graphs: list[Graph]) -> Graph:
    return Graph(
        pattern=max(one.pattern for one in graphs),
        channels=min(one.channels for one in graphs),
        speed_intra=min(one.speed_intra for one in graphs),
        speed_inter=min(one.speed_inter for one in graphs),
        type_intra=max(one.type_intra for one in graphs),
        type_inter=max(one.type_inter for one in graphs),
        same_channels=all(one.same_channels for one in graphs),
        cross_nic=max(one.cross_nic for one in graphs),
        latency_inter=max(one.latency_inter for one in graphs),
    )


@lru_cache(maxsize=256)
def formed(node: Node, nodes: int, knobs: Knobs, version: str) -> Communicator:
    """Return the communicator of so many nodes that are all alike."""
    inter = nodes > 1
    usual = not node.collnet and replace(knobs, algo="", proto="") == _DEFAULT
    seen = (known(key(node, version, inter=inter)) if usual else None) or see(node, knobs, version, inter=inter)
    return Communicator(
        ranks=nodes * seen.gpus,
        nodes=nodes,
        capability=seen.capability,
        graphs=seen.graphs,
        cpu=seen.cpu,
        highest_capability=seen.highest_capability,
        nvswitch=seen.switched,
        knobs=knobs,
        constants=constants(version),
    )


def key(node: Node, version: str, *, inter: bool) -> str:
    """Return by what a search is known: versions with the same constants search alike."""
    return digest(node.xml, node.members, constants(version).version, inter=inter)


@lru_cache(maxsize=256)
def see(node: Node, knobs: Knobs, version: str, *, inter: bool) -> Seen:
    """Return what NCCL sees of a node and finds, searched for once: the same for any number of nodes above one."""
    machine = node.machine(version)
    graphs = find(machine, constants(version), knobs, inter=inter)
    return Seen(
        len(machine.gpus), machine.capability, machine.highest_capability, machine.cpu, machine.switched, graphs
    )
