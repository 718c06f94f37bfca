"""What does a library answer, and how does a price become seconds?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from commsim.collectives.price import Cost
from commsim.libraries.calibration import NOMINAL, Case, rates

if TYPE_CHECKING:
    from commsim.collectives.kinds import Collective
    from commsim.collectives.layout import Layout
    from commsim.hardware.topology import Topology

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
LATENCY, CHANNELS = -1, -2
"""What limits a collective when no link does."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """One way in which a library could do a collective: its algorithm and protocol, its price and its time[size].

    `bottleneck`[size] numbers the kind of link that takes longest; LATENCY where that outweighs every link, CHANNELS
    where a GPU's multiprocessors copy more slowly than its links carry.
    """

    algorithm: str
    protocol: str
    cost: Cost
    seconds: Floats
    bottleneck: Ints

    @classmethod
    def idle(cls, seconds: Floats, bottleneck: Ints) -> Candidate:
        """Return what a group of one does: nothing."""
        none = np.zeros((1, 0))
        return cls(
            "",
            "",
            Cost((), none, np.zeros((1, 2)), none, np.ones(1), streaming=False, busiest=((),)),
            seconds,
            bottleneck,
        )

    def limit(self, index: int) -> str:
        """Return what limits it at one size, in words: a kind of link with its busiest edge, or latency."""
        kind = int(self.bottleneck[index])
        if kind < 0:
            return "channels" if kind == CHANNELS else "latency"
        stage = int(np.argmax(self.cost.load[:, kind]))
        return f"{self.cost.kinds[kind].kind} ({self.cost.busiest[stage][kind]})"


@dataclass(frozen=True, eq=False)
class Timing:
    """How long a collective takes in a library: the chosen candidate and the time for each size."""

    op: Collective
    ranks: int
    sizes: Floats
    candidates: tuple[Candidate, ...]
    chosen: Ints

    @property
    def seconds(self) -> Floats:
        """Time[size] of the chosen candidates, s."""
        stacked = np.stack([candidate.seconds for candidate in self.candidates])
        return stacked[self.chosen, np.arange(len(self.sizes))]

    @property
    def algbw(self) -> Floats:
        """Bytes over time, B/s, as nccl-tests; 0 where nothing moves and no time passes."""
        return np.divide(self.sizes, self.seconds, out=np.zeros_like(self.sizes), where=self.seconds > 0)

    @property
    def busbw(self) -> Floats:
        """`algbw` times the bus factor of the operation, B/s, as nccl-tests."""
        return self.algbw * self.op.factor(self.ranks)

    def choice(self, index: int) -> Candidate:
        """Return the candidate that is chosen for one size."""
        return self.candidates[int(self.chosen[index])]


class Library(Protocol):
    """Whoever chooses the algorithm of a collective and does it."""

    @property
    def name(self) -> str:
        """How people call it."""
        ...

    def time(
        self, op: Collective, sizes: Floats, layout: Layout, topology: Topology, *, case: Case = NOMINAL
    ) -> Timing:
        """Return how long `op` takes for sizes[size] (bytes as `op.size` counts them) on a layout of a machine."""
        ...


@dataclass(frozen=True, eq=False)
class Wire:
    """What turns a price into seconds: bandwidth[kind] that is reached, latency[kind], and the costs of a message.

    `launch` is paid once, `message`[inside, network] for each message that waits for another, `chunk` bytes are the
    piece that fills a pipeline (0: infinitely fine).
    """

    bandwidth: Floats
    latency: Floats
    launch: float = 0.0
    message: tuple[float, float] = (0.0, 0.0)
    chunk: float = 0.0


def wire_only(topology: Topology, case: Case = NOMINAL) -> Wire:
    """Return the wire alone: full bandwidth, the latency of the links, no software."""
    return Wire(*rates(topology.kinds, case))


def seconds(cost: Cost, sizes: Floats, wire: Wire) -> tuple[Floats, Ints]:
    """Return time[size] of a price and the kind of link that limits it (-1: latency).

    launch + sum over stages of (hops x latency + messages) + the transfer, which is, for each stage, the maximum over
    kinds of size x load / bandwidth, summed over stages that follow each other, their maximum when they stream; + the
    filling of the pipeline: (depth - 1) chunks of a streaming stage. What moves nothing takes no time.
    """
    if not (cost.load.any() or cost.hops.any() or cost.steps.any()):
        return np.zeros(len(sizes)), np.full(len(sizes), -1)
    waiting = wire.launch + float((cost.hops @ wire.latency + cost.steps @ np.array(wire.message)).sum())
    per_byte = cost.load / wire.bandwidth
    slowest = per_byte.max(axis=1)
    rate = slowest.max() if cost.streaming else slowest.sum()
    rounds = np.maximum(cost.depth - 1, 0)
    chunk = np.minimum(sizes[:, None], wire.chunk) if wire.chunk else np.zeros((len(sizes), 1))
    fill = (chunk * (rounds * slowest / np.maximum(cost.depth, 1))[None, :]).sum(axis=1)
    moving = sizes * rate + fill
    kind = int(np.argmax(per_byte[int(np.argmax(slowest))]))
    return waiting + moving, np.where(moving > waiting, kind, -1)
