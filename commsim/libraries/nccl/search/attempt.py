"""Which channels of a given speed fit on a machine? One attempt of NCCL's search, with its patience.

NCCL 2.30, src/graph/search.cc: depth first, GPU after GPU, channel after channel, until the time (counted in steps) is
over. Steps are generators that yield the step below them, so that a rack of GPUs needs no deep stack of calls.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from commsim.libraries.nccl.graphs import Path, Pattern
from commsim.libraries.nccl.search.devices import Device, Kind

if TYPE_CHECKING:
    from collections.abc import Generator

    from commsim.libraries.nccl.search.order import Order
    from commsim.libraries.nccl.search.paths import Paths
    from commsim.libraries.nccl.search.room import Room

    Step = Generator["Step", None, None]

_HEADED = (Pattern.NVLS, Pattern.COLLNET_DIRECT)
_TREES = (Pattern.BALANCED_TREE, Pattern.SPLIT_TREE, Pattern.TREE)
_TIME_AS_THEY_STAND = 1 << 10
_GB = 1000.0
_EITHER_WAY = 2


@dataclass(frozen=True)
class Found:
    """What is asked of an attempt, and what came of it: `channels`, `hops` and the port's `latency`; speeds in MB/s."""

    pattern: Pattern
    least: int
    most: int
    speed_intra: float = 0.0
    speed_inter: float = 0.0
    type_intra: Path = Path.LOC
    type_inter: Path = Path.PIX
    same: bool = False
    cross_nic: int = 0
    collnet: bool = False
    channels: int = 0
    hops: int = 0
    latency: float = 0.0


class _Plan(NamedTuple):
    """At which step a channel goes (back) to a port or to its first GPU, and which order is forced on it."""

    to_port: int
    to_first: int
    forced: str = ""


_AS_THEY_STAND, _AGAIN = "as they stand", "again"
_DONE = _Plan(-1, -1)


@dataclass(eq=False)
class _Clock:
    """The steps that are left; -1 when nothing better can come."""

    left: int


