"""How long is what was asked of NCCL, for any sizes?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from commsim.libraries.library import Candidate, Timing
from commsim.libraries.nccl.columns import sent, short, streaming, switched
from commsim.libraries.nccl.constants import numbers
from commsim.libraries.nccl.rates import Rates
from commsim.libraries.nccl.timing import Sent, Streaming, Switched
from commsim.libraries.nccl.ways import SENDS

if TYPE_CHECKING:
    from commsim.libraries.calibration import Calibration, Case
    from commsim.libraries.library import Floats, Ints
    from commsim.libraries.nccl.asked import Asked, Named
    from commsim.libraries.nccl.timing import Timer

_HOPPER = 90


@dataclass(frozen=True, eq=False)
class Timed:
    """What was asked, with the columns of all its ways: `timers`, each of the `rows` of its ways.

    `sending` is there when it is sends and receives: how they are cut decides on their protocol.
    """

    asked: Asked
    timers: tuple[Timer, ...]
    rows: Ints
    sending: tuple[Rates, Sent] | None = None

    @classmethod
    def of(cls, asked: Asked, fitted: Calibration, case: Case) -> Timed:
        """Return what was asked with a calibration, in a case of the machine."""
        priced = [Rates(one.priced, fitted, case, _is_old(asked, one, fitted)) for one in asked.ways]
        if asked.ways[0].way.name == SENDS:
            columns = Sent.of([sent(one) for one in priced])
            return cls(asked, (columns,), np.arange(len(priced)), (priced[-1], columns))
        reducing = np.array([one.way.in_network for one in asked.ways])
        pairs = list(zip(asked.ways, priced))
        streams = [streaming(rates, one.way.name) for one, rates in pairs if not one.way.in_network]
        switches = [switched(rates, one.way.name) for one, rates in pairs if one.way.in_network]
        timers = ([Streaming.of(streams)] if streams else []) + ([Switched.of(switches)] if switches else [])
        return cls(asked, tuple(timers), np.argsort(np.argsort(reducing, kind="stable")))

    def timing(self, sizes: Floats) -> Timing:
        """Return the times of all ways for sizes[size], B, and which of them NCCL takes."""
        asked, moved = self.asked, np.maximum(sizes, 1.0)
        found = [timer.seconds(moved) for timer in self.timers]
        seconds = np.concatenate([one for one, _ in found])[self.rows]
        limits = np.concatenate([one for _, one in found])[self.rows]
        chosen = asked.chosen(moved, seconds) if self.sending is None else self._protocols(moved)
        candidates = tuple(
            Candidate(one.way.name, one.priced.protocol, one.priced.cost, seconds[row], limits[row])
            for row, one in enumerate(asked.ways)
        )
        return Timing(asked.op, asked.team.ranks, sizes, candidates, chosen)

    def _protocols(self, sizes: Floats) -> Ints:
        """The row of LL for short messages, of Simple for others; the only one where there is but one."""
        rates, columns = self.sending or (None, None)
        last = len(self.asked.ways) - 1
        if rates is None or columns is None or not last:
            return np.zeros(len(sizes), dtype=np.int64)
        return np.where(short(rates, columns, sizes), 0, last)


def _is_old(asked: Asked, one: Named, fitted: Calibration) -> bool:
    """Whether it is a version of before that which the calibration tells apart.

    Sends of an unknown version are taken for old ones on GPUs of before Hopper: they are cut more finely since.
    """
    if asked.version:
        return fitted.older is not None and numbers(asked.version) < numbers(fitted.older.version)
    comm = asked.team.comm
    return one.way.name == SENDS and comm is not None and comm.capability < _HOPPER
