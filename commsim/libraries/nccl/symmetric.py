"""How long does NCCL take on buffers that are registered as symmetric windows?

By the form of its own model of those kernels (see `kernels`), but never quicker than the links carry what they move:
that model's peaks are above the wire. As it is with NCCL, a kernel that serves comes before all its ordinary ways.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from commsim.collectives.algorithms import ALGORITHMS, can_reduce
from commsim.collectives.kinds import ALL_GATHER, ALL_REDUCE
from commsim.collectives.price import priced
from commsim.libraries.library import CHANNELS, Candidate
from commsim.libraries.nccl.constants import ARCHITECTURES, row
from commsim.libraries.nccl.kernels import KERNELS, Belief, Kernel, softened
from commsim.libraries.nccl.rates import Priced, Rates
from commsim.libraries.nccl.team import of_gpus
from commsim.libraries.nccl.timing import limits

if TYPE_CHECKING:
    from commsim.collectives.kinds import Collective
    from commsim.collectives.layout import Layout
    from commsim.hardware.topology import Topology
    from commsim.libraries.calibration import Calibration, Case
    from commsim.libraries.library import Floats, Ints, Timing
    from commsim.libraries.nccl.communicator import Communicator
    from commsim.libraries.nccl.constants import Symmetric
    from commsim.libraries.nccl.team import Team

SYMMETRIC = "Symmetric"
"""What its kernels are called among NCCL's ways; which one it is stands in the place of the protocol."""
COPIED = "CE"
"""Copy engines in the place of a kernel: they take no multiprocessor."""
_ITEM = 4
"""Bytes of an element: 32-bit floats, as nccl-tests has them unless told."""
_LL_LIMIT, _LIMIT = 2.0**31, 2.0**36
"""Bytes of all buffers (of one, for all-reduce) from which on kernels with LL, and all of them, do not count so far."""


@dataclass(frozen=True)
class Served:
    """A kernel that serves a group, and what it moves: its price for each of `times` bytes of the size."""

    kernel: Kernel
    priced: Priced
    times: float


@dataclass(frozen=True, eq=False)
class Windows:
    """An operation of a group on symmetric windows: the kernels that serve it, and what NCCL believes of them.

    `copied` is how the copy engines gather, where NCCL lets them do so by itself: above `engines` bytes of a rank.
    """

    op: Collective
    team: Team
    served: tuple[Served, ...]
    belief: Belief
    cell: float
    copied: Served | None = None
    engines: float = np.inf

    @classmethod
    def of(cls, op: Collective, team: Team, layout: Layout, topology: Topology) -> Windows | None:
        """Return what NCCL has for this; None where its kernels do not serve, so that it takes an ordinary way.

        That is so for other operations than all-reduce, all-gather and reduce-scatter, and for GPUs that NVLink does
        not join, each with each, in one scale-up domain.
        """
        comm = team.comm
        kernels = [one for one in KERNELS if one.op is op]
        known = comm.constants.symmetric if comm else None
        if comm is None or known is None or not kernels or not _joined(comm, layout, topology):
            return None
        many = _multicast(comm, known, layout, topology)
        served = tuple(_served(one, team, layout, topology) for one in kernels if many or not one.multicast)
        beliefs = [Belief.of_kernel(one.kernel, team.ranks, comm.capability, known) for one in served]
        found = cls(op, team, served, Belief.of(beliefs), known.cell)
        engines = [name for name in known.copied if ARCHITECTURES[name] <= comm.capability]
        if op is not ALL_GATHER or not engines:
            return found
        stores = next(one for one in served if not one.kernel.short and not one.kernel.multicast)
        return replace(found, copied=stores, engines=float(_ITEM * row(known.copied, comm.capability)))

    def beside(self, ordinary: Timing, fitted: Calibration, case: Case) -> Timing:
        """Return the timing with these kernels among its candidates, and chosen wherever NCCL takes one of them."""
        sizes = np.maximum(ordinary.sizes, 1.0)
        candidates = self._candidates(sizes, fitted, case)
        first = len(ordinary.candidates)
        chosen = np.where(sizes < _LIMIT, first + self._chosen(sizes), ordinary.chosen)
        return replace(ordinary, candidates=(*ordinary.candidates, *candidates), chosen=chosen)

    def _chosen(self, sizes: Floats) -> Ints:
        """The row[size] of these that NCCL takes, the copy engines' the last."""
        weighed = self.belief.weighed(self._buffers(sizes))
        short = np.array([[one.kernel.short] for one in self.served])
        best = np.argmin(np.where(short & (sizes >= _LL_LIMIT), np.inf, weighed), axis=0)
        found: Ints = np.where(sizes / self.team.ranks > self.engines, len(self.served), best)
        return found

    def _buffers(self, sizes: Floats) -> Floats:
        """The bytes of a rank's buffer (its part, of a gather or scatter), in whole cells."""
        buffers = sizes if self.op is ALL_REDUCE else sizes / self.team.ranks
        whole: Floats = np.ceil(buffers / self.cell) * self.cell
        return whole

    def _candidates(self, sizes: Floats, fitted: Calibration, case: Case) -> list[Candidate]:
        """The kernels, each with its time, and the copy engines."""
        buffers = self._buffers(sizes)
        blocks = self.belief.blocks(buffers) - 1
        rate = np.take_along_axis(self.belief.rate, blocks, axis=1)
        copied = self.belief.moved * buffers / rate
        found = [
            _candidate(one, base, passing, sizes, Rates(one.priced, fitted, case))
            for one, base, passing in zip(self.served, self.belief.base[:, 0], copied)
        ]
        if self.copied is None:
            return found
        base = float(self.belief.base[self.served.index(self.copied), 0])
        by = _candidate(self.copied, base, np.zeros(len(sizes)), sizes, Rates(self.copied.priced, fitted, case))
        return [*found, replace(by, protocol=COPIED)]


