"""How long does NCCL take on buffers that are registered as symmetric windows?

By the form of its own model of those kernels (see `kernels`), but never quicker than the links carry what they move:
that model's peaks are above the wire. As it is with NCCL, a kernel that serves comes before all its ordinary ways.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from commsim.collectives.algorithms import ALGORITHMS, can_reduce
from commsim.collectives.kinds import ALL_GATHER, ALL_REDUCE
from commsim.collectives.price import priced
from commsim.libraries.library import CHANNELS, Candidate
from commsim.libraries.nccl.columns import busiest
from commsim.libraries.nccl.constants import ARCHITECTURES
from commsim.libraries.nccl.kernels import KERNELS, Belief, Kernel, softened
from commsim.libraries.nccl.rates import Priced, Rates
from commsim.libraries.nccl.team import of_gpus
from commsim.libraries.nccl.timing import Columns, limits

if TYPE_CHECKING:
    from commsim.collectives.kinds import Collective
    from commsim.collectives.layout import Layout
    from commsim.hardware.topology import Topology
    from commsim.libraries.calibration import Calibration, Case
    from commsim.libraries.library import Floats, Ints, Timing
    from commsim.libraries.nccl.communicator import Communicator
    from commsim.libraries.nccl.constants import Symmetric
    from commsim.libraries.nccl.team import Team
    from commsim.libraries.nccl.timing import Timed

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
    """A kernel that serves a group: a call costs `base`, each byte of the size the price of `times` bytes."""

    kernel: Kernel
    priced: Priced
    times: float
    base: float


@dataclass(frozen=True, eq=False)
class Windows:
    """An operation of a group on symmetric windows: what serves it, and what NCCL believes of its kernels.

    The copy engines are the last of what is `served`, where NCCL lets them gather by itself: above `engines` bytes of a
    rank. Buffers count in whole cells of `cell` bytes.
    """

    op: Collective
    team: Team
    served: tuple[Served, ...]
    belief: Belief
    cell: float
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
        able = [one for one in kernels if many or not one.multicast]
        belief = Belief.of(Belief.of_kernel(one, team.ranks, comm.capability, known) for one in able)
        bases = belief.base[:, 0].tolist()
        served = tuple(_served(one, base, team, layout, topology) for one, base in zip(able, bases))
        found = cls(op, team, served, belief, known.cell)
        engines = [name for name in known.copied if ARCHITECTURES[name] <= comm.capability]
        if op is not ALL_GATHER or not engines:
            return found
        stores = next(one for one in served if not one.kernel.short and not one.kernel.multicast)
        copied = replace(stores, kernel=replace(stores.kernel, name=COPIED))
        return replace(found, served=(*served, copied), engines=float(_ITEM * known.copied[engines[-1]]))

    def beside(self, ordinary: Timing, fitted: Calibration, case: Case) -> Timing:
        """Return the timing with these kernels among its candidates, and chosen wherever NCCL takes one of them."""
        sizes = np.maximum(ordinary.sizes, 1.0)
        buffers = sizes if self.op is ALL_REDUCE else sizes / self.team.ranks
        launched = self.belief.launched(np.ceil(buffers / self.cell) * self.cell)
        first = len(ordinary.candidates)
        chosen = np.where(sizes < _LIMIT, first + self._chosen(sizes, launched.weighed), ordinary.chosen)
        seconds, limit = _carried(self, fitted, case).seconds(sizes, launched.passing)
        candidates = (
            Candidate(SYMMETRIC, one.kernel.name, one.priced.cost, seconds[row], limit[row])
            for row, one in enumerate(self.served)
        )
        return replace(ordinary, candidates=(*ordinary.candidates, *candidates), chosen=chosen)

    def _chosen(self, sizes: Floats, weighed: Floats) -> Ints:
        """The row[size] of what serves that NCCL takes."""
        short = np.array([[one.kernel.short] for one in self.served[: len(weighed)]])
        best = np.argmin(np.where(short & (sizes >= _LL_LIMIT), np.inf, weighed), axis=0)
        found: Ints = np.where(sizes / self.team.ranks > self.engines, len(weighed), best)
        return found


@dataclass(frozen=True, eq=False)
class Carried(Columns):
    """What serves, with a calibration: a call costs `base`, a byte takes `rate` on the busiest link, of kind `kind`.

    Blocks of a kernel copy `hastened` times as fast as NCCL believes.
    """

    base: Floats
    rate: Floats
    kind: Floats
    hastened: Floats

    def seconds(self, sizes: Floats, passing: Floats) -> Timed:
        """Return time[row, size] and what limits it; `passing`[kernel, size] is what blocks take for the bytes, s."""
        copied = np.zeros((len(self.base), len(sizes)))
        copied[: len(passing)] = passing
        copied = copied / self.hastened
        carried = sizes * self.rate
        moving = softened(np.maximum(carried, copied))
        return self.base + moving, limits(self.base, moving, np.where(carried >= copied, self.kind, CHANNELS))


@lru_cache(maxsize=4096)
def _carried(windows: Windows, fitted: Calibration, case: Case) -> Carried:
    """What serves with a calibration, in a case of the machine, remembered."""
    return Carried.of(_row(one, Rates(one.priced, fitted, case)) for one in windows.served)


def _row(of: Served, rates: Rates) -> Carried:
    rate, kind = busiest(rates, rates.per_byte("in_network" if of.kernel.reduces else "efficiency"))
    return Carried(*(np.array([[value]]) for value in (of.base, rate * of.times, kind, rates.hastened)))


def _served(kernel: Kernel, base: float, team: Team, layout: Layout, topology: Topology) -> Served:
    """A kernel whose call costs `base`, with its price."""
    op = ALL_GATHER if kernel.gathers else kernel.op
    cost = priced(kernel.algorithm, op, layout, topology)
    protocol = "LL" if kernel.short else "Simple"
    price = Priced(kernel.op, team, protocol, cost, topology.meshed)
    return Served(kernel, price, team.ranks if kernel.gathers else 1, base)


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
