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
from commsim.libraries.nccl import Nccl

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commsim.collectives.layout import Layout
    from commsim.collectives.moe.demand import Demand, Op
    from commsim.collectives.moe.routing import Routing
    from commsim.hardware.topology import Topology
    from commsim.libraries.library import Library
    from commsim.libraries.moe.payload import Load

NCCL_MODE = "nccl"
"""The mode that knows no experts: an all-to-all of all copies by the library that does the other collectives."""


@dataclass(frozen=True)
class Exchange:
    """A dispatch or combine that was timed: until the fullest rank has its tokens.

    `size` are the bytes that a rank sends as benchmarks of such a mode count them, its own included (see `counts`), and
    `away` the share of them that leaves the scale-up domain (or, in a single one, the rank).
    """

    op: Op
    ranks: int
    mode: str
    seconds: float
    size: float
    away: float
    counts: str
    bottleneck: str

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

    dispatch: float
    combine: float


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
    if op not in ("dispatch", "combine"):
        raise InputError("operation", op, "not one of the two", among=("dispatch", "combine"))
    kernel = None if mode == NCCL_MODE else kernels().kernel(mode)
    if multiprocessors is not None and (kernel is None or multiprocessors < 0):
        raise InputError("multiprocessors", multiprocessors, "a whole number belongs here, for another mode than nccl")
    if where.layout.size == 1:
        return Exchange(op, 1, mode, seconds=0.0, size=0.0, away=0.0, counts="token_rank_pairs", bottleneck="latency")
    if kernel is None:
        return _plain(op, load, routing, where, library or Nccl())
    taken = kernel if multiprocessors is None else replace(kernel, multiprocessors=multiprocessors)
    return _by_kernel((op, mode, taken), load, routing, where)


def moe_times(
    loads: tuple[Load, Load], routing: Routing, where: Where, *, mode: str = "normal", library: Library | None = None
) -> MoeTimes:
    """Return how long dispatch and combine take, s; `loads` are those of the two, which may differ in precision.

    Backwards, the gradient of a combine is a dispatch, that of a dispatch a combine (in the gradients' precision).
    """
    dispatch, combine = loads
    return MoeTimes(
        exchange("dispatch", dispatch, routing, where, mode=mode, library=library).seconds,
        exchange("combine", combine, routing, where, mode=mode, library=library).seconds,
    )


def _plain(op: Op, load: Load, routing: Routing, where: Where, library: Library) -> Exchange:
    """An all-to-all of every copy, as long as that of the fullest rank's tokens."""
    ranks = where.layout.size
    spread = routing.spread([0] * ranks)
    size = load.tokens * load.token * routing.top_k
    timing = library.time(
        ALL_TO_ALL, np.array([size * spread.imbalance]), where.layout, where.topology, case=where.case
    )
    return Exchange(
        op,
        ranks,
        NCCL_MODE,
        float(timing.seconds[0]),
        size,
        (ranks - 1) / ranks,
        "token_expert_pairs",
        timing.choice(0).limit(0),
    )


def _by_kernel(by: tuple[Op, str, Kernel], load: Load, routing: Routing, where: Where) -> Exchange:
    """A call of a kernel, and what takes longest of all that is under way in it at once."""
    op, mode, kernel = by
    asked = demand(op, routing, where.layout, where.topology, kernel.way)
    parts = dict(_parts(op, load, asked, kernel, where.case))
    longest = max(parts, key=lambda name: parts[name])
    waiting = kernel.launch + (kernel.network if asked.domains > 1 else 0.0) + kernel.expert * routing.experts
    return Exchange(
        op,
        where.layout.size,
        mode,
        seconds=waiting + parts[longest],
        size=load.tokens * load.token * asked.copies,
        away=asked.away,
        counts=asked.counts,
        bottleneck=longest if parts[longest] > waiting else "latency",
    )


def _parts(op: Op, load: Load, asked: Demand, kernel: Kernel, case: Case) -> Iterator[tuple[str, float]]:
    """What each kind of link and the multiprocessors take, s."""
    bandwidth, _ = rates(asked.kinds, case)
    reached = [kernels().reach(link.kind) for link in asked.kinds]
    size = load.tokens * load.token
    told = max(one.message for one in reached) if kernel.way == "scattered" else 0.0
    for number, (link, one) in enumerate(zip(asked.kinds, reached)):
        seconds = size * float(asked.load[number]) / (float(bandwidth[number]) * one.share(kernel.way))
        if link.kind.endswith(" nic"):
            seconds += load.tokens * asked.through * told + (size * asked.peer / one.peer if one.peer else 0.0)
        yield f"{link.kind} ({asked.busiest[number]})", seconds
    if kernel.rate and kernel.multiprocessors:
        each = kernel.token if op == "dispatch" else kernel.sum
        busy = each + asked.handled * (kernel.copy + load.token / kernel.rate)
        yield f"multiprocessors ({kernel.multiprocessors} of a GPU)", load.tokens * busy / kernel.multiprocessors
