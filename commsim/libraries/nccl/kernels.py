"""Which kernels has NCCL for buffers that are registered as symmetric windows, and what does it believe of them?

A model of its own, beside the tuner's (NCCL 2.30, src/sym_kernels.cc; the same since 2.27): a call, and bytes over the
rate of so many blocks. It serves to choose; how long a kernel takes is another question (see `symmetric`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from commsim.collectives.kinds import ALL_GATHER, ALL_REDUCE, REDUCE_SCATTER, Collective
from commsim.libraries.nccl.constants import row
from commsim.libraries.nccl.timing import Columns

if TYPE_CHECKING:
    from collections.abc import Callable

    from commsim.libraries.library import Floats, Ints
    from commsim.libraries.nccl.constants import Symmetric

_OVERHEAD = 9.0
"""Of LL: twice the bytes, and what handling them costs."""
_SOFT = 1e-6
"""Seconds over which a call's cost gives way to that of its bytes."""
_NEAR, _PENALTY = 1.025, 0.025
"""So near the quickest, fewer blocks are taken; each block counts as so much more time."""


@dataclass(frozen=True)
class Kernel:
    """A kernel by NCCL's name, less that of its collective.

    For each byte of a rank's buffer of n ranks NCCL counts `moved`(n) bytes, and a block's rate `width`(n) times. Its
    traffic is that of an `algorithm` of the table: `gathers` says that of gathering all buffers whole. `short`: with
    LL. `multicast`: the switches copy, or reduce.
    """

    name: str
    op: Collective
    algorithm: str
    moved: Callable[[int], float]
    width: Callable[[int], float] = lambda _: 1.0
    short: bool = False
    multicast: bool = False

    @property
    def gathers(self) -> bool:
        """Whether each rank gets the whole buffers of all, and reduces for itself."""
        return self.short and self.op is ALL_REDUCE

    @property
    def reduces(self) -> bool:
        """Whether the switches reduce."""
        return self.multicast and self.op is not ALL_GATHER and not self.gathers


def _ll(ranks: int) -> float:
    return _OVERHEAD * ranks


def _others(ranks: int) -> float:
    return ranks - 1.0


def _wide(ranks: int) -> float:
    return 0.55 * ranks


KERNELS = (
    Kernel("AGxLL_R", ALL_REDUCE, "direct", _ll, short=True),
    Kernel("AGxLLMC_R", ALL_REDUCE, "nvls", _ll, lambda _: 1.1, short=True, multicast=True),
    Kernel("RSxLD_AGxST", ALL_REDUCE, "direct", lambda n: 2 * (n - 1) / n),
    Kernel("RSxLDMC_AGxSTMC", ALL_REDUCE, "nvls", lambda n: 1 + 1 / n, float, multicast=True),
    Kernel("LL", ALL_GATHER, "direct", _ll, short=True),
    Kernel("LLMC", ALL_GATHER, "nvls", _ll, lambda _: 1.1, short=True, multicast=True),
    Kernel("ST", ALL_GATHER, "direct", _others),
    Kernel("STMC", ALL_GATHER, "nvls", _others, _wide, multicast=True),
    Kernel("LL", REDUCE_SCATTER, "direct", _ll, short=True),
    Kernel("LD", REDUCE_SCATTER, "direct", _others),
    Kernel("LDMC", REDUCE_SCATTER, "nvls", _others, _wide, multicast=True),
)
"""In NCCL's order: of equals the earlier is taken. Those that use TMA are off by default, those through NICs of other
domains (2.29 on) count microseconds as seconds: neither is here."""


class Launched(NamedTuple):
    """Kernels, each on the fewest `blocks`[kernel, size] that are nearly the quickest.

    `seconds` is the time that NCCL believes in, `weighed` what it compares: that, and a share of it more for each
    block, both in its single precision. `passing` is what the blocks take for the bytes alone, s.
    """

    blocks: Ints
    seconds: Floats
    weighed: Floats
    passing: Floats


@dataclass(frozen=True, eq=False)
class Belief(Columns):
    """What NCCL believes of kernels: columns [kernel, 1], and the `rate`[kernel, blocks - 1], B/s, of so many blocks.

    A call costs `base`, s. For each byte of a rank's buffer `moved` bytes count.
    """

    base: Floats
    moved: Floats
    rate: Floats

    @classmethod
    def of_kernel(cls, kernel: Kernel, ranks: int, capability: int, known: Symmetric) -> Belief:
        """Return what a version believes of a kernel, for GPUs of a compute capability (90 for 9.0)."""
        op, whole = kernel.op.name, kernel.reduces and kernel.op is ALL_REDUCE
        block = row(known.block, capability)[op]
        peak = row(known.reducing if whole else known.peak, capability)
        limited = kernel.multicast and not kernel.short
        most = min(known.blocks, -(-row(known.multicast, capability) // ranks)) if limited else known.blocks
        blocks = np.minimum(np.arange(1, known.blocks + 1), most)
        base = row(known.ll if kernel.short else known.base, capability)[op]
        return cls(
            base=np.array([[base]]),
            moved=np.array([[kernel.moved(ranks)]]),
            rate=_softmin(blocks * block * kernel.width(ranks), peak, block)[None],
        )

    def launched(self, buffers: Floats) -> Launched:
        """Return what NCCL would launch each kernel with for buffers[size] of a rank, B: see `Launched`."""
        passing = self.moved[:, :, None] * buffers / self.rate[:, :, None]
        times = (self.base[:, :, None] + softened(passing)) * 1e6
        near = times <= _NEAR * times[:, -1:].astype(np.float32)
        fewest = np.argmax(near, axis=1)
        taken = np.take_along_axis(times, fewest[:, None], axis=1)[:, 0].astype(np.float32)
        weighed = taken * (np.float32(1) + np.float32(_PENALTY) * (fewest + 1).astype(np.float32))
        moving = np.take_along_axis(passing, fewest[:, None], axis=1)[:, 0]
        return Launched(fewest + 1, taken.astype(np.float64) * 1e-6, weighed, moving)


def softened(passing: Floats) -> Floats:
    """Return what the time of the bytes adds to that of a call, s: nothing at first, later all of it less 1 us."""
    excess = passing / _SOFT - 1
    added: Floats = np.where(excess >= 100, excess, np.log1p(np.exp(np.minimum(excess, 100)))) * _SOFT  # noqa: PLR2004
    return added


def _softmin(rate: Floats, ceiling: float, softness: float) -> Floats:
    """The smaller of the two, smoothly."""
    found: Floats = ceiling - softness * np.log1p(np.expm1(ceiling / softness) * np.exp(-rate / softness))
    return found
