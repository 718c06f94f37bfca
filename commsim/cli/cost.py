"""How long does a collective take on a machine, by which algorithm, and what limits it?"""

from __future__ import annotations

import dataclasses
from typing import Annotated

import typer
from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table

from commsim.cli import moe
from commsim.cli.options import Json, Plot, library, machine, refuse_for_ideal, takes
from commsim.cli.output import display, document, fits, number, points, table
from commsim.errors import InputError
from commsim.hardware.system import System
from commsim.libraries.library import Library
from commsim.libraries.nccl import Nccl
from commsim.libraries.nccl.kernels import KERNELS
from commsim.libraries.nccl.symmetric import SYMMETRIC
from commsim.libraries.own import own
from commsim.libraries.sweep import Sweep, sweep
from commsim.tables.collectives import candidates
from commsim.tables.records import Record, records
from commsim.units import counted, parse_size, parse_sizes, show_size

SPARE = ("algbw", "wire", "limit", "range", "algorithm")
"""Columns that narrow terminals do without, the first to go first."""
WINDOWS = (
    "buffers are registered as symmetric windows; sums of floats of 32 bits or fewer (an element of 4 bytes)",
    "a call costs what NCCL's own model says; tuned, 8 B were measured at 2.3 us on 8 H200 and 3 us on 8 B200",
)
"""What has to be known of times on symmetric windows; measured: NVIDIA/nccl#1940."""


@takes(machine=machine, library=library, asked=moe.Asked)
def cost(
    machine: System,
    op: Annotated[str, typer.Argument(metavar="OP", help="all_reduce, all_to_all, send_recv, dispatch ...")],
    size: Annotated[str | None, typer.Option(metavar="SIZE", help="As nccl-tests: 4096, 64K, 1GiB.")] = None,
    sizes: Annotated[
        str | None, typer.Option(metavar="SIZES", help="1KiB..8GiB, each twice the last; or 1K,1M.")
    ] = None,
    factor: Annotated[float | None, typer.Option(min=1.01, help="Each size over the one before (2).")] = None,
    algorithm: Annotated[str | None, typer.Option(help="Only this: ring, tree, nvls, collnet ...")] = None,
    protocol: Annotated[str | None, typer.Option(help="Only this: ll, ll128, simple.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Every candidate, not only the one that is chosen.")] = False,
    *,
    library: Library | None,
    asked: moe.Asked,
    as_json: Json = False,
    plot: Plot = None,
) -> None:
    """Time a collective of all GPUs of a machine."""
    by = own(machine, library)
    if op in moe.OPS:
        sized = {
            "size": size,
            "sizes": sizes,
            "factor": factor,
            "algorithm": algorithm,
            "protocol": protocol,
            "plot": plot and str(plot),
        }
        moe.refuse(sized, f"{op} takes --tokens, --hidden, --mode and others: leave this out")
        moe.refuse({"symmetric": _symmetric(by) or None}, f"{op} has no kernels for windows: leave this out")
        return moe.show(op, machine, by, asked, every=every, as_json=as_json)
    moe.refuse(vars(asked), "it belongs to dispatch and combine: leave this out")
    done = sweep(op, machine, _listed(size, sizes, factor), library=_forced(by, algorithm, protocol))
    _need_windows(done)
    rows = candidates(done) if every else records(done)
    if plot:
        from commsim.plots.canvas import save
        from commsim.plots.collective import busbw

        save(busbw(done, every=every), plot)
    if as_json:
        return document(rows)
    return display(*_heading(done), _table(rows, done), *_remarks(done))


def _listed(size: str | None, sizes: str | None, factor: float | None) -> list[int]:
    """The sizes asked for; InputError when both options are given, or neither."""
    if (size is None) == (sizes is None):
        given = "neither" if size is None else f"--size {size} and --sizes {sizes}"
        raise InputError("size", given, "one of --size 1GiB and --sizes 1KiB..8GiB belongs here")
    if size is not None and factor is not None:
        raise InputError("factor", factor, "it belongs beside --sizes FIRST..LAST")
    return [parse_size(size)] if size is not None else parse_sizes(str(sizes), factor or 2.0)


