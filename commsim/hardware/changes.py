"""What did the user change in a machine?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, prod
from typing import TYPE_CHECKING

from commsim.errors import InputError
from commsim.figures import Figure
from commsim.hardware.fabrics import Level, Part, Wire
from commsim.hardware.system import Node, ScaleOut, System
from commsim.hardware.topology import ENDPOINTS
from commsim.units import BytesPerSecond, parse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from commsim.hardware.entries import SystemFigures


@dataclass(frozen=True)
class Changes:
    """What the caller changes in a system: the options that every command takes. None changes nothing.

    `gpus_per_node` are those used, `gpus_per_domain` those used of each scale-up domain (64 of an NVL72 rack, so that
    groups of 8, 16, 32 or 64 do not straddle racks). `nics_per_node` are the NICs of a node; when they are no more than
    the GPUs used, they serve these evenly. `nic` is one direction of one NIC: B/s, or text with a unit.
    """

    nodes: int | None = None
    gpus: int | None = None
    gpus_per_node: int | None = None
    gpus_per_domain: int | None = None
    nics_per_node: int | None = None
    nic: BytesPerSecond | str | None = None
    fabric: str | None = None
    oversubscription: float | None = None
    accelerator: str | None = None


UNCHANGED = Changes()


def changed(said: SystemFigures, wanted: Changes) -> SystemFigures:
    """Return what a file says with the caller's NICs and network laid over it; InputError when they do not fit."""
    said = replace(said, scale_up=_used(said, wanted))
    out = joined(said, wanted)
    if out is None:
        return said
    assumed = ("the network between nodes was not said: InfiniBand",) if not (said.scale_out or wanted.fabric) else ()
    return replace(said, scale_out=out, node=_with_nics(said, wanted), assumptions=said.assumptions + assumed)


def _used(said: SystemFigures, wanted: Changes) -> tuple[Level, ...]:
    """The tiers of the scale-up domain with so many units of the top one as are used."""
    if wanted.gpus_per_domain is None:
        return said.scale_up
    present = sum(part.count for name, part in said.node.parts.items() if name in ENDPOINTS)
    below = (wanted.gpus_per_node or present) * prod(level.units for level in said.scale_up[:-1])
    most = below * said.scale_up[-1].units if said.scale_up else below
    units, rest = divmod(wanted.gpus_per_domain, below)
    if rest or not 1 <= units * below <= most:
        raise InputError("gpus per domain", wanted.gpus_per_domain, f"a multiple of {below}, at most {most}")
    return (*said.scale_up[:-1], replace(said.scale_up[-1], units=units)) if said.scale_up else ()


def joined(said: SystemFigures | System, wanted: Changes) -> ScaleOut | None:
    """Return how the machine is joined to others with the caller's network laid over it; None when by nothing.

    InputError when the machine has no NICs and the caller gives none.
    """
    out = said.scale_out
    options = (wanted.fabric, wanted.nic, wanted.oversubscription, wanted.nics_per_node)
    if all(option is None for option in options):
        return out
    if out is None and wanted.nic is None:
        raise InputError(f"{said.name}: nic", None, "this machine has no NICs; say how fast one is, such as '400 Gb/s'")
    out = out or ScaleOut("infiniband", 0.0)
    if wanted.oversubscription is not None and not 1 <= wanted.oversubscription < inf:
        raise InputError(
            "oversubscription", wanted.oversubscription, "1 (as many cables up as down) or more belongs here"
        )
    other = wanted.fabric not in (None, out.fabric)
    return ScaleOut(
        fabric=wanted.fabric or out.fabric,
        nic=out.nic if wanted.nic is None else _speed(wanted.nic),
        wiring="" if other else out.wiring,
        oversubscription=out.oversubscription if wanted.oversubscription is None else wanted.oversubscription,
    )


def _speed(nic: float | str) -> Figure:
    text = nic if isinstance(nic, str) else f"{float(nic)!r} B/s"
    return Figure(parse(text, "B/s", "nic"), source=("the caller",))


def _with_nics(said: SystemFigures, wanted: Changes) -> Node:
    """The node with the NICs that are wanted; where it has none, one."""
    node, nic = said.node, said.node.parts.get("nic")
    if wanted.nics_per_node is None and nic:
        return node
    count = _count(said, wanted)
    if nic and nic.count == count:
        return node
    parts = {**node.parts, "nic": replace(nic or Part(), count=count)}
    placed = any("nic" in wire.ends for wire in node.wires)
    wires = [_dealt(wire, parts) for wire in (node.wires if placed else (*node.wires, _slot(said)))]
    return Node(parts, tuple(wires))


def _dealt(wire: Wire, parts: Mapping[str, Part]) -> Wire:
    """The wire of another number of NICs: dealt out evenly, but each on one processor when there are fewer NICs."""
    if "nic" not in wire.ends:
        return wire
    host, nics = next(end for end in wire.ends if end != "nic"), parts["nic"].count
    if host == "cpu" and host in parts and nics < parts[host].count:
        return replace(wire, ends=("nic", host), wiring="pairs", pairs=tuple((nic, nic) for nic in range(nics)))
    return replace(wire, wiring="spread", pairs=())


def _count(said: SystemFigures, wanted: Changes) -> int:
    """The NICs of a whole node, so that the GPUs used have those that are wanted."""
    nics = 1 if wanted.nics_per_node is None else wanted.nics_per_node
    present = sum(part.count for name, part in said.node.parts.items() if name in ENDPOINTS)
    used = min(wanted.gpus_per_node or wanted.gpus or present, present)
    if isinstance(nics, bool) or not isinstance(nics, int) or nics < 1 or (nics % used and used % nics):
        raise InputError("nics per node", nics, f"a divisor or a multiple of the GPUs used, {used}, belongs here")
    return max(nics, present * min(nics, used) // used)


def _slot(said: SystemFigures) -> Wire:
    """Where a NIC goes when the file does not say: beside the GPUs on the PCIe switches, else on the processors."""
    for host in ("pcie", "cpu"):
        for wire in said.node.wires:
            if host in wire.ends and set(wire.ends) & set(ENDPOINTS):
                return Wire(("nic", host), wire.link)
    raise InputError(
        f"{said.name}: node", sorted(said.node.parts), "without `pcie` or `cpu` the part `nic` belongs here"
    )
