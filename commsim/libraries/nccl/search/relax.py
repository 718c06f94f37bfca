"""Which graph does NCCL settle for? Attempts at falling speeds and over farther paths, until one is good enough.

NCCL 2.30, src/graph/search.cc, ncclTopoCompute.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING

from commsim.libraries.nccl.constants import row
from commsim.libraries.nccl.graphs import Graph, Path, Pattern
from commsim.libraries.nccl.search.attempt import Attempt, Found
from commsim.libraries.nccl.search.bound import Bound
from commsim.libraries.nccl.search.devices import LOCAL, Kind
from commsim.libraries.nccl.search.order import Order
from commsim.libraries.nccl.search.room import Room

if TYPE_CHECKING:
    from commsim.libraries.nccl.constants import Constants
    from commsim.libraries.nccl.search.devices import Device
    from commsim.libraries.nccl.search.paths import Paths

_TIME, _TIME_SAME, _TIME_IN_ALL = 1 << 14, 1 << 8, 1 << 19
_HOPPER = 90
_MB = 1e6
_NEXT_SPEED = 0.49
_CROSSING = (Pattern.RING, Pattern.BALANCED_TREE, Pattern.SPLIT_TREE)
_GIVEN_UP = 100.0
"""MB/s of the one channel that NCCL takes when it finds none."""
_HEADS = {Pattern.NVLS: 32, Pattern.COLLNET_DIRECT: 8}
_EITHER_WAY = 2
_AMPERE, _FAST, _SLOW, _FEW = 80, 50_000.0, 25_000.0, 4


@dataclass(eq=False)
class Search:
    """The search for the graphs of one machine: its ways, whether there are other nodes, and the version's speeds."""

    paths: Paths
    constants: Constants
    inter: bool = field(kw_only=True)
    order: Order = field(init=False)
    room: Room = field(init=False)
    bound: Bound = field(init=False)

    def __post_init__(self) -> None:
        """Prepare what all attempts need: the orders in which GPUs and ports are tried, the links, and what fits."""
        self.order, self.room = Order(self.paths), Room(self.paths)
        self.bound = Bound(self.order, self.inter)

    def graph(self, wanted: Found) -> Graph:
        """Return the graph of a pattern with at least and at most so many channels."""
        return _Relaxation.of(self, self._limited(wanted)).settle()

    def _limited(self, wanted: Found) -> Found:
        """What is wanted, within what the pattern and the machine allow."""
        gpus, pattern = len(self.paths.machine.gpus), wanted.pattern
        if pattern in _HEADS:
            wanted = replace(wanted, most=min(_HEADS[pattern], gpus))
        if pattern == Pattern.NVLS and not self.inter:
            wanted = replace(wanted, least=wanted.most)
        if gpus == 1 and pattern != Pattern.RING:
            return replace(wanted, pattern=Pattern.TREE)
        if pattern == Pattern.RING and wanted.least == 1 and _halves(self.paths):
            return replace(wanted, least=2)
        return wanted

    def reached(self, tried: Found) -> tuple[Path, Path]:
        """Return the farthest paths within the limits of an attempt: between GPUs, and to ports."""
        inside, outside = self._paths
        intra = max((path for path in inside if path <= tried.type_intra), default=Path.LOC)
        return intra, max((path for path in outside if path <= tried.type_inter), default=Path.LOC)

    @cached_property
    def _paths(self) -> tuple[set[Path], set[Path]]:
        """The kinds of path between GPUs, and between GPUs and ports."""
        machine, way = self.paths.machine, self.paths.way
        ends = [*machine.gpus, *machine.devices[Kind.NVSWITCH]]
        inside = {way(a, b).path for a in ends for b in ends}
        return inside, {
            way(*pair).path for gpu in machine.gpus for net in machine.nets for pair in ((gpu, net), (net, gpu))
        }

    @property
    def speeds(self) -> tuple[float, ...]:
        """The speeds that are tried, MB/s."""
        table = self.constants.speeds.inter if self.inter else self.constants.speeds.intra
        return tuple(speed / _MB for speed in row(table, self.paths.machine.capability))

    @property
    def widest(self) -> float:
        """The most that one channel could carry, MB/s."""
        return LOCAL if self._alone else self.paths.widest[Kind.NET if self.inter else Kind.GPU]

    @property
    def total(self) -> float:
        """The most that a GPU could carry, MB/s."""
        return LOCAL if self._alone else max(map(_total, self.paths.machine.gpus))

    @property
    def _alone(self) -> bool:
        return not self.inter and len(self.paths.machine.gpus) == 1

    def types(self, kind: Kind) -> tuple[Path, Path]:
        """Return the nearest and the farthest path of GPUs to other GPUs, or to ports."""
        gpus = self.paths.machine.gpus
        found = [
            self.paths.way(gpu, end).path for gpu in gpus for end in self.paths.machine.devices[kind] if end is not gpu
        ]
        return min(found, default=Path.SYS), max(found, default=Path.LOC)


