"""What does the catalogue say of a machine, and what did the user change in it?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import networkx as nx

from commsim.errors import InputError
from commsim.hardware.fabrics import Fabric, Level, Part, add_parts, add_wires
from commsim.hardware.system import Accelerator, Lifecycle, Node, ScaleOut, System
from commsim.hardware.topology import Link
from commsim.reading import load_yaml, merged, read
from commsim.shipped import folder
from commsim.units import BytesPerSecond, Seconds, parse


@dataclass(frozen=True)
class LinkFigures:
    """What a file says of a kind of link; `bandwidth` is one direction of one link."""

    bandwidth: BytesPerSecond
    latency: Seconds
    note: str = ""


@dataclass(frozen=True)
class Switch:
    """A switch generation of a fabric: the speed of a port (one direction) and how many there are."""

    port: BytesPerSecond
    ports: int


@dataclass(frozen=True)
class FabricFigures:
    """What a file says of a scale-out network: latency from adapter to switch and of one more hop, its switches."""

    title: str
    cable: Seconds
    hop: Seconds
    switches: Mapping[str, Switch]
    reduces: bool = False
    note: str = ""


@dataclass(frozen=True)
class Source:
    """A document that figures are taken from: what it is, and how far to trust it (A vendor or measured ... G memory)."""

    title: str
    kind: str = ""
    trust: str = ""


@dataclass(frozen=True)
class SystemFigures:
    """What a file says of a system: the schema of `topologies/systems/*.yaml` and of a user's own."""

    name: str
    title: str
    accelerator: str
    node: Node
    status: Lifecycle = "given"
    summary: str = ""
    aliases: tuple[str, ...] = ()
    links: Mapping[str, LinkFigures] = field(default_factory=dict)
    scale_up: tuple[Level, ...] = ()
    scale_out: ScaleOut | None = None
    template: str = ""
    assumptions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Changes:
    """What the caller changes in a system: the sizes and scale-out options that every command takes."""

    nodes: int = 0
    gpus: int = 0
    gpus_per_node: int = 0
    nics_per_node: int = 0
    nic: BytesPerSecond | str = 0.0
    fabric: str = ""
    oversubscription: float = 0.0


def load(name: str | Path, **changes: Any) -> System:  # noqa: ANN401 - the fields of Changes
    """Return the system of that name, alias or YAML file, changed as the keywords of `Changes` say.

    Without `nodes` or `gpus` it is one scale-up domain. `nic` is one direction of one NIC (B/s, or text with a unit).
    InputError for unknown names (with the nearest one), for keywords that are none, and for sizes that do not fit.
    """
    known = [item.name for item in fields(Changes)]
    for key in changes:
        if key not in known:
            raise InputError("load", key, "no such option", among=known)
    wanted = Changes(**changes)
    system = _built(_changed(_description(name), wanted), str(name))
    system = replace(system, nodes=system.nodes_per_domain)
    return system.sized(wanted.nodes, wanted.gpus, wanted.gpus_per_node)


def names() -> dict[str, tuple[str, ...]]:
    """Return the names of the shipped systems with their aliases."""
    return {name: tuple(table.get("aliases", ())) for name, table in _shipped("systems").items()}


def sources() -> Mapping[str, Source]:
    """Return the documents that the catalogue's figures cite, by the short name that they are cited by."""
    table = load_yaml(folder("topologies") / "sources.yaml")
    return {key: read(Source, value, f"sources.yaml: {key}") for key, value in table.items()}


@lru_cache(maxsize=64)
def accelerator(name: str, where: str = "accelerator") -> Accelerator:
    """Return the accelerator of that name or alias; InputError with the nearest name when there is none."""
    tables = _shipped("accelerators")
    found = _resolved(name, tables, where)
    return read(Accelerator, tables[found], f"accelerators/{found}.yaml")


@lru_cache(maxsize=1)
def link_kinds() -> Mapping[str, Link]:
    """Return the kinds of link that the catalogue knows."""
    return _links(load_yaml(folder("topologies") / "links.yaml"), "links.yaml")


