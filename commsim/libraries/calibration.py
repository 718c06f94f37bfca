"""What does software make of a link: which share of its bandwidth, at which cost a message?"""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Mapping  # noqa: TC003 - the reader of YAML needs it when it runs
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from commsim.errors import InputError
from commsim.figures import Corner, at
from commsim.reading import load_yaml, read
from commsim.shipped import folder
from commsim.units import Bytes, BytesPerSecond, Seconds, Share

if TYPE_CHECKING:
    from commsim.hardware.topology import Link

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Protocol:
    """How messages are cut and acknowledged.

    `base` is what a call costs, `network` how many times the cost of a message through a NIC, `payload` the share of
    the bytes on the wire that are data, `copy` the share of the rate at which a channel copies, `slot` the bytes that a
    channel passes on at a time, `threads` and `bytes_per_thread` what a channel takes before another one is opened.
    """

    base: Seconds
    network: Share = 1.0
    payload: Share = 1.0
    copy: Share = 1.0
    slot: Bytes = 0.0
    threads: int = 512
    bytes_per_thread: Bytes = 64.0

    def __post_init__(self) -> None:
        """Refuse shares that are none; InputError."""
        _need_share("payload", self.payload)
        _need_share("copy", self.copy)


LinkWay = Literal["efficiency", "staged", "network", "in_network"]


@dataclass(frozen=True)
class LinkUse:
    """What software reaches on a kind of link: a share of its bandwidth, by what is done on it, and costs of a message.

    `staged`: GPUs have no way to each other, or to a NIC, but through the host's memory. `network`: it leads to a NIC.
    `in_network`: its switches reduce; `in_network_bus` is the most bus bandwidth of that, over the bandwidth of a GPU's
    links. What is not said is as `efficiency`.

    `hop` is what a message costs beside the wire, by protocol (LL128 as LL, what else is not said as Simple), `start`
    what a call that uses the link waits once. Where a link of a GPU says so, a channel of that GPU copies at `copy` and
    sends to a peer at `send`; 0 is no limit.
    """

    efficiency: Share
    staged: Share | None = None
    network: Share | None = None
    in_network: Share | None = None
    in_network_bus: Share | None = None
    hop: Mapping[str, Seconds] = field(default_factory=dict)
    staged_hop: Mapping[str, Seconds] = field(default_factory=dict)
    start: Seconds = 0.0
    copy: BytesPerSecond = 0.0
    send: BytesPerSecond = 0.0

    def __post_init__(self) -> None:
        """Refuse shares that are none; InputError."""
        for name in ("efficiency", "staged", "network", "in_network"):
            _need_share(name, getattr(self, name))

    def share(self, way: LinkWay, corner: Corner = "nominal") -> float:
        """Return the share that is reached in a way of using it, the usual one where nothing else is said."""
        said: float | None = getattr(self, way)
        return at(self.efficiency if said is None else said, corner)

    def reducing(self, ranks: int, corner: Corner = "nominal") -> float:
        """Return the share of the bandwidth that in-switch reduction of so many ranks reaches, at an end of the range.

        A GPU's links carry 1 + 1/n of the size, and the bus bandwidth counts 2 (n - 1)/n, so the bus bandwidth is the
        rate on the links times 2 (n - 1)/(n + 1).
        """
        share = self.share("in_network", corner)
        if self.in_network_bus is None or ranks == 1:
            return share
        return min(share, at(self.in_network_bus, corner) * (ranks + 1) / (2 * (ranks - 1)))

    def message(self, protocol: str, *, staged: bool = False) -> float:
        """Return what a message costs beside the wire, s."""
        said = self.staged_hop if staged and self.staged_hop else self.hop
        alike = "LL" if protocol == "LL128" and protocol not in said else protocol
        return float(said.get(alike, said.get("Simple", 0.0)))


_HAIR = 1e-6


def _need_share(name: str, given: float | None) -> None:
    """Raise InputError unless it is a share of something, or absent; a fit may end a hair above 1."""
    if given is not None and not 0 < given <= 1 + _HAIR:
        raise InputError(f"calibration: {name}", float(given), "a share above 0 and up to 1 belongs here")


@dataclass(frozen=True)
class Switching:
    """What it costs that switches reduce, beside their bandwidth.

    Each `loop` of pieces over all channels and heads costs that much, a call `rank` for each rank of a domain (eight
    at most), one that goes on through the network `network`; `fill` loops pass before the first result is there. What
    goes on through the network reaches `through` of the share of the links.
    """

    loop: Seconds = 0.0
    rank: Seconds = 0.0
    network: Seconds = 0.0
    fill: Share = 0.0
    through: Share = 1.0


