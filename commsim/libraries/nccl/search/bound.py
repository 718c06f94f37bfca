"""How many channels can there be at most? What no search can beat need not be searched for."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from commsim.libraries.nccl.graphs import Path, Pattern
from commsim.libraries.nccl.search.devices import Kind

if TYPE_CHECKING:
    from commsim.libraries.nccl.search.attempt import Found
    from commsim.libraries.nccl.search.paths import Paths

_GB = 1000.0


def most_channels(paths: Paths, asked: Found, *, inter: bool) -> float:
    """Return the most channels of the asked speeds that ports and, behind NVSwitches, GPUs have room for."""
    most = float(asked.most)
    if inter:
        most = min(most, _at_ports(paths, asked))
    if behind_switches(paths):
        most = min(most, _at_gpus(paths, asked, inter=inter))
    return most


def behind_switches(paths: Paths) -> bool:
    """Whether every GPU reaches every other through NVSwitches, so that all orders of GPUs are alike."""
    gpus = paths.machine.gpus
    return paths.machine.switched and all(paths.way(a, b).path == Path.NVL for a in gpus for b in gpus if a is not b)


def _at_ports(paths: Paths, asked: Found) -> float:
    """Each channel goes from a port (it uses whole GB/s of the wire, and its speed of the slot) into a GPU's slot."""
    need = int(asked.speed_inter / _GB) * _GB
    fitting: dict[tuple[int, int], float] = {}
    for net in paths.machine.nets:
        slot = sum(link.bandwidth for link in net.links[0].target.links if link.kind == Path.PIX)
        wire = net.port.speed // need if need else inf
        fitting[net.port.wire] = fitting.get(net.port.wire, 0.0) + min(wire, slot // asked.speed_inter)
    slots = [sum(link.bandwidth for link in gpu.links if link.kind != Path.NVL) for gpu in paths.machine.gpus]
    return min(sum(fitting.values()), sum(slot // asked.speed_inter for slot in slots))


def _at_gpus(paths: Paths, asked: Found, *, inter: bool) -> float:
    """Each channel leaves every GPU but the last, and the last too where it closes."""
    if asked.pattern in (Pattern.NVLS, Pattern.COLLNET_DIRECT):
        return inf
    gpus = paths.machine.gpus
    leaving = [sum(link.bandwidth for link in gpu.links if link.target.kind is Kind.NVSWITCH) for gpu in gpus]
    fitting = [out // asked.speed_intra for out in leaving]
    if asked.pattern == Pattern.RING and not inter:
        return min(fitting)
    return sum(fitting) // (len(gpus) - 1) if len(gpus) > 1 else inf