def fabric(name: str, nic: float) -> Fabric:
    """Return the scale-out network of that name, with the switches whose ports a NIC of that speed (B/s) fits."""
    tables = load_yaml(folder("topologies") / "fabrics.yaml")
    if name not in tables:
        raise InputError("fabric", name, "no such fabric", among=tables)
    said = read(FabricFigures, tables[name], f"fabrics.yaml: {name}")
    fitting = [switch for switch in said.switches.values() if switch.port >= nic]
    switch = min(fitting, key=lambda s: s.port) if fitting else max(said.switches.values(), key=lambda s: s.port)
    return Fabric(name, Link(f"{name} nic", nic, said.cable), Link(f"{name} switch", nic, said.hop), switch.ports, said.reduces)


@lru_cache(maxsize=8)
def _shipped(group: str) -> dict[str, Mapping[str, Any]]:
    """Every table of a folder of the catalogue, by its name."""
    return {path.stem: load_yaml(path) for path in sorted((folder("topologies") / group).glob("*.yaml"))}


def _resolved(name: str, tables: Mapping[str, Mapping[str, Any]], where: str) -> str:
    """The name that `name` is, or is an alias of, whatever its case."""
    alias = {str(other).lower(): key for key, table in tables.items() for other in (key, *table.get("aliases", ()))}
    if name.lower() not in alias:
        raise InputError(where, name, "no such name in the catalogue", among=alias)
    return alias[name.lower()]


def _description(name: str | Path) -> Mapping[str, Any]:
    """The table of a system with everything that its `like:` says filled in."""
    path = Path(name)
    if path.suffix in (".yaml", ".yml"):
        table = load_yaml(path)
    else:
        tables = _shipped("systems")
        table = tables[_resolved(str(name), tables, "system")]
    if "like" not in table:
        return table
    change = {key: value for key, value in table.items() if key != "like"}
    return merged({**_description(str(table["like"])), "aliases": []}, change)


def _changed(table: Mapping[str, Any], wanted: Changes) -> Mapping[str, Any]:
    """The table with the caller's changes laid over it."""
    change: dict[str, Any] = {}
    given = {"fabric": wanted.fabric, "nic": wanted.nic, "oversubscription": wanted.oversubscription}
    scale_out = {key: value for key, value in given.items() if value}
    if isinstance(scale_out.get("nic"), float | int):
        scale_out["nic"] = f"{scale_out['nic']!r} B/s"
    if "nic" in scale_out:
        parse(scale_out["nic"], "B/s", "nic")
    if "nic" in scale_out and not table.get("scale_out"):
        scale_out = {"fabric": "infiniband", **scale_out}
    if scale_out:
        change["scale_out"] = scale_out
    if wanted.nics_per_node:
        nic = table["node"]["parts"].get("nic", {})
        change["node"] = {"parts": {"nic": {**nic, "count": wanted.nics_per_node}}}
    return merged(table, change)


def _built(table: Mapping[str, Any], where: str) -> System:
    said = read(SystemFigures, table, where)
    links = {**link_kinds(), **_links(table.get("links", {}), where)}
    cell: nx.DiGraph[str] = nx.DiGraph()
    add_parts(cell, 0, said.node.parts)
    add_wires(cell, said.node.wires, links, f"{where}: node")
    out = said.scale_out
    return System(
        name=said.name,
        title=said.title,
        accelerator=accelerator(said.accelerator, f"{where}: accelerator"),
        cell=cell,
        status=said.status,
        summary=said.summary,
        aliases=said.aliases,
        scale_up=said.scale_up,
        links=links,
        scale_out=out,
        fabric=fabric(out.fabric, out.nic) if out else None,
        template=said.template,
        assumptions=said.assumptions,
    )


def _links(table: Mapping[str, Any], where: str) -> dict[str, Link]:
    figures = {kind: read(LinkFigures, value, f"{where}: {kind}") for kind, value in table.items()}
    return {kind: Link(kind, said.bandwidth, said.latency) for kind, said in figures.items()}


__all__ = ["Changes", "Part", "accelerator", "fabric", "link_kinds", "load", "names", "sources"]
