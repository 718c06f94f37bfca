"""How are parts wired to each other?

Each wiring is one function that adds wires to a cell; `WIRINGS` is the table that the `wiring:` key of a YAML names.
Scale-out wirings (`rails`, `fat_tree`) also add the switches of their tiers. To add a wiring, write a function here.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import networkx as nx

from commsim.errors import InputError
from commsim.hardware.topology import Link, Tier

Cell = nx.DiGraph
"""A networkx graph of one node and of one switch of each tier above it (see `topology`)."""


@dataclass(frozen=True)
class Part:
    """So many vertices of one name in a unit, and what a switch among them can do."""

    count: int = 1
    stands_for: int = 1
    reduces: bool = False
    multicasts: bool = False
    forwards: bool | None = None


@dataclass(frozen=True)
class Wire:
    """Cables between two parts: `count` parallel links of a kind between each pair that the wiring joins.

    `pairs` lists [a, b] or [a, b, count] for the wiring `pairs`; the others need none.
    """

    ends: tuple[str, str]
    link: str
    wiring: str = "spread"
    count: int = 1
    pairs: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True)
class Level:
    """A tier of the scale-up domain above the node: its switches and how they are wired to what is below."""

    tier: str
    units: int
    parts: Mapping[str, Part] = field(default_factory=dict)
    wires: tuple[Wire, ...] = ()


@dataclass(frozen=True)
class Fabric:
    """A scale-out network: how long its links are, how many ports its switches have, what they can do.

    `cable` is the latency from adapter to switch (adapter included), `hop` that of one more switch with its fibre.
    """

    name: str
    cable: Link
    hop: Link
    radix: int
    reduces: bool = False


def add_parts(cell: Cell, tier: int, parts: Mapping[str, Part]) -> None:
    """Add the vertices of one unit of a tier: `gpu0`, `gpu1`, ... for a part `gpu`."""
    for name, part in parts.items():
        more = {} if part.forwards is None else {"forwards": part.forwards}
        for index in range(part.count):
            what = {"part": name, "tier": tier, "index": index, "stands_for": part.stands_for}
            cell.add_node(f"{name}{index}", **what, reduces=part.reduces, multicasts=part.multicasts, **more)


def add_wires(cell: Cell, wires: Iterable[Wire], links: Mapping[str, Link], where: str) -> None:
    """Add wires to a cell; InputError names the wire when its link, wiring or parts do not exist."""
    for number, wire in enumerate(wires):
        place = f"{where}: wires[{number}]"
        if wire.wiring not in WIRINGS:
            raise InputError(f"{place}: wiring", wire.wiring, "no such wiring", among=WIRINGS)
        if wire.link not in links:
            raise InputError(f"{place}: link", wire.link, "no such kind of link", among=links)
        for end in wire.ends:
            if not members(cell, end):
                parts = sorted({str(part) for _, part in cell.nodes(data="part")})
                raise InputError(f"{place}: ends", end, "no such part", among=parts)
        WIRINGS[wire.wiring](cell, wire, links[wire.link])


def members(cell: Cell, part: str) -> list[str]:
    """Return the vertices of a part, in order."""
    return [name for name, what in cell.nodes(data="part") if what == part]


def join(cell: Cell, a: str, b: str, link: Link, count: float = 1, **more: bool) -> None:
    """Join two vertices in both directions; cables between the same two of the same kind add up."""
    for u, v in ((a, b), (b, a)):
        already = cell.edges[u, v]["count"] if cell.has_edge(u, v) else 0
        cell.add_edge(u, v, link=link, count=already + count, **more)


def spread(cell: Cell, wire: Wire, link: Link) -> None:
    """Deal the larger part out over the smaller in blocks: 8 GPUs on 4 switches = two to each, in order."""
    many, few = sorted((members(cell, end) for end in wire.ends), key=len, reverse=True)
    for index, name in enumerate(many):
        join(cell, name, few[index * len(few) // len(many)], link, wire.count)


def every(cell: Cell, wire: Wire, link: Link) -> None:
    """Join each of the one part with each of the other (planes of switches: every GPU reaches every plane)."""
    for a, b in itertools.product(*(members(cell, end) for end in wire.ends)):
        join(cell, a, b, link, wire.count)


def mesh(cell: Cell, wire: Wire, link: Link) -> None:
    """Join every two of one part directly: fully connected GPUs, two sockets, the first dimension of a HyperX."""
    for a, b in itertools.combinations(members(cell, wire.ends[0]), 2):
        join(cell, a, b, link, wire.count)


def pairs(cell: Cell, wire: Wire, link: Link) -> None:
    """Join the listed pairs [a, b] or [a, b, count]: a hybrid cube mesh, bridges between two cards."""
    ends = [members(cell, end) for end in wire.ends]
    for pair in wire.pairs:
        if len(pair) not in (2, 3) or not all(0 <= pair[i] < len(ends[i]) for i in (0, 1)):
            raise InputError("wires: pairs", list(pair), f"[a, b] or [a, b, count] below {[len(end) for end in ends]}")
        join(cell, ends[0][pair[0]], ends[1][pair[1]], link, pair[2] if len(pair) > 2 else wire.count)  # noqa: PLR2004


def ring(cell: Cell, wire: Wire, link: Link) -> None:
    """Join each of a part with the next, and the last with the first: a torus of one dimension."""
    names = members(cell, wire.ends[0])
    for a, b in zip(names, names[1:] + names[:1], strict=True):
        if a != b and not (len(names) == 2 and cell.has_edge(a, b)):  # noqa: PLR2004
            join(cell, a, b, link, wire.count)


def peers(cell: Cell, wire: Wire, link: Link) -> None:
    """Join each vertex with its copies in all sibling units: racks wired all to all, a HyperX's next dimension."""
    for name in members(cell, wire.ends[0]):
        cell.add_edge(name, name, link=link, count=wire.count, peers=True)


