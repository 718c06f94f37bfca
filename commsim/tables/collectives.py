"""What are the rows of collectives: timings, sweeps over sizes, candidates?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commsim.libraries.library import Timing
from commsim.libraries.sweep import Sweep
from commsim.tables.ranges import between
from commsim.tables.records import Record, records

if TYPE_CHECKING:
    from commsim.libraries.library import Candidate


@records.register
def _timing(timing: Timing) -> list[Record]:
    return [_timed(timing, timing.choice(index), index) for index in range(len(timing.sizes))]


@records.register
def _sweep(sweep: Sweep) -> list[Record]:
    ends = [records(end) for end in sweep.ends] if sweep.ends else []
    return [row | {"range": between(*others) or None} for row, *others in zip(records(sweep.timing), *ends)]


def candidates(sweep: Sweep) -> list[Record]:
    """Return a row for every candidate of every size, quickest first; `chosen` tells which the library takes.

    Of candidates that a library knows by one name (rings in several orders) one stands for all: what it takes, else the
    quickest.
    """
    return [row for index in range(len(sweep.sizes)) for row in _candidates(sweep, index)]


def _candidates(sweep: Sweep, index: int) -> list[Record]:
    timings, chosen = [sweep.timing, *(sweep.ends or ())], int(sweep.timing.chosen[index])
    quickest = np.argsort([one.seconds[index] for one in sweep.timing.candidates], kind="stable").tolist()
    rows: dict[tuple[str, str], Record] = {}
    for place in (chosen, *quickest):
        row, *ends = (_timed(timing, timing.candidates[place], index) for timing in timings)
        told = {**row, "range": between(*ends) or None, "chosen": place == chosen}
        rows.setdefault((row["algorithm"], row["protocol"]), told)
    return sorted(rows.values(), key=lambda row: float(row["time_s"]))


def _timed(timing: Timing, one: Candidate, index: int) -> Record:
    size, seconds = float(timing.sizes[index]), float(one.seconds[index])
    rate = size / seconds if seconds else 0.0  # alone a rank moves nothing, on the wire in no time
    return {
        "op": timing.op.name,
        "ranks": timing.ranks,
        "size_bytes": int(size),
        "time_s": seconds,
        "algbw_bytes_per_s": rate,
        "busbw_bytes_per_s": rate * timing.op.factor(timing.ranks),
        "algorithm": one.algorithm,
        "protocol": one.protocol,
        "bottleneck": one.limit(index),
        "range": None,
    }
