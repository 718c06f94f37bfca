"""What does the catalogue say of a machine?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np

from commsim.errors import InputError
from commsim.figures import Figure
from commsim.hardware.changes import Changes, changed, joined
from commsim.hardware.clos import Fabric
from commsim.hardware.entries import FabricFigures, LinkFigures, Source, SystemFigures
from commsim.hardware.fabrics import add_parts, add_wires
from commsim.hardware.naming import aliases, described, filled
from commsim.hardware.system import Accelerator, System
from commsim.hardware.topology import Link
from commsim.reading import load_yaml, read
from commsim.shipped import folder
from commsim.units import show


def load(name: str | Path, **changes: Any) -> System:  # noqa: ANN401 - the fields of Changes
    """Return the system of that name, alias or file, changed as the keywords of `Changes` say.

    A file is YAML, NCCL topology XML, or the text of `nvidia-smi topo -m`, which needs `accelerator`. Without `nodes`
    or `gpus` it is one scale-up domain. InputError for unknown names (with the nearest one), files that describe no
    machine, keywords that are none, and sizes that do not fit.
    """
    known = [item.name for item in fields(Changes)]
    for key in changes:
        if key not in known:
            raise InputError("load", key, "no such option", among=known)
    wanted = Changes(**changes)
    system = _dumped(name, wanted) or _described(name, wanted)
    system = replace(system, nodes=system.nodes_per_domain).sized(wanted.nodes, wanted.gpus, wanted.gpus_per_node)
    _check_paths(system)
    return system


def _dumped(name: str | Path, wanted: Changes) -> System | None:
    """The system of a file that a machine wrote about itself, joined by the network that the caller says."""
    from commsim.hardware.dumps import from_file  # it reads the catalogue itself

    system = from_file(name, wanted.accelerator)
    if system is None:
        return None
    if wanted.nics_per_node not in (None, system.nics_per_node):
        raise InputError("nics per node", wanted.nics_per_node, f"{name} says {system.nics_per_node}; change it there")
    out = joined(system, wanted)
    return replace(system, scale_out=out, fabric=fabric(out.fabric, out.nic) if out else None)


def _described(name: str | Path, wanted: Changes) -> System:
    """The system of a name or a YAML file."""
    table = described("systems", name, "system")
    chip = accelerator(wanted.accelerator or table.get("accelerator"), f"{name}: accelerator")
    said = read(SystemFigures, {**table, "accelerator": chip.name}, str(name))
    return _built(changed(said, wanted), chip, str(name))


def names() -> dict[str, tuple[str, ...]]:
    """Return the names of the shipped systems with their aliases."""
    return aliases("systems")


def sources() -> Mapping[str, Source]:
    """Return the documents that the catalogue's figures cite, by the short name that they are cited by."""
    table = load_yaml(folder("topologies") / "sources.yaml")
    return {key: read(Source, value, f"sources.yaml: {key}") for key, value in table.items()}


def accelerator(given: str | Mapping[str, Any] | None, where: str = "accelerator") -> Accelerator:
    """Return the accelerator of a name, alias or file, or of a table (which may say `like:` a name).

    InputError with the nearest name when there is none.
    """
    if isinstance(given, Mapping):
        return read(Accelerator, filled("accelerators", given, Path(f"{given.get('like', 'a')}, changed")), where)
    if not isinstance(given, str):
        raise InputError(where, given, "the name of an accelerator, or a table that describes one, belongs here")
    return _accelerator(given, where)


@lru_cache(maxsize=64)
def _accelerator(name: str, where: str) -> Accelerator:
    return read(Accelerator, described("accelerators", name, where), f"accelerator {name}")


@lru_cache(maxsize=1)
def link_kinds() -> Mapping[str, Link]:
    """Return the kinds of link that the catalogue knows."""
    return _links(load_yaml(folder("topologies") / "links.yaml"), "links.yaml")


def fabric(name: str, nic: float) -> Fabric:
    """Return the scale-out network of that name, of the smallest ports that a NIC of that speed (B/s) fits.

    A NIC that is faster than every port takes several ports of the fastest switch.
    """
    said = _fabrics()
    if name not in said:
        raise InputError("fabric", name, "no such fabric", among=said)
    if not 0 < nic < float("inf"):
        raise InputError("nic", float(nic), "a speed above 0 belongs here")
    by_port = sorted(said[name].switches.values(), key=lambda switch: switch.port)
    switch = next((fitting for fitting in by_port if fitting.port >= nic), by_port[-1])
    radix = int(switch.ports * min(1.0, switch.port / nic))
    if radix < 2:  # noqa: PLR2004 - one port down, one up
        most = show(switch.port * switch.ports / 2, "B/s")
        raise InputError("nic", float(nic), f"at most {most}, half of a switch of {name}, belongs here")
    cable = said[name].cable if switch.cable is None else switch.cable
    ends = Link(f"{name} nic", nic, cable), Link(f"{name} switch", nic, said[name].hop)
    return Fabric(name, *ends, radix, said[name].reduces, said[name].wiring)


@lru_cache(maxsize=1)
def _fabrics() -> Mapping[str, FabricFigures]:
    table = load_yaml(folder("topologies") / "fabrics.yaml")
    return {name: read(FabricFigures, value, f"fabrics.yaml: {name}") for name, value in table.items()}


def figures(system: System) -> dict[str, Figure]:
    """Return every figure behind a system by its path: of its accelerator, and of the kinds of link that it has.

    Such a path is `accelerator: peak: bf16` or `links: nvlink4: bandwidth`; the figure knows its source and its range.
    """
    links = {link.kind: link for link in system.topology.kinds}
    return dict(_figures({"accelerator": system.accelerator, "links": links}, ()))


def _figures(value: object, path: tuple[str, ...]) -> Iterator[tuple[str, Figure]]:
    if isinstance(value, Figure):
        yield ": ".join(path), value
    if is_dataclass(value):
        value = {item.name: getattr(value, item.name) for item in fields(value)}
    for key, below in value.items() if isinstance(value, Mapping) else ():
        yield from _figures(below, (*path, str(key)))


def _built(said: SystemFigures, chip: Accelerator, where: str) -> System:
    own = {kind: Link(kind, figures.bandwidth, figures.latency) for kind, figures in said.links.items()}
    links, out = {**link_kinds(), **own}, said.scale_out
    cell: nx.DiGraph[str] = nx.DiGraph()
    add_parts(cell, 0, said.node.parts)
    add_wires(cell, said.node.wires, links, f"{where}: node")
    same = {item.name: getattr(said, item.name) for item in fields(said)}
    for described_otherwise in ("node", "shared", "accelerator", "links"):
        same.pop(described_otherwise)
    return System(**same, accelerator=chip, cell=cell, links=links, fabric=fabric(out.fabric, out.nic) if out else None)


def _links(table: Mapping[str, Any], where: str) -> dict[str, Link]:
    figures = {kind: read(LinkFigures, value, f"{where}: {kind}") for kind, value in table.items()}
    return {kind: Link(kind, said.bandwidth, said.latency) for kind, said in figures.items()}


def _check_paths(system: System) -> None:
    """Refuse a machine in which some GPU does not reach the others; InputError."""
    topology = system.topology
    others = np.unique([*range(1, topology.gpus_per_node), topology.size - 1])
    topology.route(np.zeros_like(others), others)
