"""What is the row of a dispatch or a combine?"""

from __future__ import annotations

from commsim.libraries.moe.timing import Exchange
from commsim.tables.records import Record, records


@records.register
def _exchange(one: Exchange) -> list[Record]:
    return [
        {
            "op": one.op,
            "ranks": one.ranks,
            "size_bytes": int(one.size),
            "time_s": one.seconds,
            "algbw_bytes_per_s": one.algbw,
            "busbw_bytes_per_s": one.busbw,
            "algorithm": one.mode,
            "protocol": one.counts,
            "bottleneck": one.bottleneck,
            "range": None,
        }
    ]
