"""In which order does the search try GPUs and ports? It is short of time, so the first ones count."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from commsim.libraries.nccl.graphs import Path, Pattern
from commsim.libraries.nccl.search.devices import Device, Kind
from commsim.libraries.nccl.search.paths import MOST_CHANNELS

if TYPE_CHECKING:
    from commsim.libraries.nccl.search.paths import Paths

_GB = 1000.0
_TREES = (Pattern.BALANCED_TREE, Pattern.SPLIT_TREE)


class _Score(NamedTuple):
    """What next GPUs are sorted by: to the port of the channel first, then between GPUs, then as they stand."""

    port_bandwidth: int
    slot: int
    port_hops: int
    bandwidth: int
    hops: int
    offset: int


@dataclass(eq=False)
class Order:
    """The orders for one machine, remembered."""

    paths: Paths
    switched: bool = field(init=False)
    _next: dict[tuple[Device, Pattern | Device | None], list[tuple[_Score, Device]]] = field(default_factory=dict)
    _ports: dict[tuple[Path, Device | None], list[Device]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Note whether NVSwitches join the GPUs."""
        self.switched = self.paths.machine.switched

    def next_gpus(
        self, gpu: Device, pattern: Pattern, used: bytearray, port: Device | None, *, late: bool
    ) -> list[Device]:
        """Return the GPUs to try after one: on NVSwitches its neighbours alone.

        `port` is that of the channel when nearness to it counts; `late` says that the channel ends there only later,
        so that of equal GPUs the farthest is tried first.
        """
        key = (gpu, pattern if self.switched else port)
        if key not in self._next:
            self._next[key] = self._neighbours(gpu, pattern) if self.switched else self._scored(gpu, port)
        free = [(score, peer) for score, peer in self._next[key] if not used[peer.index]]
        if late and not self.switched and len({score[3:5] for score, _ in free}) == 1:
            free.reverse()
        return [peer for _, peer in free]

    def _scored(self, gpu: Device, port: Device | None) -> list[tuple[_Score, Device]]:
        """Every GPU within reach of one, the best first."""
        peers = [peer for peer in self.paths.machine.gpus if peer is not gpu and self.paths.way(gpu, peer).links]
        return sorted(((self._score(gpu, peer, port), peer) for peer in peers), key=lambda scored: scored[0])

    def _neighbours(self, gpu: Device, pattern: Pattern) -> list[tuple[_Score, Device]]:
        """The neighbours of a GPU on NVSwitches, which do better when each speaks to few; the last of NCCL's first."""
        gpus = self.paths.machine.gpus
        after, before = gpus[(gpu.index + 1) % len(gpus)], gpus[gpu.index - 1]
        both = (before, after) if pattern == Pattern.RING else (after, before)
        tried = dict.fromkeys(both if pattern in (Pattern.RING, *_TREES) else (after,))
        return [(self._score(gpu, peer, None), peer) for peer in tried if self.paths.way(gpu, peer).links]

    def _score(self, gpu: Device, peer: Device, port: Device | None) -> _Score:
        offset = (peer.index - gpu.index) % len(self.paths.machine.gpus)
        way = self.paths.way(gpu, peer)
        between = (-int(way.bandwidth / _GB), len(way.links), offset)
        if port is None:
            return _Score(0, 0, 0, *between)
        near = self.paths.way(port, peer)
        return _Score(-int(near.bandwidth / _GB), -_slot(peer), len(near.links), *between)

    def ports(self, limit: Path, gpu: Device | None) -> list[Device]:
        """Return the ports to try: those that GPUs (or one GPU) prefer, then the others over paths up to `limit`."""
        if (limit, gpu) not in self._ports:
            preferred = self._preferred(gpu)
            asked = self.paths.machine.gpus if gpu is None else [gpu]
            ports = self.paths.machine.nets[:MOST_CHANNELS]
            others = [
                port
                for path in range(limit + 1)
                for one in asked
                for port in ports
                if self.paths.way(one, port).path == path
            ]
            self._ports[limit, gpu] = list(dict.fromkeys([*preferred, *others]))
        return self._ports[limit, gpu]

    def entered(self, port: Device, *, forced: bool = False) -> list[Device]:
        """Return the GPUs to enter from a port: the one that speaks through it, then the nearest.

        All may be when an order is `forced` on a channel, which begins where the file or the channel before does.
        """
        if forced:
            return self.paths.machine.gpus
        local, near = self.paths.gpu_of(port), self.paths.nearest(port, Kind.GPU)
        if near and self.paths.way(port, near[0]).path == Path.DIS:
            near = []
        return list(dict.fromkeys([*([local] if local else []), *near]))

    def _preferred(self, gpu: Device | None) -> list[Device]:
        """The ports of the GPUs on each channel: in a rack first those of all GPUs on the first channel."""
        asked = self.paths.machine.gpus if gpu is None else [gpu]
        own = [self._own(one) for one in asked]
        if self.paths.machine.hosts > 1 and self.paths.knobs.mnnvl_scatter_nets_enable:
            turns = max(map(len, own), default=0)
            return [ports[turn] for turn in range(turns) for ports in own if turn < len(ports)]
        return [port for ports in own for port in ports]

    def _own(self, gpu: Device) -> list[Device]:
        """The ports of a GPU channel by channel, until the first comes again."""
        ports: list[Device] = []
        for channel in range(MOST_CHANNELS):
            port = self.paths.net_of(gpu, channel)
            if port is None or (ports and port is ports[0]):
                break
            ports.append(port)
        return ports


def _slot(gpu: Device) -> int:
    """What the slot of a GPU carries, GB/s; -1 when it has none."""
    link = next((link for link in gpu.links if link.kind == Path.PIX), None)
    return -1 if link is None or link.target.kind not in (Kind.PCI, Kind.CPU) else int(link.bandwidth / _GB)
