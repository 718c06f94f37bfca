"""What is wrong with a table on any machine?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commsim.units import show_size

if TYPE_CHECKING:
    from commsim.libraries.library import Floats
    from commsim.measurement.records import Measurement, Row, Timing

FASTEST = 10e12
"""Bus bandwidth, B/s, beyond every machine that is announced: NVLink 7 carries 1.8 TB/s each way, and all-reduces in
the switches count up to twice that."""
GROWTH, FLAT, WEIGHTY = 64, 1.5, 2**20
"""A transfer of 64 times the bytes, above 1 MiB, that takes no longer than 1.5 times as long was not waited for."""


def nonsense(table: Measurement) -> list[str]:
    """Return what cannot be true wherever it was measured, a sentence each."""
    found = [_wrong(table), _too_fast(table), _not_waited_for(table)]
    return [sentence for sentence in found if sentence]


def _timings(row: Row) -> list[Timing]:
    return [one for one in (row.out_of_place, row.in_place) if one]


def _wrong(table: Measurement) -> str:
    wrong = [row.size for row in table.rows if any(one.wrong for one in _timings(row))]
    return f"results are wrong at {_sizes(wrong)}" if wrong else ""


def _too_fast(table: Measurement) -> str:
    fast = [row.size for row, busbw in zip(table.rows, _busbw(table)) if busbw > FASTEST]
    return f"faster than any machine at {_sizes(fast)}" if fast else ""


def _busbw(table: Measurement) -> Floats:
    return table.busbw if table.ranks > 1 else np.zeros(len(table.rows))


def _not_waited_for(table: Measurement) -> str:
    """Asynchronous calls return at once, whatever the size: their time is that of issuing them."""
    heavy = [(row.size, row.timing.seconds) for row in table.rows if row.size >= WEIGHTY and _timings(row)]
    if not heavy or table.ranks == 1:
        return ""
    (small, soon), (large, late) = min(heavy), max(heavy)
    if large < small * GROWTH or late > soon * FLAT:
        return ""
    return f"{show_size(large)} take as long as {show_size(small)}: the calls were timed, not the transfers"


def _sizes(sizes: list[int]) -> str:
    listed = ", ".join(show_size(size) for size in sizes[:3])
    return listed + (f" and {len(sizes) - 3} more" if len(sizes) > 3 else "")  # noqa: PLR2004
