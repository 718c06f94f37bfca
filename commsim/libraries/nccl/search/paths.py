"""Which ways do NCCL's channels take between GPUs, NICs and switches, once detours are made?"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from commsim.libraries.nccl.graphs import Path
from commsim.libraries.nccl.search.devices import Device, Kind, Machine
from commsim.libraries.nccl.search.ways import NOWHERE, Way, ways_to

if TYPE_CHECKING:
    from commsim.libraries.nccl.knobs import Knobs

_AMD_PAIR, _AMPERE = 2, 80
MOST_CHANNELS = 64
"""Channels on which a GPU may have a port of its own."""


@dataclass(eq=False)
class Paths:
    """The ways between GPUs, ports, CPUs and NVSwitches; `way(a, b)` is NOWHERE when there is none.

    `widest` is what the widest way from a GPU carries, to a port and to another GPU (MB/s), before detours.
    """

    machine: Machine
    knobs: Knobs
    found: dict[tuple[Device, Device], Way] = field(default_factory=dict)
    widest: dict[Kind, float] = field(default_factory=dict)
    _locals: dict[tuple[Device, Kind], list[Device]] = field(default_factory=dict)
    _first: dict[Device, Device | None] = field(default_factory=dict)

    @classmethod
    def of(cls, machine: Machine, knobs: Knobs) -> Paths:
        """Return the ways of a machine with the detours that settings and drivers ask for, in NCCL's order."""
        paths = cls(machine, knobs)
        for kind in (Kind.CPU, Kind.GPU, Kind.NET, Kind.NVSWITCH):
            for base in machine.devices[kind]:
                ways = ways_to(base, forwards=not knobs.nvb_disable)
                paths.found |= {(device, base): way for device, way in ways.items()}
        for kind in (Kind.GPU, Kind.NET):
            around = [paths.way(gpu, end) for gpu in machine.gpus for end in machine.devices[kind] if end is not gpu]
            paths.widest[kind] = max((way.bandwidth for way in around), default=0.0)
        paths._without_peers()
        paths._over_c2c()
        paths._to_ports()
        return paths

    def way(self, source: Device, target: Device) -> Way:
        """Return the way from one device to another."""
        return self.found.get((source, target), NOWHERE)

    def hops(self, source: Device, target: Device) -> int:
        """Return the hops of a way as NCCL counts them: from and to the GPU itself, which hangs on its own device."""
        return len(self.way(source, target).links) + (source.kind is Kind.GPU) + (target.kind is Kind.GPU)

    def nearest(self, device: Device, kind: Kind) -> list[Device]:
        """Return the devices of a kind that are reached with most bandwidth, of these the nearest; all when none is."""
        if (device, kind) not in self._locals:
            others = self.machine.devices[kind]
            ranked = [(-self.way(device, other).bandwidth, self.way(device, other).path) for other in others]
            best = min(ranked, default=None)
            self._locals[device, kind] = [other for other, rank in zip(others, ranked) if rank == best]
        return self._locals[device, kind]

    def cpu_of(self, gpu: Device) -> Device:
        """Return the CPU that is nearest to a GPU."""
        return min(self.nearest(gpu, Kind.CPU), key=lambda cpu: len(self.way(gpu, cpu).links))

    def net_of(self, gpu: Device, channel: int) -> Device | None:
        """Return the port that a GPU speaks through on a channel: GPUs that share ports start at different ones."""
        ports = self.nearest(gpu, Kind.NET)
        if not ports:
            return None
        sharing = len(self.nearest(ports[0], Kind.GPU))
        start = gpu.number % sharing
        if not len(ports) & (len(ports) - 1):
            start = _mirrored(start, len(ports))
        return ports[(start + channel % -(-len(ports) // sharing)) % len(ports)]

    def gpu_of(self, port: Device) -> Device | None:
        """Return the GPU that speaks through a port on the earliest channel; None when none does."""
        if port not in self._first:
            near = self.nearest(port, Kind.GPU)
            speaking = (gpu for channel in range(MOST_CHANNELS) for gpu in near if self.net_of(gpu, channel) is port)
            self._first[port] = next(speaking, None)
        return self._first[port]

    def gdr(self, gpu: Device, port: Device, *, sending: bool = False) -> bool:
        """Whether a port reaches the GPU's memory itself (GPUDirect RDMA), to receive or for `sending`."""
        if not (port.gdr and gpu.gdr) or (sending and gpu.capability < _AMPERE and not self._on_nvlink(gpu)):
            return False
        near = Path.P2C if self.knobs.net_gdr_c2c else Path.PXB
        level = near if self.knobs.net_gdr_level is None else self.knobs.net_gdr_level
        way = self.way(gpu, port)
        if way.path == Path.PXN:
            way = self.way(next(link.target for link in way.links if link.target.kind is Kind.GPU), port)
        return way.path <= level

    def _on_nvlink(self, gpu: Device) -> bool:
        """Whether a GPU has a peer on NVLink, or no peer: what it sends then leaves PCIe to the network."""
        peers = [peer for peer in self.machine.gpus if peer is not gpu]
        return not peers or any(self.way(gpu, peer).path == Path.NVL for peer in peers)

    def _detour(self, source: Device, over: Device, target: Device) -> None:
        """Lead the way from one device to another over a third."""
        first, second = self.way(source, over), self.way(over, target)
        self._lead(source, target, first.then(second, Path.PXN if over.kind is Kind.GPU else merged(first, second)))

    def _lead(self, source: Device, target: Device, way: Way) -> None:
        """Change a way; what was known of nearest devices may no longer hold."""
        self.found[source, target] = way
        self._locals.pop((source, target.kind), None)
        self._first.clear()

    def _without_peers(self) -> None:
        """Lead GPUs that are too far from each other for peer-to-peer over the CPU."""
        level = Path.PXB
        if self.machine.cpu == "amd" and len(self.machine.gpus) <= _AMD_PAIR:
            level = Path.SYS
        level = level if self.knobs.p2p_level is None else self.knobs.p2p_level
        level = Path.LOC if self.knobs.p2p_disable == 1 else level
        for gpu in self.machine.gpus:
            for peer in self.machine.gpus:
                if self.way(peer, gpu).path > level:
                    self._detour(peer, self.cpu_of(gpu), gpu)

    def _over_c2c(self) -> None:
        """Call the way of a GPU to a port of its own CPU, over C2C and PCIe, near: P2C."""
        for gpu in self.machine.gpus:
            cpu = self.cpu_of(gpu)
            for port in self.nearest(gpu, Kind.NET):
                if merged(self.way(gpu, cpu), self.way(port, cpu)) == Path.P2C:
                    for source, target in ((gpu, port), (port, gpu)):
                        way = self.way(source, target)
                        self._lead(source, target, replace(way, path=min(Path.P2C, way.path)))

    def _to_ports(self) -> None:
        """Lead GPUs to ports over a peer that is nearer to them (PXN), or over the CPU without GPUDirect RDMA."""
        for port in self.machine.nets:
            for gpu in self.machine.gpus:
                if self.knobs.pxn_disable != 1 and self._relays(gpu, port):
                    self._detour(gpu, self._first[port] or gpu, port)
                if self.way(gpu, port).path < Path.PHB and not self.gdr(gpu, port):
                    cpu = self.cpu_of(gpu)
                    self._detour(port, cpu, gpu)
                    self._detour(gpu, cpu, port)

    def _relays(self, gpu: Device, port: Device) -> bool:
        """Whether a port's own GPU, on NVLink and in the same host, reaches it better than this one does."""
        relay = self.gpu_of(port)
        if relay is None or relay is gpu or relay.host != gpu.host:
            return False
        there, here = self.way(relay, port), self.way(gpu, port)
        near = there.path <= (Path.P2C if self.knobs.pxn_c2c else Path.PXB) and self.way(relay, gpu).path <= Path.NVL
        gains = there.bandwidth > here.bandwidth or here.path > Path.PXN
        return near and gains and self.gdr(relay, port, sending=True)


def merged(first: Way, second: Way) -> Path:
    """Return the kind of a path made of two; over C2C and then PCIe it is P2C."""
    return Path.P2C if {first.path, second.path} == {Path.PHB, Path.C2C} else max(first.path, second.path)


def _mirrored(value: int, power: int) -> int:
    """The bits of a number in reverse order, for numbers below a power of two."""
    bits = power.bit_length() - 1
    return int(f"{value:0{bits}b}"[::-1][:bits], 2) if bits else 0