def _forced(library: Library, algorithm: str | None, protocol: str | None) -> Library:
    """The library with the algorithm and the protocol that the caller insists on."""
    if not isinstance(library, Nccl):
        refuse_for_ideal({"algorithm": algorithm, "protocol": protocol}, library.name)
        return library
    if library.symmetric and (algorithm or protocol):
        given = f"--algorithm {algorithm}" if algorithm else f"--protocol {protocol}"
        raise InputError("symmetric", given, "NCCL has other kernels for windows, whatever it is told: leave one out")
    return dataclasses.replace(library, algorithm=algorithm, protocol=protocol)


def _symmetric(library: Library) -> bool:
    """Whether buffers are registered as symmetric windows."""
    return isinstance(library, Nccl) and library.symmetric


def _need_windows(done: Sweep) -> None:
    """Raise InputError when NCCL would take an ordinary way although buffers are registered as symmetric windows."""
    served = any(one.algorithm == SYMMETRIC for one in done.timing.candidates)
    if _symmetric(done.library) and not served:
        given = f"{done.op.name} of {counted(done.timing.ranks, 'GPU')} of {done.system.name}"
        ops = ", ".join(dict.fromkeys(one.op.name for one in KERNELS))
        raise InputError("symmetric", given, f"only {ops} of GPUs that NVLink joins in one domain belong here")


def _heading(done: Sweep) -> list[str]:
    system, ranks = done.system, done.timing.ranks
    title = escape(f"{done.op.name} of {counted(ranks, 'GPU')} of {system.name}")
    return [
        f"[bold]{title}[/], {counted(system.nodes, 'node')}, library {done.library.name}",
        f"size is {done.op.size}; busbw = {number(done.op.factor(ranks))} x algbw",
        "",
    ]


def _table(rows: list[Record], done: Sweep) -> Table:
    """The rows, with as many columns as the terminal has room for: those that say least give way first."""
    left = _columns(done)
    listed = _listed_under(left, rows, done)
    for least in SPARE:
        if not fits(listed):
            left.pop(least, None)
            listed = _listed_under(left, rows, done)
    return listed


def _columns(done: Sweep) -> dict[str, str]:
    """The columns with their headers and units; where figures are uncertain the range of busbw stands for algbw.

    `of the wire` is the share of the physical limit (the library ideal).
    """
    second = {"range": ">busbw\nGB/s range"} if done.ends else {"algbw": ">algbw\nGB/s"}
    first = {"size": ">\nsize", "time": ">time\nus", "busbw": ">busbw\nGB/s"}
    return {**first, **second, "wire": ">of the\nwire", "algorithm": "\nalgorithm", "limit": "\nlimited by"}


def _listed_under(columns: dict[str, str], rows: list[Record], done: Sweep) -> Table:
    listed = table(*columns.values())
    limits = dict(zip(done.limit.sizes.tolist(), done.limit.seconds.tolist()))
    for row in rows:
        cells = _cells(row, limits[row["size_bytes"]])
        listed.add_row(*(cells[name] for name in columns), style="" if row.get("chosen", True) else "dim")
    return listed


def _cells(row: Record, limit: float) -> dict[str, str]:
    low, high = row["range"]["busbw_bytes_per_s"] if row["range"] else (row["busbw_bytes_per_s"],) * 2
    return {
        "size": show_size(row["size_bytes"]),
        "time": number(row["time_s"] * 1e6, 4),
        "busbw": f"[bold]{row['busbw_bytes_per_s'] / 1e9:,.2f}[/]",
        "range": "-".join(number(end / 1e9, 4) for end in (low, high)),
        "algbw": f"{row['algbw_bytes_per_s'] / 1e9:,.2f}",
        "wire": f"{limit / row['time_s'] if row['time_s'] else 1:.0%}",
        "algorithm": f"{row['algorithm']} {row['protocol']}",
        "limit": escape(row["bottleneck"].partition(" (")[0]),
    }


def _remarks(done: Sweep) -> list[RenderableType]:
    """What has to be known beside the rows."""
    system = done.system
    stands_in = (
        [f"{system.name} has no published figures: those of {system.template} stand in"] if system.template else []
    )
    ranged = ["the range is that of figures which nobody has announced or measured"] if done.ends else []
    windows = WINDOWS if _symmetric(done.library) else ()
    return points("notes", [*stands_in, *ranged, *windows, *system.assumptions])
