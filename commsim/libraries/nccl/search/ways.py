"""How does each device reach each other: over which links, what kind of path is that, and what does it carry?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from commsim.libraries.nccl.graphs import Path
from commsim.libraries.nccl.search.devices import LOCAL, Device, Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commsim.libraries.nccl.search.devices import Link

_FORWARDS = 1
"""Hops after which a GPU may still pass on what it gets over NVLink."""


@dataclass(frozen=True, eq=False)
class Way:
    """A way from one device to another: its links in order, the kind of path, and its narrowest link (MB/s)."""

    links: tuple[Link, ...]
    path: Path
    bandwidth: float

    def then(self, other: Way, path: Path) -> Way:
        """Return the way that goes on along another, as a path of that kind."""
        return Way(self.links + other.links, path, min(self.bandwidth, other.bandwidth))


NOWHERE = Way((), Path.DIS, 0.0)


def ways_to(base: Device, *, forwards: bool = True) -> dict[Device, Way]:
    """Return the way of every device that reaches `base`; `forwards` says that GPUs pass on over NVLink.

    Breadth first; a way replaces another when its path is nearer, or as near and wider, or as wide and shorter (NCCL
    2.30, src/graph/paths.cc, ncclTopoSetPaths).
    """
    found = {base: Way((), Path.LOC, LOCAL)}
    front = [base]
    while front:
        reached: dict[Device, None] = {}
        for device in front:
            for link in _onward(device, found[device], base, forwards=forwards):
                back = _reverse(device, link)
                if back is None:
                    continue
                new = Way((back, *found[device].links), _path(device, link, found[device]), 0.0)
                new = Way(new.links, new.path, min(found[device].bandwidth, link.bandwidth))
                if _better(new, found.get(link.target)):
                    found[link.target] = new
                    reached[link.target] = None
        front = list(reached)
    return found


def _onward(device: Device, way: Way, base: Device, *, forwards: bool) -> Iterator[Link]:
    """The links over which a way may go on: through a GPU only by NVLink to the next one, and once."""
    for link in device.links:
        passes = link.kind == Path.NVL and link.target.kind is Kind.GPU and len(way.links) <= _FORWARDS
        if device is base or device.kind is not Kind.GPU or (forwards and passes):
            yield link


def _reverse(device: Device, link: Link) -> Link | None:
    return next((back for back in link.target.links if back.target is device and back.kind == link.kind), None)


def _path(device: Device, link: Link, way: Way) -> Path:
    """The kind of path when a link is added in front: two PCIe switches, a CPU or a GPU on the way make it farther."""
    kind = Path.LOC if link.kind == Path.NET else link.kind
    if device.kind is Kind.PCI and link.target.kind is Kind.PCI:
        kind = Path.PXB
    if link.kind == Path.PIX and Kind.CPU in (device.kind, link.target.kind):
        kind = Path.PHB
    if device.kind is Kind.GPU and way.path == kind == Path.NVL and len(way.links) == _FORWARDS:
        kind = Path.NVB
    return max(way.path, kind)


def _better(new: Way, old: Way | None) -> bool:
    if old is None or new.path != old.path:
        return old is None or new.path < old.path
    if new.bandwidth != old.bandwidth:
        return new.bandwidth > old.bandwidth
    return len(new.links) < len(old.links)