@dataclass(eq=False)
class Attempt:
    """An attempt under way: the channels laid so far, and the best found so far, by this or an earlier attempt.

    `enough` is how many channels there can be at most: with so many the attempt ends.
    """

    asked: Found
    best: Found
    order: Order
    room: Room
    inter: bool
    enough: float
    hops: int = 0
    over: bool = False
    channels: int = 0
    latency: float = 0.0
    gpus: list[list[Device]] = field(default_factory=list)
    used: list[bytearray] = field(default_factory=list)
    ends: list[list[Device]] = field(default_factory=list)

    def run(self, time: int) -> tuple[Found, int]:
        """Return the best after so many steps, and the time that was left (-1: it cannot be better)."""
        clock = self.clock = _Clock(time)
        self.room.clear()
        self.wires = {net: net.port.speed for net in self.paths.machine.nets}
        shared: dict[tuple[int, int], list[Device]] = {}
        self.sharing = {net: shared.setdefault(net.port.wire, []) for net in self.wires}
        for net, sharing in self.sharing.items():
            sharing.append(net)
        stack: list[Step] = [self._channel(clock)]
        while stack and not self.over:
            below = next(stack[-1], None)
            if below is None:
                stack.pop()
            else:
                stack.append(below)
        return self.best, clock.left

    @property
    def paths(self) -> Paths:
        """The ways on the machine."""
        return self.order.paths

    def _plan(self) -> _Plan:
        """Where a channel of this pattern meets the network, or closes."""
        last, pattern = len(self.paths.machine.gpus) - 1, self.asked.pattern
        if not self.inter:
            return _Plan(-1, last if pattern == Pattern.RING else -1)
        return _Plan(last if pattern == Pattern.RING else int(pattern == Pattern.SPLIT_TREE), -1)

    def _channel(self, clock: _Clock) -> Step:
        """Lay one more channel."""
        gpus, plan = self.paths.machine.gpus, self._plan()
        if len(self.gpus) == self.channels:
            self.gpus.append([gpus[0]] * len(gpus))
            self.used.append(bytearray(len(gpus)))
            self.ends.append([gpus[0], gpus[0]])
        if self.inter:
            yield self._from_ports(plan, clock)
        elif self.asked.pattern == Pattern.NVLS:
            yield self._enter(None, gpus[self.channels], 0, plan, clock)
        else:
            yield self._from_gpus(plan, clock)

    def _from_gpus(self, plan: _Plan, clock: _Clock) -> Step:
        """Begin a channel at a GPU: in the order of the file or of the channel before, then at any."""
        gpus = self.paths.machine.gpus
        if self.channels == 0:
            yield self._enter(None, gpus[0], 0, plan._replace(forced=_AS_THEY_STAND), clock)
        else:
            yield self._enter(None, self.gpus[self.channels - 1][0], 0, plan._replace(forced=_AGAIN), clock)
        if not self.asked.same or self.channels == 0:
            for gpu in gpus:
                yield self._enter(None, gpu, 0, plan, clock)

    def _from_ports(self, plan: _Plan, clock: _Clock) -> Step:
        """Begin a channel at each port that has room, starting with another port on each channel."""
        asked, ports, headed = self.asked, self.order.ports(self.asked.type_inter, None), False
        need = int(asked.speed_inter / _GB) * _GB
        for turn in range(len(ports)):
            port = ports[(self.channels + turn) % len(ports)]
            if headed or not self._may_begin(port, need):
                continue
            self.ends[self.channels][0] = port
            self.latency = port.port.latency
            self._use(port, -need)
            if asked.pattern in _HEADED:
                gpu = self._head(port, len(ports))
                if gpu is not None:
                    yield self._enter(port, gpu, 0, plan, clock)
                    headed = True
            else:
                yield self._from_port(port, plan, clock)
                near = self.paths.nearest(port, Kind.GPU)
                if not self._repeats and near and self.paths.way(port, near[0]).path == Path.DIS:
                    continue  # NCCL forgets to give back what such a port used
            self._use(port, need)

    @property
    def _repeats(self) -> bool:
        """Whether the channel must be like the one before."""
        return self.channels > 0 and self.asked.same

    def _may_begin(self, port: Device, need: float) -> bool:
        asked = self.asked
        if (asked.collnet and not port.port.collnet) or self.wires[port] < need:
            return False
        returns = asked.pattern == Pattern.RING and asked.cross_nic == _EITHER_WAY and self.channels % 2
        return not returns or port is self.ends[self.channels - 1][1]

    def _use(self, port: Device, speed: float) -> None:
        """Change what is left of the wire of a port, which ports may share."""
        for other in self.sharing[port]:
            self.wires[other] += speed

    def _head(self, port: Device, ports: int) -> Device | None:
        """The GPU that heads a channel in the switches: the port's own, unless it heads one already."""
        gpu = self.paths.gpu_of(port)
        heads = [self.gpus[channel][0] for channel in range(self.channels)]
        return gpu if self.channels < ports and gpu not in heads else None

    def _from_port(self, port: Device, plan: _Plan, clock: _Clock) -> Step:
        """Begin at the GPUs that are nearest to a port."""
        if self._repeats:
            again = plan._replace(forced=_AGAIN)
            yield self._enter(port, self.gpus[self.channels - 1][0], 0, again, clock)
            return
        if self.channels == 0 and not self.paths.machine.switched:
            own = _Clock(_TIME_AS_THEY_STAND)
            forced = plan._replace(forced=_AS_THEY_STAND)
            yield self._enter(port, self.paths.machine.gpus[0], 0, forced, own)
            clock.left = -1 if own.left == -1 else clock.left
        for gpu in self.order.entered(port):
            yield self._enter(port, gpu, 0, plan, clock)

    def _enter(self, source: Device | None, gpu: Device, step: int, plan: _Plan, clock: _Clock) -> Step:
        """Go on to a GPU, if there is room on the way, and come back."""
        if source is not None and not self._follow(source, gpu):
            return
        channel = self.channels
        self.used[channel][gpu.index] ^= 1
        yield self._at(gpu, step, plan, clock)
        self.used[channel][gpu.index] ^= 1
        if source is not None:
            self._return(source, gpu)

    def _at(self, gpu: Device, step: int, plan: _Plan, clock: _Clock) -> Step:
        """Stand at a GPU: to the port, into the switches, to the next GPU, back to the first, or done."""
        if clock.left <= 0:
            self.over = self.over or self._hurries(clock)
            return
        clock.left -= 1
        last, pattern = len(self.used[0]) - 1, self.asked.pattern
        if step > last:
            yield self._complete(clock)
            return
        self.gpus[self.channels][step] = gpu
        if step == plan.to_port:
            yield self._to_ports(gpu, step, plan, clock)
        elif pattern in _HEADED:
            yield self._through_switch(gpu, clock) if pattern == Pattern.NVLS else self._to_all(gpu, clock)
        elif step < last:
            used = self.used[self.channels]
            for peer in self._next(gpu, step, plan):
                if self._follow(gpu, peer):
                    used[peer.index] ^= 1
                    yield self._at(peer, step + 1, plan, clock)
                    used[peer.index] ^= 1
                    self._return(gpu, peer)
        elif step == plan.to_first:
            first = self.gpus[self.channels][0]
            if self._follow(gpu, first):
                yield self._at(first, step + 1, plan._replace(to_first=-1), clock)
                self._return(gpu, first)
        else:
            yield self._at(gpu, last + 1, _DONE, clock)

    def _hurries(self, clock: _Clock) -> bool:
        """Whether the attempt ends at once when its time is over; where fractions of hops are lost, it goes back."""
        return clock is self.clock and self.asked.pattern != Pattern.COLLNET_DIRECT

    def _next(self, gpu: Device, step: int, plan: _Plan) -> list[Device]:
        """The GPUs to go on to."""
        gpus = self.paths.machine.gpus
        if plan.forced == _AS_THEY_STAND:
            return [gpus[step + 1]]
        if plan.forced == _AGAIN:
            return [self.gpus[self.channels - 1][step + 1]]
        port = None if plan.to_port == -1 else self.ends[self.channels][0]
        late = plan.to_port not in (-1, step + 1)
        return self.order.next_gpus(gpu, self.asked.pattern, self.used[self.channels], port, late=late)

    def _to_ports(self, gpu: Device, step: int, plan: _Plan, clock: _Clock) -> Step:
        """Go to a port; a balanced tree goes there from its first two GPUs, half from each."""
        if not self.inter:
            return
        channel, balanced = self.channels, self.asked.pattern == Pattern.BALANCED_TREE
        after = plan._replace(to_port=1 if balanced and step == 0 else -1)
        share = 0.5 if balanced else 1.0
        for port in self.order.ports(self.asked.type_inter, gpu):
            if self._may_end(port, step) and self._follow(gpu, port, share=share):
                self.ends[channel][1] = port
                yield self._at(gpu, step, after, clock)
                self._return(gpu, port, share=share)

    def _may_end(self, port: Device, step: int) -> bool:
        """Whether a channel that began at one port may end at another."""
        asked, (start, end) = self.asked, self.ends[self.channels]
        here, there = port.port, start.port
        if here.plane != there.plane and None not in (here.plane, there.plane):
            return False
        if asked.pattern == Pattern.TREE and port is not start:
            return False
        if asked.pattern == Pattern.RING and asked.cross_nic == _EITHER_WAY:
            if self.channels % 2 and port is not self.ends[self.channels - 1][0]:
                return False
        elif asked.cross_nic == 0:
            on_rails = here.rail is not None and there.rail is not None
            if (here.rail != there.rail) if on_rails else (here.wire != there.wire):
                return False
        return asked.pattern != Pattern.BALANCED_TREE or step == 0 or port is end

    def _through_switch(self, head: Device, clock: _Clock) -> Step:
        """Let every GPU reduce and multicast through the switch; the head of the channel has twice the traffic."""
        switch = self.paths.machine.devices[Kind.NVSWITCH][0]
        gpus = self.paths.machine.gpus
        yield self._flows([(switch, gpu) for gpu in gpus] + [(gpu, switch) for gpu in gpus], head, clock)

    def _to_all(self, head: Device, clock: _Clock) -> Step:
        """Let the head of a channel speak to every GPU of the node."""
        gpus = self.paths.machine.gpus
        yield self._flows([(head, gpu) for gpu in gpus] + [(gpu, head) for gpu in gpus], head, clock)

    def _flows(self, pairs: list[tuple[Device, Device]], head: Device, clock: _Clock) -> Step:
        """Lay several flows at once, if there is room for all of them."""
        others = len(self.paths.machine.gpus) - 1
        nvls = self.asked.pattern == Pattern.NVLS
        laid = 0
        for source, target in pairs:
            times = (2.0 if head in (source, target) else 1.0) if nvls else 1 / others
            if not self._follow(source, target, times=times):
                break
            laid += 1
        if laid == len(pairs):
            yield self._at(head, others + 1, _DONE, clock)
        for source, target in reversed(pairs[:laid]):
            times = (2.0 if head in (source, target) else 1.0) if nvls else 1 / others
            self._return(source, target, times=times)

    def _follow(self, source: Device, target: Device, *, times: float = 1.0, share: float = 1.0) -> bool:
        """Lay the channel over a way, if the way is near enough and there is room; tell whether that was so."""
        asked, leg = self.asked, self.room.leg(source, target)
        limit = asked.type_intra if leg.inside else asked.type_inter
        if leg.path == Path.DIS or (times == 1 and leg.path > limit):
            return False
        if times == 1 and leg.back > limit and asked.pattern in _TREES:
            return False
        speed = (asked.speed_intra if leg.inside else asked.speed_inter) * times * share
        if not self.room.take(leg.charges, speed):
            return False
        self.hops = int(self.hops + times * leg.hops)
        return True

    def _return(self, source: Device, target: Device, *, times: float = 1.0, share: float = 1.0) -> None:
        """Take the channel off a way again."""
        leg = self.room.leg(source, target)
        speed = (self.asked.speed_intra if leg.inside else self.asked.speed_inter) * times * share
        self.room.give(leg.charges, speed)
        self.hops = int(self.hops - times * leg.hops)

    def _complete(self, clock: _Clock) -> Step:
        """Count the channel, keep what is better than the best, and go on to the next."""
        asked = self.asked
        self.channels += 1
        if self._is_better():
            self.best = replace(asked, channels=self.channels, hops=self.hops, latency=self.latency)
            clock.left = -1 if self.channels == asked.most else clock.left
            self.over = self.channels >= self.enough
        if self.channels < asked.most:
            yield self._channel(clock)
        self.channels -= 1

    def _is_better(self) -> bool:
        """More bandwidth, or as much over fewer hops; in the switches, more heads."""
        asked, best, count = self.asked, self.best, self.channels
        if count < asked.least:
            return False
        if asked.pattern == Pattern.NVLS:
            more = best.channels < count <= len(self.paths.machine.gpus)
            return more or count * asked.speed_inter > best.channels * best.speed_inter
        mine, theirs = count * asked.speed_intra, best.channels * best.speed_intra
        alike = (asked.pattern, asked.cross_nic) == (best.pattern, best.cross_nic)
        return mine > theirs or (mine == theirs and alike and self.hops < best.hops)
