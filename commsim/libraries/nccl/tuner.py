"""What does NCCL choose, and how long does it believe that takes?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from commsim.errors import InputError
from commsim.libraries.nccl.allowed import allowed
from commsim.libraries.nccl.bandwidth import algbw
from commsim.libraries.nccl.communicator import X86
from commsim.libraries.nccl.constants import OPS, row
from commsim.libraries.nccl.latency import latency

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from commsim.libraries.nccl.communicator import Communicator

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_BLACKWELL = 100
_SMALLEST_CORRECTED, _CORRECTED_OF_TREE = 64, 23
_PLATEAU = 64
"""Bytes of each rank and channel from which a ring between nodes is slower to start."""
_BATCH = 8
"""Collectives that one launch of a tree takes together."""
_DEEP_RING, _RELEGATED = 8, 1024.0


@dataclass(frozen=True)
class Entry:
    """What NCCL believes of an algorithm with a protocol: latency (s) and, for large sizes, bytes over time (B/s)."""

    latency: float
    algbw: float


@dataclass(frozen=True)
class Picks:
    """What NCCL takes for each size: `names[chosen[size]]` as "Ring/LL", and the time that it believes in (s).

    Without an algorithm that serves there are no picks: every array is empty.
    """

    op: str
    sizes: Floats
    names: tuple[str, ...]
    chosen: Ints
    seconds: Floats

    @property
    def algorithms(self) -> list[str]:
        """The algorithm of each size."""
        return [self.names[index].split("/")[0] for index in self.chosen]

    @property
    def protocols(self) -> list[str]:
        """The protocol of each size."""
        return [self.names[index].split("/")[1] for index in self.chosen]


@dataclass(frozen=True)
class Table:
    """What NCCL computes once for a communicator: entries by collective and "Algorithm/Protocol", in NCCL's order."""

    communicator: Communicator
    entries: Mapping[str, Mapping[str, Entry]]

    def picks(self, op: str, sizes: Sequence[float] | Floats, *, pipelined: int = 1, fp8: bool = False) -> Picks:
        """Return what NCCL takes for these sizes (B, counted as nccl-tests does).

        `pipelined` collectives share a channel; `fp8` reductions avoid deep rings. InputError for what is no size.
        """
        names, wanted = tuple(self._of(op)), _checked(sizes)
        if not names:
            nothing = np.empty(0)
            return Picks(op, nothing, (), nothing.astype(np.int64), nothing)
        seconds = self.seconds(op, wanted, pipelined=pipelined)
        # NCCL compares single-precision numbers: what differs by less is equal, and the earlier of equals is taken.
        compared = seconds.astype(np.float32)
        if fp8 and self.communicator.ranks > _DEEP_RING:
            compared[[name.startswith("Ring/") for name in names]] *= np.float32(_RELEGATED)
        chosen = np.argmin(compared, axis=0)
        return Picks(op, wanted, names, chosen, seconds[chosen, np.arange(len(wanted))])

    def seconds(self, op: str, sizes: Sequence[float] | Floats, *, pipelined: int = 1) -> Floats:
        """Return the time[entry, size] that NCCL believes in, for every entry of a collective (s)."""
        entries, wanted = self._of(op), _checked(sizes)
        lone = np.array([[entry.latency] for entry in entries.values()])
        rate = np.array([[entry.algbw] for entry in entries.values()])
        launches = np.array([[pipelined if name.startswith("Ring/") else -(-pipelined // _BATCH)] for name in entries])
        slower = np.stack([self._plateau(op, name, wanted) for name in entries])
        usable = np.stack([self._corrected(op, name, wanted) for name in entries])
        seconds: Floats = lone * slower * launches + wanted / (rate * usable)
        return seconds

    def _of(self, op: str) -> Mapping[str, Entry]:
        if op not in self.entries:
            raise InputError("collective", op, "NCCL's tuner knows no such one", among=self.entries)
        return self.entries[op]

    def _plateau(self, op: str, name: str, sizes: Floats) -> Floats:
        """By what the latency of a large ring between nodes grows."""
        comm = self.communicator
        if name != "Ring/Simple" or op != "all_reduce" or comm.nodes == 1:
            return np.ones_like(sizes)
        large = sizes // (comm.channels * comm.ranks) >= _PLATEAU
        return np.where(large, row(comm.constants.plateau, comm.capability), 1.0)

    def _corrected(self, op: str, name: str, sizes: Floats) -> Floats:
        """Which share of its bandwidth a tree reaches at each size: a table by powers of two from 64 B."""
        comm, (algorithm, protocol) = self.communicator, name.split("/")
        if op != "all_reduce" or algorithm not in comm.constants.rules.corrected:
            return np.ones_like(sizes)
        if algorithm == "NVLSTree" and not (comm.capability >= _BLACKWELL and comm.cpu in X86):
            return np.ones_like(sizes)
        shares = np.array(comm.constants.correction[protocol])
        shares = shares[:_CORRECTED_OF_TREE] if algorithm == "Tree" else shares
        power = np.frexp(np.maximum(sizes // _SMALLEST_CORRECTED, 0.5))[1] - 1
        inside = (power >= 0) & (power < len(shares))
        return np.where(inside, shares[np.clip(power, 0, len(shares) - 1)], 1.0)


def tune(comm: Communicator) -> Table:
    """Return what NCCL's tuner believes of a communicator; one rank only copies, so its table is empty."""
    entries: dict[str, dict[str, Entry]] = {op: {} for op in OPS}
    for op in OPS if comm.ranks > 1 else ():
        for algorithm, protocol in allowed(comm, op):
            rate = algbw(comm, op, algorithm, protocol)
            if rate > 0:
                entries[op][f"{algorithm}/{protocol}"] = Entry(latency(comm, op, algorithm, protocol), rate)
    return Table(comm, entries)


def _checked(sizes: Sequence[float] | Floats) -> Floats:
    wanted = np.asarray(sizes, dtype=np.float64)
    if wanted.ndim != 1 or not np.all(np.isfinite(wanted)) or np.any(wanted < 0):
        raise InputError("sizes", sizes, "a list of finite sizes that are not negative belongs here")
    return wanted
