"""How much bandwidth is left on the links while channels are laid over them?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from commsim.libraries.nccl.graphs import Path
from commsim.libraries.nccl.search.devices import Device, Kind, Link

if TYPE_CHECKING:
    from commsim.libraries.nccl.search.paths import Paths

_AMPERE = 80
_INTEL_PEERS = 6 / 5
"""Bytes on PCIe for each byte between GPUs through an Intel host bridge, which cuts packets to 64 B."""
_ACKNOWLEDGED = 1 / 8
"""Bytes that come back for each byte that a NIC writes to a GPU older than Ampere."""
_INSIDE = (Kind.GPU, Kind.NVSWITCH)


class Charge(NamedTuple):
    """What a flow costs a link: its number, bytes for each byte, and the same of the link back (none: -1)."""

    link: int
    factor: float
    back: int
    back_factor: float


class Leg(NamedTuple):
    """A way as channels use it: its path there and back, whether it stays inside the node, its hops and its cost."""

    path: Path
    back: Path
    inside: bool
    hops: int
    charges: tuple[Charge, ...]


@dataclass(eq=False)
class Room:
    """What is left on each link (MB/s), by its number; NCCL counts to whole MB/s."""

    paths: Paths
    empty: list[float] = field(init=False)
    left: list[float] = field(init=False)
    _legs: dict[tuple[Device, Device], Leg] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Find the links of the machine."""
        links = [link for devices in self.paths.machine.devices.values() for one in devices for link in one.links]
        self.empty = [link.bandwidth for link in sorted(links, key=lambda link: link.number)]
        self.clear()

    def clear(self) -> None:
        """Take all channels off."""
        self.left = list(self.empty)

    def leg(self, source: Device, target: Device) -> Leg:
        """Return the way from one device to another as channels use it."""
        key = (source, target)
        if key not in self._legs:
            way, back = self.paths.way(source, target), self.paths.way(target, source)
            inside = source.kind in _INSIDE and target.kind in _INSIDE
            hops = self.paths.hops(source, target)
            self._legs[key] = Leg(way.path, back.path, inside, hops, self._charges(source, target))
        return self._legs[key]

    def take(self, charges: tuple[Charge, ...], speed: float) -> bool:
        """Lay a flow (MB/s) over a way; tell whether there was room for it."""
        left = self.left
        for place, (link, factor, back, back_factor) in enumerate(charges):
            need = speed * factor
            if left[link] < need or (back >= 0 and left[back] < need * back_factor):
                self.give(charges[:place], speed)
                return False
            left[link] = round(left[link] - need)
            if back >= 0:
                left[back] = round(left[back] - need * back_factor)
        return True

    def give(self, charges: tuple[Charge, ...], speed: float) -> None:
        """Take a flow off its way again."""
        left = self.left
        for link, factor, back, back_factor in charges:
            left[link] = round(left[link] + speed * factor)
            if back >= 0:
                left[back] = round(left[back] + speed * factor * back_factor)

    def _charges(self, source: Device, target: Device) -> tuple[Charge, ...]:
        way, machine = self.paths.way(source, target), self.paths.machine
        through_intel = way.path == Path.PHB and source.kind is Kind.GPU and machine.cpu == "intel"
        charges, place = [], source
        for link in way.links:
            factor = _INTEL_PEERS if through_intel and link.kind == Path.PIX else 1.0
            share = self._back(source, link)
            back = next(other.number for other in link.target.links if other.target is place) if share else -1
            charges.append(Charge(link.number, factor, back, share))
            place = link.target
        return tuple(charges)

    def _back(self, source: Device, link: Link) -> float:
        """What comes back on the link for each byte."""
        target = link.target
        if target.kind is Kind.GPU and target.capability < _AMPERE and source.kind is not Kind.GPU:
            return _ACKNOWLEDGED
        shared = target.kind is Kind.CPU and self.paths.machine.cpu == "power" and link.kind == Path.NVL
        return 1.0 if shared else 0.0
