"""What has to be laid out for a Topology?

Every vertex of its graph, rank or switch, becomes a network namespace, every edge a cable; each namespace forwards
along the routes on which the Topology prices (see `hardware.routing`).
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import TYPE_CHECKING

from commsim.errors import InputError
from commsim.hardware import routing

if TYPE_CHECKING:
    from commsim.hardware.topology import Topology
    from commsim.units import BytesPerSecond

MOST_SPACES, MOST_CABLES = 128, 512
FASTEST = 1.25e9
"""B/s of a cable at most: beyond 10 Gb/s a machine's processors are what limits, not the shaper."""
_FIRST = IPv4Address("10.0.0.1")


@dataclass(frozen=True)
class Cable:
    """A cable between two namespaces, by their numbers, with the bandwidth of one direction."""

    ends: tuple[int, int]
    rate: BytesPerSecond
    kind: str


@dataclass(frozen=True)
class Blueprint:
    """What is laid out: namespaces by name, cables, in which namespace each rank runs, and who forwards where.

    `routes` are (space, rank, cable): what a namespace sends to a rank leaves it over that cable.
    """

    spaces: tuple[str, ...]
    cables: tuple[Cable, ...]
    ranks: tuple[int, ...]
    routes: tuple[tuple[int, int, int], ...]

    def address(self, space: int) -> str:
        """Return the address of a namespace, the same on all of its ports."""
        return str(_FIRST + space)

    def port(self, space: int, cable: int) -> str:
        """Return the name of the port in which a cable ends: `eth0` for the first cable of a namespace."""
        return f"eth{[number for number, one in enumerate(self.cables) if space in one.ends].index(cable)}"

    def cable(self, a: str, b: str) -> int:
        """Return the number of the cable between two namespaces; InputError when there is none."""
        names = {frozenset(self.spaces[end] for end in one.ends): number for number, one in enumerate(self.cables)}
        if frozenset((a, b)) not in names:
            known = [" ".join(self.spaces[end] for end in one.ends) for one in self.cables]
            raise InputError("lab: link", f"{a} {b}", "no link joins these two", among=known)
        return names[frozenset((a, b))]


def blueprint(topology: Topology) -> Blueprint:
    """Return what has to be laid out for a machine; InputError for what one machine cannot hold.

    Where several ways are equally short, a rank is reached over one of them by its number, as in InfiniBand's fat trees
    (destination mod k).
    """
    cell = topology.flat().cell
    spaces = tuple(cell)
    number = {name: place for place, name in enumerate(spaces)}
    cables = tuple(
        Cable((number[u], number[v]), float(data["link"].bandwidth) * data.get("count", 1), data["link"].kind)
        for u, v, data in cell.edges(data=True)
        if number[u] < number[v]
    )
    _check(spaces, cables)
    ranks = tuple(number[name] for name in routing.gpus_of(cell)[: topology.size])
    return Blueprint(spaces, cables, ranks, tuple(_routes(topology.flat(), number, cables)))


def _check(spaces: tuple[str, ...], cables: tuple[Cable, ...]) -> None:
    """Refuse what is too large, and what is too fast, to be laid out; InputError."""
    if len(spaces) > MOST_SPACES or len(cables) > MOST_CABLES:
        given = f"{len(spaces)} ranks and switches, {len(cables)} links"
        raise InputError("lab", given, f"at most {MOST_SPACES} and {MOST_CABLES} can be laid out on one machine")
    for cable in cables:
        if cable.rate > FASTEST:
            given = f"{cable.rate * 8 / 1e9:.4g} Gb/s"
            raise InputError(f"lab: link {cable.kind}", given, "at most 10 Gb/s can be shaped; see --slower")


def _routes(topology: Topology, number: dict[str, int], cables: tuple[Cable, ...]) -> list[tuple[int, int, int]]:
    """Where each namespace sends what is for each rank."""
    cable = {end: place for place, one in enumerate(cables) for end in (one.ends, one.ends[::-1])}
    found: dict[tuple[int, int], int] = {}
    for target in range(topology.size):
        onward: dict[int, set[int]] = {}
        for source in range(topology.size):
            for u, v in routing.between(topology.cell, source, target, 0).edges:
                onward.setdefault(number[u], set()).add(number[v])
        for space, others in onward.items():
            chosen = sorted(others)[target % len(others)]
            found[space, target] = cable[space, chosen]
    return [(space, target, over) for (space, target), over in found.items()]
