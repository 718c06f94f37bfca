"""How long do NCCL's ways take?

launch + hops x latency + the busiest resource: a link, or the channels that copy; + what fills pipelines. Everything
that does not depend on the size is a column [way, 1], so that all ways and sizes are one expression.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Protocol, Self

import numpy as np

from commsim.libraries.library import CHANNELS, LATENCY, Floats, Ints

if TYPE_CHECKING:
    from collections.abc import Iterable

Timed = tuple[Floats, Ints]
"""Time[way, size], s, and what limits it: a kind of link by its number, CHANNELS or LATENCY."""


class Timer(Protocol):
    """Ways that are timed alike."""

    def seconds(self, sizes: Floats) -> Timed:
        """Return how long each way takes for each size."""
        ...


class Columns:
    """A dataclass of arrays [way, 1]."""

    @classmethod
    def of(cls, rows: Iterable[Self]) -> Self:
        """Return the rows, each of one way, as one."""
        listed = list(rows)
        return cls(**{one.name: np.vstack([getattr(row, one.name) for row in listed]) for one in fields(cls)})  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class Streaming(Columns):
    """Rings, trees and their likes: data streams over the links while channels copy it.

    `wait` is there whatever the size, `opening` for each channel, `later` with each doubling of them. A byte takes
    `rate` on the busiest link, of the kind `kind`, and `copy` in a channel that is alone; `drift` is what channels lose
    that do not keep step. A channel is opened for each `share` bytes, `most` at most. A pipeline of `slot` bytes a
    channel fills in `fill` times the time that those take.
    """

    wait: Floats
    opening: Floats
    later: Floats
    rate: Floats
    kind: Floats
    copy: Floats
    drift: Floats
    share: Floats
    most: Floats
    slot: Floats
    fill: Floats

    def seconds(self, sizes: Floats) -> Timed:
        """Return how long each way takes for each size (see `Timer`)."""
        channels = np.minimum(np.maximum(sizes / self.share, 1.0), self.most)
        copied = sizes * self.copy / channels
        copied = copied + np.sqrt(copied * self.drift)
        carried = sizes * self.rate
        busiest = np.maximum(carried, copied)
        moving = busiest * (1 + self.fill * np.minimum(1.0, channels * self.slot / sizes))
        wait = self.wait + self.opening * channels + self.later * np.log2(channels)
        return wait + moving, limits(wait, moving, np.where(carried >= copied, self.kind, CHANNELS))


LARGEST_PIECE = 2.0**17
"""Bytes of a piece that NVLS reduces at a time, at most."""
_SMALLER = (2.0**16, 2.0**15, 2.0**14)


@dataclass(frozen=True, eq=False)
class Switched(Columns):
    """Reduction in the switches: in loops, each over a piece of all channels and heads, `together` of them.

    `inside` is what a byte takes on the links to the switches, of the kind `kind`, `rate` on any other link, of the
    kind `other`; each loop costs `loop`, and `fill` of them pass before the first result is there. A piece has
    `largest` bytes, and is smaller where there would be fewer than `many`, `some` or `few` loops. A loop that has
    begun takes as long as a full one: heads without data wait for the others.
    """

    wait: Floats
    rate: Floats
    other: Floats
    inside: Floats
    kind: Floats
    loop: Floats
    fill: Floats
    together: Floats
    largest: Floats
    many: Floats
    some: Floats
    few: Floats

    def seconds(self, sizes: Floats) -> Timed:
        """Return how long each way takes for each size (see `Timer`)."""
        together = self.together * self.pieces(sizes)
        whole = np.where(sizes < together, sizes, np.ceil(sizes / together) * together)
        reduced, carried = whole * self.inside + self.loop * whole / together, sizes * self.rate
        filling = self.fill * self.inside * np.minimum(sizes, together)
        moving = np.maximum(reduced, carried) + filling
        return self.wait + moving, limits(self.wait, moving, np.where(reduced >= carried, self.kind, self.other))

    def pieces(self, sizes: Floats) -> Floats:
        """Return the bytes of a piece[way, size] (NCCL 2.30, src/enqueue.cc: each limit counts in the piece so far)."""
        piece = self.largest
        for smaller, loops in zip(_SMALLER, (self.many, self.some, self.few)):
            piece = np.where(sizes < loops * self.together * piece, np.minimum(piece, smaller), piece)
        return piece


@dataclass(frozen=True, eq=False)
class Sent(Columns):
    """Sends and receives: to each of its peers a rank has some channels, more of them for large messages.

    A peer gets `part` of the size over `least` to `most` channels, at `most_part` bytes each before another one is
    opened, and no less than `least_part`; `peers` are served over `all` channels at most, `send` is what a byte takes
    in one. `short` messages fit in the buffers of LL.
    """

    wait: Floats
    rate: Floats
    kind: Floats
    drift: Floats
    part: Floats
    peers: Floats
    least: Floats
    most: Floats
    all: Floats
    least_part: Floats
    most_part: Floats
    send: Floats

    def seconds(self, sizes: Floats) -> Timed:
        """Return how long each way takes for each size (see `Timer`)."""
        each = sizes * self.part
        channels = self.channels(each)
        copied = each * self.peers / np.minimum(channels * self.peers, self.all) * self.send
        carried = sizes * self.rate
        carried = carried + np.sqrt(carried * self.drift)
        moving = np.maximum(carried, copied)
        return self.wait + moving, limits(self.wait, moving, np.where(carried >= copied, self.kind, CHANNELS))

    def channels(self, each: Floats) -> Floats:
        """Return how many channels a message of so many bytes has."""
        few = np.minimum(self.least, np.maximum(each / self.least_part, 1.0))
        return np.minimum(np.maximum(each / self.most_part, few), self.most)


def limits(wait: Floats, moving: Floats, resource: Floats) -> Ints:
    """Return what limits: the resource, or latency where that is longer."""
    found: Ints = np.where(moving > wait, resource, LATENCY).astype(np.int64)
    return found
