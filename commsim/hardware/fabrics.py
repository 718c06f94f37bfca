"""How are parts wired to each other?

Each wiring is one function that adds wires to a cell; `WIRINGS` is the table that the `wiring:` key of a YAML names.
To add a wiring, write a function here. Networks of switches between nodes are wired in `clos`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping  # noqa: TC003 - the reader of YAML resolves annotations
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import networkx as nx

from commsim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from commsim.hardware.topology import Link

Cell: TypeAlias = "nx.DiGraph[str]"
"""A networkx graph of one node and of one switch of each tier above it (see `topology`)."""

MOST_PARTS, MOST_LINKS = 1024, 65_536
"""Vertices of one part, and parallel links of one wire, at most: more is a slip of the pen."""


@dataclass(frozen=True)
class Part:
    """So many vertices of one name in a unit, and what a switch among them can do.

    `stands_for` says how many parallel chips one vertex draws, `ports` how many links one such chip has room for.
    """

    count: int = 1
    stands_for: int = 1
    ports: int | None = None
    reduces: bool = False
    multicasts: bool = False
    forwards: bool | None = None

    def __post_init__(self) -> None:
        """Refuse a part that cannot be drawn; InputError."""
        if not 1 <= self.count <= MOST_PARTS:
            raise InputError("part: count", self.count, f"1 to {MOST_PARTS} belong here")
        if self.stands_for < 1:
            raise InputError(
                "part: stands_for", self.stands_for, "the chips that a vertex draws, 1 or more, belong here"
            )


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

    def __post_init__(self) -> None:
        """Refuse a tier that joins nothing; InputError."""
        if not 1 <= self.units <= MOST_LINKS:
            raise InputError(f"scale_up: {self.tier}: units", self.units, "the units that it joins belong here")


def add_parts(cell: Cell, tier: int, parts: Mapping[str, Part]) -> None:
    """Add the vertices of one unit of a tier: `gpu0`, `gpu1`, ... for a part `gpu`; InputError when one is there."""
    for name, part in parts.items():
        more = {} if part.forwards is None else {"forwards": part.forwards}
        for index in range(part.count):
            if f"{name}{index}" in cell:
                raise InputError("parts", name, "a part of another name belongs here: these vertices are there already")
            what = {"part": name, "tier": tier, "index": index, "stands_for": part.stands_for, "ports": part.ports}
            cell.add_node(f"{name}{index}", **what, reduces=part.reduces, multicasts=part.multicasts, **more)


def add_wires(cell: Cell, wires: Iterable[Wire], links: Mapping[str, Link], where: str) -> None:
    """Add wires to a cell; InputError names the wire when its link, wiring or parts do not exist or do not fit."""
    for number, wire in enumerate(wires):
        place = f"{where}: wires[{number}]"
        if wire.wiring not in WIRINGS:
            raise InputError(f"{place}: wiring", wire.wiring, "no such wiring", among=WIRINGS)
        if wire.link not in links:
            raise InputError(f"{place}: link", wire.link, "no such kind of link", among=links)
        _check_ends(cell, wire, place)
        WIRINGS[wire.wiring](cell, wire, links[wire.link])


def _check_ends(cell: Cell, wire: Wire, place: str) -> None:
    """Refuse ends that are no parts, ends that this wiring cannot join, and no or absurdly many cables; InputError."""
    parts = sorted({cell.nodes[name]["part"] for name in cell})
    for end in wire.ends:
        if end not in parts:
            raise InputError(f"{place}: ends", end, "no such part", among=parts)
    if wire.wiring in BETWEEN_TWO and wire.ends[0] == wire.ends[1]:
        raise InputError(f"{place}: ends", wire.ends, f"{wire.wiring!r} joins two different parts; 'mesh' joins one")
    if wire.wiring in WITHIN_ONE and wire.ends[0] != wire.ends[1]:
        raise InputError(f"{place}: ends", wire.ends, f"{wire.wiring!r} joins one part with itself; name it twice")
    if not 1 <= wire.count <= MOST_LINKS:
        raise InputError(f"{place}: count", wire.count, f"1 to {MOST_LINKS} parallel links belong here")


def members(cell: Cell, part: str) -> list[str]:
    """Return the vertices of a part, in order."""
    return [name for name in cell if cell.nodes[name]["part"] == part]


def join(cell: Cell, a: str, b: str, link: Link, count: float = 1, **more: bool) -> None:
    """Join two vertices in both directions; cables between the same two add up. InputError when of two kinds."""
    for u, v in ((a, b), (b, a)):
        if cell.has_edge(u, v) and cell.edges[u, v]["link"] != link:
            raise InputError("wires", link.kind, f"{a} and {b} are joined by {cell.edges[u, v]['link'].kind} already")
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
        fits = len(pair) in (2, 3) and all(pair[i] < len(ends[i]) for i in (0, 1)) and pair[-1] <= MOST_LINKS
        if not fits or ends[0][pair[0]] == ends[1][pair[1]] or 0 in pair[2:]:
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


BETWEEN_TWO, WITHIN_ONE = ("spread", "every"), ("mesh", "ring", "peers")
WIRINGS: dict[str, Callable[[Cell, Wire, Link], None]] = {
    function.__name__: function for function in (spread, every, mesh, pairs, ring, peers)
}


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
