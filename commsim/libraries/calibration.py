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
from commsim.units import Bytes, Seconds, Share

if TYPE_CHECKING:
    from commsim.hardware.topology import Link

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Protocol:
    """How messages are cut and acknowledged: fixed cost of a call, of a message inside and through the network.

    `payload` is the share of the bytes on the wire that are data, `chunk` the piece that streams from rank to rank.
    `ramp` is how many times the bytes it takes to fill a link to a switch that can reduce (see `LinkUse`).
    """

    base: Seconds
    inside: Seconds
    network: Seconds
    payload: Share = 1.0
    chunk: Bytes = 0.0
    ramp: Share = 1.0

    def __post_init__(self) -> None:
        """Refuse a share that is none; InputError."""
        _need_share("payload", self.payload)


LinkWay = Literal["efficiency", "exchange", "staged"]


@dataclass(frozen=True)
class LinkUse:
    """What software reaches on a kind of link: the share of its bandwidth, and that when switches reduce.

    `in_network_bus` is the most bus bandwidth of an all-reduce in the switches, over the bandwidth of a GPU's links.
    `exchange` is the share when ranks send and receive without an algorithm, `staged` that when GPUs have no other link
    among them and go through the host's memory. `ramp` is how many bytes on one link take twice as long as the share
    says. `hop` is what software adds each time that a message crosses it, `start` what a call that uses it waits once.
    """

    efficiency: Share
    in_network: Share | None = None
    in_network_bus: Share | None = None
    exchange: Share | None = None
    staged: Share | None = None
    ramp: Bytes = 0.0
    hop: Seconds = 0.0
    start: Seconds = 0.0

    def __post_init__(self) -> None:
        """Refuse shares that are none; InputError."""
        for name in ("efficiency", "in_network", "exchange", "staged"):
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
        share = at(self.efficiency if self.in_network is None else self.in_network, corner)
        if self.in_network_bus is None or ranks == 1:
            return share
        return min(share, at(self.in_network_bus, corner) * (ranks + 1) / (2 * (ranks - 1)))


def _need_share(name: str, given: float | None) -> None:
    """Raise InputError unless it is a share of something, or absent."""
    if given is not None and not 0 < given <= 1:
        raise InputError(f"calibration: {name}", float(given), "a share above 0 and up to 1 belongs here")


@dataclass(frozen=True, eq=False)
class Calibration:
    """A library on a class of machine: its protocols, and its use of links by patterns of their kind.

    Of the patterns the first that fits counts. `in_network` is the protocol of reduction in the switches. `steepness`
    is the power of the size by which links reach their share (see `Wire`).
    """

    name: str
    links: Mapping[str, LinkUse]
    protocols: Mapping[str, Protocol] = field(default_factory=dict)
    in_network: Protocol | None = None
    steepness: Share = 1.0
    source: str = ""

    def __post_init__(self) -> None:
        """Refuse a steepness that is none; InputError."""
        _need_share("steepness", self.steepness)

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


@dataclass(frozen=True)
class Case:
    """Which machine is asked about: the end of its uncertain figures' ranges, and what is made faster in a what-if.

    `low` is the slow end (low bandwidth, high latency), `high` the fast one. `faster` are pairs: a pattern of kinds of
    link (or `compute`, `memory`) and a factor of its bandwidth (or rate); `sooner` are such pairs for latencies.
    """

    corner: Corner = "nominal"
    faster: tuple[tuple[str, float], ...] = ()
    sooner: tuple[tuple[str, float], ...] = ()

    def factor(self, kind: str) -> float:
        """Return by how much a kind of link (or `compute`, `memory`) is faster than it is."""
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
