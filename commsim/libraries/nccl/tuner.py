"""What does NCCL choose, and how long does it believe that takes?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
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
_SMALLEST_CORRECTED, _CORRECTED_OF_TREE, _CORRECTED = 64, 23, 24
_POWERS = _CORRECTED + 2
"""Powers of two with a correction, and one for all sizes below and above each."""
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
        self._of(op)
        rows, wanted = self._rows[op], _checked(sizes)
        launches = np.where(rows.rings, pipelined, -(-pipelined // _BATCH))
        large = wanted // max(1, self.communicator.channels * self.communicator.ranks) >= _PLATEAU
        power = np.frexp(np.maximum(wanted // _SMALLEST_CORRECTED, 0.5))[1]
        usable = rows.shares[:, np.minimum(power, _POWERS - 1)]
        seconds: Floats = rows.latency * (1 + rows.slower * large) * launches + wanted / (rows.algbw * usable)
        return seconds

    def _of(self, op: str) -> Mapping[str, Entry]:
        if op not in self.entries:
            raise InputError("collective", op, "NCCL's tuner knows no such one", among=self.entries)
        return self.entries[op]

    @cached_property
    def _rows(self) -> dict[str, _Rows]:
        """The entries of each collective as columns."""
        return {op: _Rows.of(self.communicator, op, entries) for op, entries in self.entries.items()}


@dataclass(frozen=True, eq=False)
class _Rows:
    """The entries of a collective as columns [entry, 1], and what changes them with the size.

    `slower` is by how much the latency of a large ring grows; `shares`[entry, power] is which part of its bandwidth a
    way reaches from 64 B x 2^(power - 1) on.
    """

    latency: Floats
    algbw: Floats
    rings: NDArray[np.bool_]
    slower: Floats
    shares: Floats

    @classmethod
    def of(cls, comm: Communicator, op: str, entries: Mapping[str, Entry]) -> _Rows:
        """Return the columns of these entries."""
        names = [name.split("/") for name in entries]
        plateau = row(comm.constants.plateau, comm.capability) - 1 if op == "all_reduce" and comm.nodes > 1 else 0.0
        return cls(
            latency=_column([entry.latency for entry in entries.values()]),
            algbw=_column([entry.algbw for entry in entries.values()]),
            rings=np.array([[algorithm == "Ring"] for algorithm, _ in names], dtype=np.bool_),
            slower=_column([plateau if name == ["Ring", "Simple"] else 0.0 for name in names]),
            shares=np.array([_shares(comm, op, *name) for name in names]).reshape(len(names), _POWERS),
        )


def _column(values: list[float]) -> Floats:
    return np.array(values, dtype=np.float64).reshape(-1, 1)


def _shares(comm: Communicator, op: str, algorithm: str, protocol: str) -> list[float]:
    """Which share of its bandwidth a way reaches: all of it below 64 B and above the table of corrections."""
    corrected = op == "all_reduce" and algorithm in comm.constants.rules.corrected
    if algorithm == "NVLSTree":
        corrected = corrected and comm.capability >= _BLACKWELL and comm.cpu in X86
    table = list(comm.constants.correction[protocol][:_CORRECTED])
    if algorithm == "Tree":
        table[_CORRECTED_OF_TREE:] = [1.0]
    return [1.0, *(table if corrected else [1.0] * _CORRECTED), 1.0]


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
