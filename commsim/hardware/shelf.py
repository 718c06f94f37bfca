"""What stands in the catalogue: which systems, accelerators, kinds of link, networks and sources?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from functools import lru_cache
from pathlib import Path
from typing import Any

import networkx as nx

from commsim.errors import InputError
from commsim.hardware.changes import UNCHANGED, Changes, changed
from commsim.hardware.clos import Fabric
from commsim.hardware.entries import FabricFigures, LinkFigures, Source, SystemFigures
from commsim.hardware.fabrics import add_parts, add_wires
from commsim.hardware.naming import aliases, described, filled
from commsim.hardware.system import Accelerator, System
from commsim.hardware.topology import Link
from commsim.reading import load_yaml, merged, read
from commsim.shipped import folder
from commsim.units import show


def names() -> dict[str, tuple[str, ...]]:
    """Return the names of the shipped systems with their aliases."""
    return aliases("systems")


def system(name: str | Path, wanted: Changes = UNCHANGED) -> System:
    """Return the system of a name, alias or YAML file, one node of it, changed as the caller wants.

    InputError for unknown names (with the nearest one) and for files that describe no machine.
    """
    table = described("systems", name, "system")
    chip = accelerator(wanted.accelerator or table.get("accelerator"), f"{name}: accelerator")
    said = read(SystemFigures, {**table, "accelerator": chip.name, "links": _changed_links(table)}, str(name))
    return _built(changed(said, wanted), chip, str(name))


def _changed_links(table: Mapping[str, Any]) -> Any:  # noqa: ANN401 - the reader says what is wrong with it
    """The file's own kinds of link; of a kind that the catalogue has too, what the file does not say is as there."""
    own, known = table.get("links", {}), _link_tables()
    if not isinstance(own, Mapping):
        return own
    tables = {kind: said for kind, said in own.items() if isinstance(said, Mapping)}
    return {**own, **{kind: merged(known.get(kind, {}), said) for kind, said in tables.items()}}


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
    return _links(_link_tables(), "links.yaml")


@lru_cache(maxsize=1)
def _link_tables() -> Mapping[str, Any]:
    return load_yaml(folder("topologies") / "links.yaml")


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