def _candidate(of: Served, base: float, passing: Floats, sizes: Floats, rates: Rates) -> Candidate:
    """A kernel, that takes `base` and what its blocks take for the bytes, or the links if those are slower."""
    per_byte = rates.per_byte("in_network" if of.kernel.reduces else "efficiency") * of.times
    slowest = per_byte.max(axis=1)
    cost = of.priced.cost
    carried = sizes * float(slowest.max() if cost.streaming else slowest.sum())
    copied = passing / rates.hastened
    moving = softened(np.maximum(carried, copied))
    kind = int(np.argmax(per_byte[int(np.argmax(slowest))]))
    limit = limits(np.full(len(sizes), base), moving, np.where(carried >= copied, kind, CHANNELS))
    return Candidate(SYMMETRIC, of.kernel.name, cost, base + moving, limit)


def _served(kernel: Kernel, team: Team, layout: Layout, topology: Topology) -> Served:
    op = ALL_GATHER if kernel.gathers else kernel.op
    cost = priced(kernel.algorithm, op, layout, topology)
    protocol = "LL" if kernel.short else "Simple"
    return Served(kernel, Priced(kernel.op, team, protocol, cost, topology.meshed), team.ranks if kernel.gathers else 1)


def _joined(comm: Communicator, layout: Layout, topology: Topology) -> bool:
    """Whether NVLink joins each GPU with each, through switches or by a link of the two."""
    if comm.nodes > 1:
        return False
    cost = priced("direct", ALL_GATHER, layout, topology)
    used = [link.kind for link, load in zip(cost.kinds, cost.load.sum(axis=0)) if load > 0]
    return all(map(of_gpus, used)) and (comm.nvswitch or float(cost.hops.sum()) <= 1)


def _multicast(comm: Communicator, known: Symmetric, layout: Layout, topology: Topology) -> bool:
    """Whether the switches copy and reduce for this group, and NCCL lets them."""
    able = comm.knobs.nvls_enable and comm.ranks >= known.multicast_ranks
    return bool(able) and can_reduce(ALGORITHMS["nvls"], layout, topology)
