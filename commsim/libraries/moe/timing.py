"""How long does it take until every token is with its experts, or back?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from commsim.collectives.kinds import ALL_TO_ALL
from commsim.collectives.moe.demand import demand
from commsim.errors import InputError
from commsim.libraries.calibration import NOMINAL, Case, rates
from commsim.libraries.moe.kernels import Kernel, kernels
from commsim.libraries.moe.payload import Load
from commsim.libraries.nccl import Nccl

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike

    from commsim.collectives.layout import Layout
    from commsim.collectives.moe.demand import Demand, Op
    from commsim.collectives.moe.routing import Routing
    from commsim.hardware.topology import Topology
    from commsim.libraries.library import Floats, Library, Timing

OPS: tuple[Op, ...] = ("dispatch", "combine")
NCCL_MODE = "nccl"
"""The mode that knows no experts: an all-to-all of all copies by the library that does the other collectives."""


@dataclass(frozen=True)
class Exchange:
    """A dispatch or combine that was timed: until the fullest rank has its tokens.

    `waiting` is what a call costs, s, `moving` what its `tokens` take. `size` are the bytes that a rank sends as
    benchmarks of such a mode count them, its own included (see `counts`), and `away` the share of them that leaves the
    scale-up domain (or, in a single one, the rank).
    """

    op: Op
    ranks: int
    mode: str
    waiting: float
    moving: float
    tokens: float
    size: float
    away: float
    counts: str
    bottleneck: str

    @property
    def seconds(self) -> float:
        """How long it takes, s."""
        return self.waiting + self.moving

    @property
    def per_token(self) -> float:
        """What each more token of a rank takes, s; in mode `nccl` only near so many."""
        return self.moving / self.tokens

    @property
    def algbw(self) -> float:
        """Counted bytes over time, B/s, as DeepEP and its kin report; 0 where nothing moves."""
        return self.size / self.seconds if self.seconds else 0.0

    @property
    def busbw(self) -> float:
        """The part of `algbw` that passes the NIC (several domains) or leaves the rank (a single one), B/s."""
        return self.algbw * self.away


class MoeTimes(NamedTuple):
    """How long a dispatch and the combine after it take, s."""

    dispatch: Floats
    combine: Floats


@dataclass(frozen=True)
class Where:
    """The ranks that share the experts, their copies that act at once, and the machine they are on, in some case."""

    layout: Layout
    topology: Topology
    case: Case = NOMINAL


def exchange(
    op: Op,
    load: Load,
    routing: Routing,
    where: Where,
    *,
    mode: str = "normal",
    multiprocessors: int | None = None,
    library: Library | None = None,
) -> Exchange:
    """Return a dispatch or combine of `load` on each rank, by the kernels of a mode; alone a rank keeps its tokens.

    Modes are those of `topologies/moe.yaml`, whose kernels take so many `multiprocessors`, and `nccl`, in which
    `library` does it (NCCL unless said), a copy for each expert. InputError for what is unknown or cannot be dealt out.
    """
    if op not in OPS:
        raise InputError("operation", op, "not one of the two", among=OPS)
    kernel = None if mode == NCCL_MODE else kernels().kernel(mode)
    if multiprocessors is not None and (kernel is None or multiprocessors < 0):
        raise InputError("multiprocessors", multiprocessors, "a whole number belongs here, for another mode than nccl")
    if where.layout.size == 1:
        return Exchange(op, 1, mode, 0.0, 0.0, load.tokens, 0.0, 0.0, "token_rank_pairs", "latency")
    if kernel is None:
        return _plain(op, load, routing, where, library or Nccl())
    taken = kernel if multiprocessors is None else replace(kernel, multiprocessors=multiprocessors)
    return _by_kernel((op, mode, taken), load, routing, where)


def moe_times(
    tokens: ArrayLike,
    token: tuple[float, float],
    routing: Routing,
    where: Where,
    *,
    mode: str = "normal",
    library: Library | None = None,
) -> MoeTimes:
    """Return how long dispatch and combine of tokens[...] on each rank take, s, each of the shape of `tokens`.

    `token` is the bytes of one with its scales in the two, which may differ in precision. Backwards, the gradient of a
    combine is a dispatch, that of a dispatch a combine. InputError as `exchange`.
    """
    counts = np.asarray(tokens, dtype=np.float64)
    made = [Load(float(end), each) for each in token for end in (counts.min(), counts.max())][1::2]
    once = [exchange(op, load, routing, where, mode=mode, library=library) for op, load in zip(OPS, made)]
    if mode != NCCL_MODE:
        return MoeTimes(*(one.waiting + counts * one.per_token for one in once))
    sizes = [counts.ravel() * each * _uneven(routing, where) for each in token]
    plain = [_all_to_all(size, where, library or Nccl()).seconds.reshape(counts.shape) for size in sizes]
    return MoeTimes(*plain) if where.layout.size > 1 else MoeTimes(0 * counts, 0 * counts)


def _plain(op: Op, load: Load, routing: Routing, where: Where, library: Library) -> Exchange:
    """An all-to-all of every copy, as long as that of the fullest rank's tokens."""
    ranks, size = where.layout.size, load.tokens * load.token
    timing = _all_to_all(np.array([size * _uneven(routing, where)]), where, library)
    return Exchange(
        op,
        ranks,
        NCCL_MODE,
        waiting=0.0,
        moving=float(timing.seconds[0]),
        tokens=load.tokens,
        size=size * routing.top_k,
        away=(ranks - 1) / ranks,
        counts="token_expert_pairs",
        bottleneck=timing.choice(0).limit(0),
    )