@dataclass(frozen=True)
class Sending:
    """What groups of sends and receives cost.

    A call costs `base`, and `wait` where messages are not small; through the network `hops` messages and `peer` for
    each peer. Of the share that a link reaches they reach `inside` on the links of GPUs, `outside` on NICs. A channel
    carries `channel` to a peer behind the network (0: no limit). `drift` is as that of a calibration.
    """

    inside: Share = 1.0
    outside: Share = 1.0
    base: Seconds = 0.0
    wait: Seconds = 0.0
    hops: Share = 0.0
    peer: Seconds = 0.0
    channel: BytesPerSecond = 0.0
    drift: Seconds = 0.0


@dataclass(frozen=True)
class Older:
    """What versions before `version` do: every channel costs `channel` at each call, a Simple message costs `hop`."""

    version: str
    channel: Seconds
    hop: Seconds


@dataclass(frozen=True, eq=False)
class Calibration:
    """A library on a class of machine: its protocols, and its use of links by patterns of their kind.

    Of the patterns the first that fits counts. `meshed` is which part of its share a link reaches where GPUs are wired
    to each other, `fill` which part of a pipeline that starts at one rank is empty at first. What channels copy in a
    time t takes t + sqrt(t x `drift`): they do not keep step, and the last one counts. So it does on the network: a
    message takes longer by `later` of itself with each doubling of the channels. A host needs `posting` to send a
    message: rings between nodes do not step faster.
    """

    name: str
    links: Mapping[str, LinkUse]
    protocols: Mapping[str, Protocol] = field(default_factory=dict)
    switching: Switching = field(default_factory=Switching)
    sending: Sending = field(default_factory=Sending)
    older: Older | None = None
    meshed: Share = 1.0
    fill: Share = 0.0
    drift: Seconds = 0.0
    later: Share = 0.0
    posting: Seconds = 0.0
    source: str = ""

    def __post_init__(self) -> None:
        """Refuse shares that are none; InputError."""
        _need_share("meshed", self.meshed)

    def use(self, kind: str) -> LinkUse:
        """Return the use of a kind of link; InputError when no pattern fits it."""
        for pattern, use in self.links.items():
            if fnmatch.fnmatchcase(kind, pattern):
                return use
        raise InputError(f"calibration {self.name}: links", kind, "no pattern fits this kind of link", among=self.links)


@lru_cache(maxsize=32)
def calibration(name: str) -> Calibration:
    """Return the shipped calibration of that name, or the one in a YAML file; InputError when there is none."""
    path = Path(name) if name.endswith((".yaml", ".yml")) else folder("topologies") / "calibrations" / f"{name}.yaml"
    if not path.exists():
        names = [known.stem for known in (folder("topologies") / "calibrations").glob("*.yaml")]
        raise InputError("calibration", name, "no such calibration", among=names)
    return read(Calibration, load_yaml(path), path.name)


COPYING = "channels"
"""What NCCL's channels copy, as a what-if calls it."""


@dataclass(frozen=True)
class Case:
    """Which machine is asked about: the end of its uncertain figures' ranges, and what is made faster in a what-if.

    `low` is the slow end (low bandwidth, high latency), `high` the fast one. `faster` are pairs: a pattern of kinds of
    link (or `compute`, `memory`, `channels`: the blocks in which NCCL copies) and a factor of its bandwidth (or rate);
    `sooner` are such pairs for latencies.
    """

    corner: Corner = "nominal"
    faster: tuple[tuple[str, float], ...] = ()
    sooner: tuple[tuple[str, float], ...] = ()

    def factor(self, kind: str) -> float:
        """Return by how much a kind of link (or `compute`, `memory`, `channels`) is faster than it is."""
        return _product(self.faster, kind)

    def haste(self, kind: str) -> float:
        """Return by how much the latency of a kind of link is shorter than it is."""
        return _product(self.sooner, kind)


def _product(pairs: tuple[tuple[str, float], ...], kind: str) -> float:
    return math.prod(factor for pattern, factor in pairs if fnmatch.fnmatchcase(kind, pattern))


NOMINAL = Case()
_OPPOSITE: dict[Corner, Corner] = {"nominal": "nominal", "low": "high", "high": "low"}


def rates(kinds: tuple[Link, ...], case: Case = NOMINAL) -> tuple[Floats, Floats]:
    """Return bandwidth[kind] and latency[kind] of links in that case."""
    bandwidth = np.array([at(link.bandwidth, case.corner) * case.factor(link.kind) for link in kinds])
    latency = np.array([at(link.latency, _OPPOSITE[case.corner]) / case.haste(link.kind) for link in kinds])
    return bandwidth, latency
