"""Which switches join the nodes, and how many?

A folded Clos network, drawn as three vertices of a cell: a leaf, a spine, a core, of which each may stand for several
switches. Only the tiers that the nodes need are drawn.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from commsim.errors import InputError
from commsim.hardware.fabrics import Part, add_parts, join, members
from commsim.hardware.topology import Tier

if TYPE_CHECKING:
    from collections.abc import Callable

    from commsim.hardware.fabrics import Cell
    from commsim.hardware.topology import Link

UNBOUNDED = 1_000_000
"""Pods under the core: as many switches stand there as the machine needs."""
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Fabric:
    """A scale-out network: how long its links are, how many ports its switches have, what they can do.

    `cable` is the latency from adapter to switch (adapter included), `hop` that of one more switch with its fibre.
    `wiring` is the usual one, a key of `SCALE_OUTS`.
    """

    name: str
    cable: Link
    hop: Link
    radix: int
    reduces: bool = False
    wiring: str = "rails"


@dataclass(frozen=True)
class Joined:
    """What a network joins: so many nodes, in domains of so many that a leaf never splits, with how few uplinks.

    `oversubscription` is downlinks over uplinks of a leaf; the tiers above have as many cables up as down. `height` is
    the number of tiers that a domain has above its nodes.
    """

    nodes: int
    domain: int = 1
    oversubscription: float = 1.0
    height: int = 0


@dataclass(frozen=True)
class Clos:
    """The sizes of a network of switches with `radix` ports.

    A domain's NICs stand under `leaves` leaves, each drawn for `split` switches (when a domain has more NICs than a
    switch has ports down). Under a leaf stand `units` domains, and `uplinks` leave it. A pod is the leaves of these
    domains; `pods` stand under a spine, `groups` of pods under the core (0 = there is none).
    """

    radix: int
    leaves: int
    split: int
    units: int
    uplinks: float
    pods: int
    groups: int = 0

    @classmethod
    def of(cls, radix: int, leaves: int, nics: int, joined: Joined) -> Clos:
        """Return the sizes for nodes of so many NICs, spread over so many leaves.

        Two tiers: each spine reaches each leaf, so it carries as many leaves as it has ports. With a core it keeps half
        of them for its uplinks (Al-Fares et al. 2008, section 3: k/2 down and k/2 up in all but the top tier).
        """
        taper, of_domain = joined.oversubscription, joined.domain * nics / leaves
        down = radix * taper / (1 + taper)
        units = max(1, math.floor(down / of_domain + _ROUNDING))
        split = max(1, math.ceil(of_domain / down - _ROUNDING))
        domains = math.ceil(joined.nodes / joined.domain)
        most = radix // (leaves * split)
        groups = 0 if domains <= units * max(1, most) else math.ceil(domains / (units * max(1, most // 2)))
        pods = max(1, most // 2) if groups else math.ceil(domains / units)
        return cls(radix, leaves, split, units, max(1.0, units * of_domain / taper), pods, groups)

    @property
    def tiers(self) -> tuple[Tier, ...]:
        """The tiers above the scale-up domain; one leaf alone needs no spine."""
        leaf, spine = Tier("leaf", self.units), Tier("spine", self.pods)
        if self.groups:
            return leaf, spine, Tier("core", UNBOUNDED)
        return (leaf,) if self.leaves * self.pods == 1 else (leaf, spine)

    @property
    def spine_cables(self) -> float:
        """The cables that reach one spine from below."""
        return self.uplinks * self.leaves * self.pods

    @property
    def switches(self) -> dict[str, tuple[int, int]]:
        """Vertices of each tier in one cell, and the switches that each draws: those whose ports its cables fill."""
        down = self.radix // 2 if self.groups else self.radix
        cables = self.spine_cables
        spine, core = math.ceil(cables / down), max(1, math.ceil(cables * self.groups / self.radix))
        return {"leaf": (self.leaves, self.split), "spine": (1, spine), "core": (1, core)}


def rails(cell: Cell, fabric: Fabric, joined: Joined) -> tuple[Tier, ...]:
    """Add a rail-optimised fat tree: NIC r of every node stands on leaf r; return its tiers (leaf, spine, core).

    A leaf has half of its ports down, one for each node of a scalable unit (NVIDIA DGX SuperPOD reference architecture:
    64 ports = 32 nodes); the leaves of all rails share the spines.
    """
    return _draw(cell, fabric, joined, leaves=len(members(cell, "nic")))


def fat_tree(cell: Cell, fabric: Fabric, joined: Joined) -> tuple[Tier, ...]:
    """Add a plain fat tree: all NICs of a node stand on one leaf; return its tiers (leaf, spine, core)."""
    return _draw(cell, fabric, joined, leaves=1)


SCALE_OUTS: dict[str, Callable[[Cell, Fabric, Joined], tuple[Tier, ...]]] = {
    function.__name__: function for function in (rails, fat_tree)
}


def _draw(cell: Cell, fabric: Fabric, joined: Joined, *, leaves: int) -> tuple[Tier, ...]:
    """Add the switches and cables of the tiers that are needed; InputError when a leaf would have no uplink."""
    if not 1 <= joined.oversubscription <= fabric.radix - 1:
        most = f"1 (as many cables up as down) to {fabric.radix - 1} (one port of {fabric.radix} up) belong here"
        raise InputError("oversubscription", float(joined.oversubscription), most)
    nics = members(cell, "nic")
    plan = Clos.of(fabric.radix, leaves, len(nics), joined)
    for height, tier in enumerate(plan.tiers, start=joined.height + 1):
        count, stands_for = plan.switches[tier.name]
        can = Part(count, stands_for, fabric.radix, reduces=fabric.reduces, multicasts=fabric.reduces)
        add_parts(cell, height, {tier.name: can})
    for index, nic in enumerate(nics):
        join(cell, nic, f"leaf{index * leaves // len(nics)}", fabric.cable)
    for leaf in members(cell, "leaf") if members(cell, "spine") else []:
        join(cell, leaf, "spine0", fabric.hop, plan.uplinks)
    if plan.groups:
        join(cell, "spine0", "core0", fabric.hop, plan.spine_cables)
    return plan.tiers