def _uneven(routing: Routing, where: Where) -> float:
    """The copies of a token when all ranks got as many as the fullest."""
    return routing.top_k * routing.spread([0] * where.layout.size).imbalance


def _all_to_all(sizes: Floats, where: Where, library: Library) -> Timing:
    return library.time(ALL_TO_ALL, sizes, where.layout, where.topology, case=where.case)


def _by_kernel(by: tuple[Op, str, Kernel], load: Load, routing: Routing, where: Where) -> Exchange:
    """A call of a kernel, and what takes longest of all that is under way in it at once."""
    op, mode, kernel = by
    asked = demand(op, routing, where.layout, where.topology, kernel.way)
    parts = dict(_parts(op, load.token, asked, kernel, where.case))
    longest = max(parts, key=lambda name: parts[name])
    waiting = kernel.launch + (kernel.network if asked.domains > 1 else 0.0) + kernel.expert * routing.experts
    moving = load.tokens * parts[longest]
    return Exchange(
        op,
        where.layout.size,
        mode,
        waiting=waiting,
        moving=moving,
        tokens=load.tokens,
        size=load.tokens * load.token * asked.copies,
        away=asked.away,
        counts=asked.counts,
        bottleneck=longest if moving > waiting else "latency",
    )


def _parts(op: Op, token: float, asked: Demand, kernel: Kernel, case: Case) -> Iterator[tuple[str, float]]:
    """What each kind of link and the multiprocessors take for each token of a rank, s."""
    bandwidth, _ = rates(asked.kinds, case)
    reached = [kernels().reach(link.kind) for link in asked.kinds]
    told = max(one.message for one in reached) if kernel.way == "scattered" else 0.0
    for number, (link, one) in enumerate(zip(asked.kinds, reached)):
        seconds = token * float(asked.load[number]) / (float(bandwidth[number]) * one.share(kernel.way))
        if link.kind.endswith(" nic"):
            seconds += asked.through * told + (token * asked.peer / one.peer if one.peer else 0.0)
        yield f"{link.kind} ({asked.busiest[number]})", seconds
    if kernel.rate and kernel.multiprocessors:
        each = kernel.token if op == "dispatch" else kernel.sum
        busy = each + asked.handled * (kernel.copy + token / kernel.rate)
        yield f"multiprocessors ({kernel.multiprocessors} of a GPU)", busy / kernel.multiprocessors