WIRINGS: dict[str, Callable[[Cell, Wire, Link], None]] = {
    function.__name__: function for function in (spread, every, mesh, pairs, ring, peers)
}


def rails(cell: Cell, fabric: Fabric, domain: int, oversubscription: float = 1.0) -> tuple[Tier, ...]:
    """Add a rail-optimised fat tree: NIC r of every node stands on leaf r; return its tiers (leaf, spine, core).

    A leaf has half of its ports down, one for each node of a scalable unit (NVIDIA DGX SuperPOD reference architecture:
    64 ports = 32 nodes); the leaves of all rails share the spines. `domain` = nodes of one scale-up domain, which a leaf
    never splits. Uplinks are the downlinks over `oversubscription`.
    """
    return _clos(cell, fabric, domain, oversubscription, rails=True)


def fat_tree(cell: Cell, fabric: Fabric, domain: int, oversubscription: float = 1.0) -> tuple[Tier, ...]:
    """Add a plain fat tree: all NICs of a node stand on one leaf; return its tiers (leaf, spine, core).

    Al-Fares et al. 2008, "A scalable, commodity data center network architecture": half of the ports down, half up.
    """
    return _clos(cell, fabric, domain, oversubscription, rails=False)


def _clos(cell: Cell, fabric: Fabric, domain: int, oversubscription: float, *, rails: bool) -> tuple[Tier, ...]:
    nics = members(cell, "nic")
    below = 1 + max(tier for _, tier in cell.nodes(data="tier"))
    leaves = len(nics) if rails else 1
    down_ports = fabric.radix * oversubscription / (1 + oversubscription)
    units = max(1, math.floor(down_ports / (domain if rails else domain * len(nics)) + 1e-9))
    pods = max(1, fabric.radix // leaves)
    can = {"leaf": Part(leaves, 1, fabric.reduces, fabric.reduces), "spine": Part(1, 1, fabric.reduces, fabric.reduces)}
    for height, (name, part) in enumerate((*can.items(), ("core", Part(1, 1, fabric.reduces, fabric.reduces)))):
        add_parts(cell, below + height, {name: part})
    for index, nic in enumerate(nics):
        join(cell, nic, f"leaf{index if rails else 0}", fabric.cable)
    uplinks = units * domain * (1 if rails else len(nics)) / oversubscription
    for leaf in members(cell, "leaf"):
        join(cell, leaf, "spine0", fabric.hop, uplinks)
    join(cell, "spine0", "core0", fabric.hop, uplinks * leaves * pods)
    return Tier("leaf", units), Tier("spine", pods), Tier("core", UNBOUNDED)


SCALE_OUTS: dict[str, Callable[[Cell, Fabric, int, float], tuple[Tier, ...]]] = {
    function.__name__: function for function in (rails, fat_tree)
}
UNBOUNDED = 1_000_000
"""Pods under the top tier: as many switches stand there as the machine needs."""


def torus(sizes: tuple[int, ...], link: Link) -> Cell:
    """Return a torus of GPUs, one dimension for each size, each joined to its two neighbours in each dimension."""
    cell: Cell = nx.DiGraph()
    add_parts(cell, 0, {"gpu": Part(math.prod(sizes), forwards=True)})
    for place in itertools.product(*map(range, sizes)):
        for axis, size in enumerate(sizes):
            onward = tuple((p + (axis == i)) % sizes[i] for i, p in enumerate(place))
            if size > 1 and not (size == 2 and place[axis] == 1):  # noqa: PLR2004 - two are joined once
                join(cell, f"gpu{_place(place, sizes)}", f"gpu{_place(onward, sizes)}", link)
    return cell


def hyperx(sizes: tuple[int, ...], links: tuple[Link, ...]) -> Cell:
    """Return a HyperX of LPUs: fully connected along each dimension (Ahn et al. 2009), one kind of link for each."""
    cell: Cell = nx.DiGraph()
    add_parts(cell, 0, {"lpu": Part(math.prod(sizes))})
    places = list(itertools.product(*map(range, sizes)))
    for a, b in itertools.combinations(places, 2):
        differ = [axis for axis in range(len(sizes)) if a[axis] != b[axis]]
        if len(differ) == 1:
            join(cell, f"lpu{_place(a, sizes)}", f"lpu{_place(b, sizes)}", links[differ[0]])
    return cell


def _place(place: tuple[int, ...], sizes: tuple[int, ...]) -> int:
    """The number of a place, the last dimension fastest."""
    number = 0
    for at, size in zip(place, sizes, strict=True):
        number = number * size + at
    return number
