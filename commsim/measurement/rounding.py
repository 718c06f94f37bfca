"""How far may a printed figure be from what it stands for, and do the figures of a row agree?

nccl-tests prints 2 decimals while they fit (time in 7 places, bandwidth in 6), then 1, then none; before 2.17.3 a
time of 100 us had 1 decimal and one of 10,000 us none. The coarser of the two is allowed here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from commsim.collectives.kinds import Collective
    from commsim.measurement.records import Row, Timing

_GB, _US = 1e9, 1e-6
_SLACK = 1e-3
"""Share by which figures may differ beyond rounding: averages over runs do, and no lost digit is so small."""


def bandwidth_doubt(bandwidth: float) -> float:
    """Return the most, in B/s, by which a printed bandwidth differs from the measured one."""
    return _half(bandwidth / _GB, ((1e3, 0.01), (1e5, 0.1), (1e6, 1.0)), digits=1) * _GB


def time_doubt(seconds: float) -> float:
    """Return the most, in seconds, by which a printed time differs from the measured one."""
    return _half(seconds / _US, ((100, 0.01), (1e4, 0.1), (1e7, 1.0)), digits=2) * _US


def contradictions(row: Row, kind: Collective | None, ranks: int | None) -> list[str]:
    """Return what the printed bandwidths of a row say that its time and size do not, each in a few words."""
    sides = [side for side in (row.out_of_place, row.in_place) if side]
    return [said for side in sides for said in (_algbw(row, side), _busbw(side, kind, ranks)) if said]


def _algbw(row: Row, side: Timing) -> str:
    if side.algbw is None or not row.size:
        return ""
    due = row.size / side.seconds
    doubt = bandwidth_doubt(side.algbw) + due * time_doubt(side.seconds) / side.seconds
    return _unlike(f"size / time of {row.size} B", due, side.algbw, doubt)


def _busbw(side: Timing, kind: Collective | None, ranks: int | None) -> str:
    if side.algbw is None or side.busbw is None or kind is None or ranks is None:
        return ""
    factor = kind.factor(ranks)
    doubt = bandwidth_doubt(side.busbw) + factor * bandwidth_doubt(side.algbw)
    return _unlike(f"busbw by algbw on {ranks} ranks", factor * side.algbw, side.busbw, doubt)


def _unlike(what: str, due: float, printed: float, doubt: float) -> str:
    if abs(due - printed) <= doubt + _SLACK * due:
        return ""
    return f"{what} is {due / _GB:.4g} GB/s, printed {printed / _GB:.4g}"


def _half(figure: float, steps: tuple[tuple[float, float], ...], *, digits: int) -> float:
    """Half of the last place of a figure, by (below, last place); beyond them so many digits are printed."""
    last = next((place for below, place in steps if figure < below), None)
    return last / 2 if last else 0.5 * figure / 10 ** (digits - 1)
