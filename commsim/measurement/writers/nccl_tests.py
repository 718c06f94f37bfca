"""How is a measurement written in the very layout of nccl-tests (2.19)?

A time takes 7 places and a bandwidth 6: two decimals while they fit, then one, then none, then powers of ten. Hosts are
numbered; processes and PCI addresses are not known and are written as 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commsim.collectives.kinds import ALL_TO_ALL, SEND_RECV
from commsim.errors import InputError
from commsim.measurement.dtypes import ITEM_BYTES
from commsim.measurement.identify import MARKS
from commsim.measurement.versions import code_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commsim.measurement.records import Measurement, Row, Timing

_TIME, _BANDWIDTH = 7, 6
_GB, _US = 1e9, 1e-6
_PROGRAMS = {ALL_TO_ALL.name: "alltoall", SEND_RECV.name: "sendrecv"}
_HEADER = (
    ("nThread", "threads"),
    ("nGpus", "gpus_per_thread"),
    ("minBytes", "min_bytes"),
    ("maxBytes", "max_bytes"),
    ("step:", "step"),
    ("warmup iters:", "warmup"),
    ("iters:", "iterations"),
    ("agg iters:", "aggregated"),
    ("validation:", "validation"),
    ("graph:", "graph"),
    ("unalign:", "unalign"),
)


def write_text(measurement: Measurement) -> str:
    """Return the log that nccl-tests would have printed; reading it gives the same rows, operation and machine.

    InputError when the operation, the ranks or the type of the elements is not known.
    """
    name = f"{_PROGRAMS.get(measurement.op.name, measurement.op.name)}_perf"
    parts = (_preamble(measurement, name), _heading(measurement), _rows(measurement), _footer(measurement, name))
    return "".join(f"{line}\n" for part in parts for line in part)


def figure(value: float, width: int) -> str:
    """Return a number as nccl-tests prints it in so many places, without the blanks before it."""
    digits = len(str(int(value))) if value >= 1 else 0
    for decimals, most in ((2, width - 3), (1, width - 2), (0, width)):
        if digits <= most:
            return f"{value:.{decimals}f}"
    return f"{value:.{1 if width >= _TIME else 0}e}"


def _preamble(of: Measurement, name: str) -> Iterator[str]:
    if of.version and of.tool == "nccl-tests" and of.library == "nccl":
        code = code_of(of.version)
        yield f"# nccl-tests version {of.tool_version or '2.19.6'} nccl-headers={code} nccl-library={code}"
    yield f"# Collective test starting: {name}"
    settings = [f"{label} {of.settings[key]}" for label, key in _HEADER if key in of.settings]
    if {"min_bytes", "max_bytes", "step"} <= of.settings.keys():
        yield f"# {' '.join(settings)}"
        yield "#"
    yield "# Using devices"
    for number, host in enumerate(of.hosts, 1):
        for device, rank in enumerate(host.ranks):
            place = f"Pid {0:6d} on {f'host-{number}':>10} device {device:2d} [0000:00:00]"
            yield f"#  Rank {rank:2d} Group {0:2d} {place} {host.accelerator}".rstrip()
    yield "#"


def _heading(of: Measurement) -> Iterator[str]:
    more = _has_spread(of)
    side = f"{'time':>7}  {'algbw':>6}  {'busbw':>6}  {'#wrong':>6}"
    units = f"{'(us)':>7}  {'(GB/s)':>6}  {'(GB/s)':>6}  {'':>6}"
    if more:
        side += "".join(f"  {name:>7}" for name in ("i_min", "i_max", "i_p99", "i_cv%"))
        units += "".join(f"  {name:>7}" for name in ("(us)", "(us)", "(us)", "(%)"))
    width = len(side)
    yield f"#{'':51}{'out-of-place':>23}{'':{width - 23}}  {'in-place':>21}{'':{width - 21}}"
    yield f"# {'size':>10}  {'count':>12}  {'type':>8}  {'redop':>6}  {'root':>6}  {side}  {side} "
    yield f"# {'(B)':>10}  {'(elements)':>12}  {'':>8}  {'':>6}  {'':>6}  {units}  {units} "


def _rows(of: Measurement) -> Iterator[str]:
    more, marks = _has_spread(of), MARKS[of.op.name]
    redop = "sum" if of.redop == "none" and False not in marks.redop else of.redop
    root = max(of.root, 0) if marks.root else -1
    for row in of.rows:
        head = f"{row.size:12d}  {_count(of, row):12d}  {of.dtype:>8}  {redop:>6}  {root:6d}"
        sides = "  ".join(_side(of, row, side, more=more) for side in (row.out_of_place, row.in_place))
        yield f"{head}  {sides}".rstrip()


def _count(of: Measurement, row: Row) -> int:
    """The elements that nccl-tests prints for a size: those of one rank where the size counts all."""
    item = ITEM_BYTES.get(of.dtype)
    if item is None:
        raise InputError("type of elements", of.dtype, "nccl-tests has no such type", among=ITEM_BYTES)
    return row.count or row.size // (item * of.ranks if MARKS[of.op.name].per_rank else item)


def _side(of: Measurement, row: Row, timing: Timing | None, *, more: bool) -> str:
    """The figures of one side; blanks when it was not measured."""
    if timing is None:
        return " " * (31 + 36 * more)
    algbw = row.size / timing.seconds if timing.algbw is None else timing.algbw
    busbw = algbw * of.op.factor(of.ranks) if timing.busbw is None else timing.busbw
    wrong = "N/A" if timing.wrong is None else f"{timing.wrong:g}"
    figures = [f"{figure(timing.seconds / _US, _TIME):>7}", *(f"{figure(b / _GB, 6):>6}" for b in (algbw, busbw))]
    spread = timing.spread
    if more and spread:
        times = (one / _US for one in (spread.fastest, spread.slowest, spread.p99))
        return "  ".join(
            (*figures, f"{wrong:>6}", *(f"{figure(one, 7):>7}" for one in (*times, spread.variation * 100)))
        )
    return "  ".join((*figures, f"{wrong:>6}"))


def _footer(of: Measurement, name: str) -> Iterator[str]:
    sides = [(row, side) for row in of.rows for side in (row.out_of_place, row.in_place) if side]
    factor = of.op.factor(of.ranks)
    rates = [row.size / side.seconds * factor if side.busbw is None else side.busbw for row, side in sides]
    wrong = sum(side.wrong or 0 for _, side in sides)
    yield f"# Out of bounds values : {wrong} {'FAILED' if wrong else 'OK'}"
    yield f"# Avg bus bandwidth    : {sum(rates) / len(rates) / _GB if rates else 0.0:g} "
    yield "#"
    yield f"# Collective test concluded: {name}"


def _has_spread(of: Measurement) -> bool:
    return all(side.spread for row in of.rows for side in (row.out_of_place, row.in_place) if side) and bool(of.rows)
