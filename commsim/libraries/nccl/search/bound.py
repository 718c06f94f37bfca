"""How many channels can there be at most? What no search can beat need not be searched for."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING

from commsim.libraries.nccl.graphs import Path, Pattern
from commsim.libraries.nccl.search.devices import Kind

if TYPE_CHECKING:
    from commsim.libraries.nccl.search.attempt import Found
    from commsim.libraries.nccl.search.devices import Link
    from commsim.libraries.nccl.search.order import Order

_GB = 1000.0


@dataclass(eq=False)
class Bound:
    """The most channels that a machine has room for; `inter` says that they go through its ports."""

    order: Order
    inter: bool
    _entering: dict[tuple[Path, float, bool], float] = field(default_factory=dict)

    def most(self, asked: Found) -> float:
        """Return the most channels of the asked speeds that ports and, behind NVSwitches, GPUs have room for."""
        most = float(asked.most)
        if self.inter:
            most = min(most, self._at_ports(asked))
        return min(most, self._at_gpus(asked)) if self.alike else most

    @cached_property
    def alike(self) -> bool:
        """Whether every GPU reaches every other through NVSwitches, so that all orders of GPUs are alike."""
        paths, gpus = self.order.paths, self.order.paths.machine.gpus
        near = all(paths.way(a, b).path == Path.NVL for a in gpus for b in gpus if a is not b)
        return paths.machine.switched and near

    def _at_ports(self, asked: Found) -> float:
        key = (asked.type_inter, asked.speed_inter, asked.same or not self.order.switched)
        if key not in self._entering:
            self._entering[key] = self._entered(*key)
        return self._entering[key]

    def _entered(self, limit: Path, speed: float, forced: bool) -> float:  # noqa: FBT001 - a part of a key
        """Each channel comes in over whole GB/s of a wire, and has its speed on one link of each layer of links."""
        way, need, wires = self.order.paths.way, int(speed / _GB) * _GB, 0.0
        ways: list[tuple[Link, ...]] = []
        for port in self.order.ports(limit, None):
            found = [way(port, gpu) for gpu in self.order.entered(port, forced=forced)]
            wide = [one.links for one in found if one.links and one.path <= limit and one.bandwidth >= speed]
            wires += (port.port.speed // need if need else inf) if wide else 0.0
            ways += wide
        depth = max(map(len, ways), default=0)
        layers = ({links[min(place, len(links) - 1)] for links in ways} for place in range(depth))
        return min(wires, *(sum(link.bandwidth // speed for link in layer) for layer in layers), inf)

    def _at_gpus(self, asked: Found) -> float:
        """Each channel leaves every GPU but the last, and the last too where it closes."""
        if asked.pattern in (Pattern.NVLS, Pattern.COLLNET_DIRECT):
            return inf
        gpus = self.order.paths.machine.gpus
        leaving = [sum(link.bandwidth for link in gpu.links if link.target.kind is Kind.NVSWITCH) for gpu in gpus]
        fitting = [out // asked.speed_intra for out in leaving]
        if asked.pattern == Pattern.RING and not self.inter:
            return min(fitting)
        return sum(fitting) // (len(gpus) - 1) if len(gpus) > 1 else inf