def _halves(paths: Paths) -> bool:
    """Whether the GPUs are in two groups, joined by NVLink within and by something slower between them."""
    gpus = paths.machine.gpus
    group = {gpu: gpu.index for gpu in gpus}
    for place, gpu in enumerate(gpus):
        for peer in gpus[place + 1 :]:
            if paths.way(gpu, peer).path == Path.NVL:
                group[peer] = group[gpu]
    members = list(group.values())
    return sum(members.count(one) > 1 for one in set(members)) == _EITHER_WAY


def _total(gpu: Device) -> float:
    nvlink = sum(link.bandwidth for link in gpu.links if link.kind == Path.NVL)
    return max([nvlink, *(link.bandwidth for link in gpu.links if link.kind == Path.PIX)])


@dataclass(eq=False)
class _Relaxation:
    """One search on its way: what is tried now, what is best, and the time that is left for all."""

    search: Search
    best: Found
    cross: int
    nearest: tuple[Path, Path]
    farthest: tuple[Path, Path]
    left: int = _TIME_IN_ALL
    at: int = 0
    hops: int = 0
    faster: bool = False
    times: dict[Found, int] = field(default_factory=dict)
    owed: list[tuple[Found, int]] = field(default_factory=list)

    @classmethod
    def of(cls, search: Search, wanted: Found) -> _Relaxation:
        """Return the search for what is wanted before its first attempt."""
        machine, knobs = search.paths.machine, search.paths.knobs
        crosses = len(machine.nets) > 1 and wanted.pattern in _CROSSING
        cross = knobs.cross_nic if crosses else 0
        intra, inter = (Path.LOC, Path.SYS), (Path.PIX, Path.SYS)
        if len(machine.gpus) > 1:
            intra = search.types(Kind.GPU)
        if search.inter:
            inter = search.types(Kind.NET)
            intra = (intra[0], inter[1])
        far_inter = Path.SYS if machine.capability < _HOPPER else inter[1]
        near = replace(wanted, type_intra=intra[0], type_inter=inter[0], cross_nic=int(cross == 1))
        near = replace(near, same=wanted.pattern != Pattern.NVLS)
        return cls(search, near, cross, (intra[0], inter[0]), (intra[1], far_inter))

    def settle(self) -> Graph:
        """Return the graph: the first pass looks for one at falling speeds, the second for more speed in it."""
        if self.search.inter and not self.search.paths.machine.nets:
            return _graph(replace(self.best, speed_intra=_GIVEN_UP, type_intra=Path.SYS))
        self._first_pass()
        self.best = _duplicated(self.best, self.search.paths.machine.capability)
        self._second_pass()
        if not self.best.channels and not self.best.collnet and self.best.pattern != Pattern.NVLS:
            self.best = self._given_up()
        return _graph(self.best)

    def _given_up(self) -> Found:
        """One slow channel, when nothing fits."""
        far = Path.SYS if self.search.paths.machine.nets else Path.DIS
        slow = _GIVEN_UP if self.search.paths.machine.nets else 0.0
        return replace(
            self.best, channels=1, speed_intra=_GIVEN_UP, speed_inter=slow, type_intra=Path.SYS, type_inter=far
        )

    def _first_pass(self) -> None:
        speeds, last = self.search.speeds, len(self.search.speeds) - 1
        total = self.search.total
        gpus = len(self.search.paths.machine.gpus)
        if gpus > 1 and self.best.pattern != Pattern.RING:
            total *= gpus / (gpus - 1)
        while self.at < last and (speeds[self.at] > self.search.widest or speeds[self.at] * self.best.least > total):
            self.at += 1
        tried: Found | None = self._at_speed(self.best)
        while tried is not None:
            if not self._hopeless(tried) and self._is_over(tried):
                return
            time = self._attempt(tried)
            if time == -1 or self._saturated:
                return
            tried = self._relaxed(tried, time)

    def _is_over(self, tried: Found) -> bool:
        """Whether the time for all attempts is over before this one; what was cut short is measured if that decides."""
        if not self.best.channels or (not tried.same and tried.pattern != Pattern.NVLS):
            return False
        while self.owed and self.left >= 0 > self.left - sum(credit for _, credit in self.owed):
            cut, credit = self.owed.pop()
            self.left -= credit - self._measured(cut)
        return self.left < 0

    def _measured(self, cut: Found) -> int:
        """The time that an attempt leaves which finds nothing better."""
        if cut not in self.times:
            attempt = Attempt(cut, self.best, self.search.order, self.search.room, self.search.inter, inf)
            self.times[cut] = attempt.run(_TIME_SAME if cut.same else _TIME)[1]
        return self.times[cut]

    @property
    def _saturated(self) -> bool:
        return self.best.channels * self.best.speed_inter >= self.search.total

    def _attempt(self, tried: Found) -> int:
        """Try, unless nothing better can come of it, and return the time that was left."""
        time, alike = _TIME_SAME if tried.same else _TIME, self._limited(tried)
        self.left -= time
        if self._hopeless(tried):
            return self._cut(alike, time)
        if alike in self.times and tried.pattern != Pattern.COLLNET_DIRECT:
            return self.times[alike]
        search = self.search
        attempt = Attempt(tried, self.best, search.order, search.room, search.inter, self._enough(tried), self.hops)
        self.best, left = attempt.run(time)
        if attempt.over and left > 0:
            return self._cut(alike, left)
        # NCCL counts fractions of hops down to whole ones, and does not begin anew: what is lost stays so.
        self.hops = self.hops if attempt.over else attempt.hops
        self.times[alike] = left
        return left

    def _cut(self, alike: Found, left: int) -> int:
        """Note that an attempt was cut short: it would have left less of the time than is credited for it."""
        if not self._second_follows(alike):
            self.owed.append((alike, left))
        return left

    def _limited(self, tried: Found) -> Found:
        """The attempt by what of its limits matters: the farthest paths that there are, and ports with other nodes."""
        intra, inter = self.search.reached(tried)
        cross = tried.cross_nic if self.search.inter else 0
        return replace(tried, type_intra=intra, type_inter=inter, cross_nic=cross, channels=0, hops=0, latency=0.0)

    def _hopeless(self, tried: Found) -> bool:
        """Whether there is no room for anything better than the best, nor for as good where all orders are alike."""
        if tried.pattern in _HEADS:
            return False
        possible = self.search.bound.most(tried)
        best, most = self.best.channels * self.best.speed_intra, possible * tried.speed_intra
        return possible < tried.least or most < best or (most == best and self.search.bound.alike)

    def _enough(self, tried: Found) -> float:
        """The channels with which an attempt may end.

        Not where orders differ, as others may have fewer hops; nor in the second pass, which counts the time it takes.
        """
        if self.faster or not self.search.bound.alike or tried.pattern in _HEADS:
            return inf
        return self.search.bound.most(tried)

    def _relaxed(self, tried: Found, time: int) -> Found | None:
        """What is tried next: other orders, a simpler tree, farther paths, other ports, less speed; None at the end."""
        best, machine = self.best, self.search.paths.machine
        if self._second_follows(tried):
            return replace(tried, same=False)
        tried = replace(tried, same=best.pattern != Pattern.NVLS)
        self.left = _TIME_IN_ALL if time == -1 else self.left + time
        if self.left < 0 and best.channels:
            return None
        if machine.capability >= _HOPPER and tried.pattern == Pattern.BALANCED_TREE:
            return replace(tried, pattern=Pattern.TREE)
        tried = replace(tried, pattern=best.pattern)
        return self._farther(tried) or self._crossing(tried) or self._slower(tried)

    def _second_follows(self, tried: Found) -> bool:
        """Whether an attempt with all channels alike is followed by one without, for which its time is not credited."""
        return tried.same and not (self.search.paths.machine.cpu == "amd" and tried.type_intra == Path.SYS)

    def _farther(self, tried: Found) -> Found | None:
        """Over farther paths between GPUs, then to ports, while nothing nearer was found."""
        best, inter = self.best, self.search.inter
        limit = tried.type_inter if inter else self.farthest[0]
        if tried.type_intra < limit and (not best.channels or tried.type_intra < best.type_intra):
            return replace(tried, type_intra=Path(tried.type_intra + 1))
        near = not best.channels or tried.type_inter < max(best.type_inter, Path.PXN)
        if inter and tried.type_inter < self.farthest[1] and near:
            return replace(tried, type_intra=self.nearest[0], type_inter=Path(tried.type_inter + 1))
        return None

    def _crossing(self, tried: Found) -> Found | None:
        """From one port to another."""
        crosses = self.best.pattern in (Pattern.RING, Pattern.BALANCED_TREE)
        if self.cross == _EITHER_WAY and tried.cross_nic == 0 and crosses:
            return replace(self._nearest(tried), cross_nic=_EITHER_WAY)
        return None

    def _slower(self, tried: Found) -> Found | None:
        """At the next speed, unless what was found is more than twice as fast."""
        speeds, best = self.search.speeds, self.best
        if self.at == len(speeds) - 1 or (best.channels and speeds[self.at + 1] / best.speed_inter <= _NEXT_SPEED):
            return None
        self.at += 1
        return self._at_speed(replace(self._nearest(tried), cross_nic=int(self.cross == 1)))

    def _nearest(self, tried: Found) -> Found:
        return replace(tried, type_intra=self.nearest[0], type_inter=self.nearest[1])

    def _at_speed(self, tried: Found) -> Found:
        speed = self.search.speeds[self.at]
        return replace(tried, speed_intra=speed, speed_inter=speed)

    def _second_pass(self) -> None:
        """As many channels, faster: both ways for a ring, to the ports for NVLS, between GPUs for the rest."""
        speeds, self.faster = self.search.speeds, True
        self.at = next((at for at, speed in enumerate(speeds) if speed <= self.best.speed_inter), len(speeds) - 1)
        tried, time = replace(self._at_speed(self.best), least=self.best.channels), -1
        while time != 0 and self.at > 0:
            faster = self._faster(tried, speeds[self.at - 1])
            if faster is None:
                return
            self.at -= 1
            tried = faster
            time = self._attempt(tried)

    def _faster(self, tried: Found, speed: float) -> Found | None:
        best = self.best
        if best.pattern == Pattern.RING:
            return replace(tried, speed_intra=speed, speed_inter=speed)
        if best.pattern == Pattern.NVLS and tried.speed_inter == best.speed_inter < tried.speed_intra * 2:
            return replace(tried, least=best.channels, most=best.channels, speed_inter=speed)
        if tried.speed_intra == best.speed_intra < tried.speed_inter * 2:
            return replace(tried, speed_intra=speed)
        return None


def _duplicated(found: Found, capability: int) -> Found:
    """Twice the channels at half the speed, where one channel would be too fast for one multiprocessor."""
    few = capability <= _AMPERE or found.speed_intra >= _FAST or found.channels <= _FEW
    if not found.channels or found.pattern == Pattern.NVLS or found.speed_intra < _SLOW or not few:
        return found
    channels = min(2 * found.channels, found.most)
    parts = -(-channels // found.channels)
    return replace(
        found, channels=channels, speed_intra=found.speed_intra / parts, speed_inter=found.speed_inter / parts
    )


def _graph(found: Found) -> Graph:
    return Graph(
        pattern=found.pattern,
        channels=found.channels,
        speed_intra=found.speed_intra * _MB,
        speed_inter=found.speed_inter * _MB,
        type_intra=found.type_intra,
        type_inter=found.type_inter,
        same_channels=found.same,
        cross_nic=found.cross_nic,
        latency_inter=found.latency,
    )
