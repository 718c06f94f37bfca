"""Which options do the commands take that measure? Each is written down once, here."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from commsim.errors import InputError
from commsim.measurement.launch import asked
from commsim.measurement.launch.cases import Case, read_cases

_WHAT, _HOW = "What", "Conditions"


def cases(
    op: Annotated[str, typer.Argument(metavar="OP[,OP]", help="all_reduce, all_gather, ..., send_recv, barrier.")],
    sizes: Annotated[str, typer.Option(rich_help_panel=_WHAT, help="8..8GiB doubles; or 1K,4K.")] = "8..64MiB",
    factor: Annotated[float, typer.Option(rich_help_panel=_WHAT, help="From one size to the next.")] = 2.0,
    dtype: Annotated[str, typer.Option(rich_help_panel=_WHAT, help="float, bfloat16, half, int8 ...")] = "float",
    iterations: Annotated[int, typer.Option(metavar="N", rich_help_panel=_WHAT, help="That count.")] = 20,
    warmup: Annotated[int, typer.Option(metavar="N", rich_help_panel=_WHAT, help="Before those.")] = 5,
    in_place: Annotated[
        bool | None,
        typer.Option("--in-place/--out-of-place", rich_help_panel=_WHAT, help="As torch has it (the default)."),
    ] = None,
    group: Annotated[
        str | None, typer.Option(metavar="RANKS", rich_help_panel=_HOW, help="0-3; or 0,1/2,3: two at once.")
    ] = None,
    matmul: Annotated[int, typer.Option(metavar="N", rich_help_panel=_HOW, help="Beside products of N x N, too.")] = 0,
    graph: Annotated[bool, typer.Option("--graph", rich_help_panel=_HOW, help="Captured in a CUDA graph.")] = False,
    late: Annotated[
        list[str] | None, typer.Option(metavar="RANK=TIME", rich_help_panel=_HOW, help="3=50ms: it holds back.")
    ] = None,
    jitter: Annotated[
        str | None, typer.Option(metavar="LAW", rich_help_panel=_HOW, help="'lognormal: sigma=1 mean=0.01' (s).")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", rich_help_panel=_HOW, help="Of the jitter.")] = 0,
    cases_file: Annotated[
        Path | None,
        typer.Option("--cases", metavar="FILE", rich_help_panel=_HOW, help="JSON list of cases, in place of all this."),
    ] = None,
) -> list[Case]:
    """Return the cases that the arguments of every command that measures describe."""
    if cases_file is not None:
        return read_cases(cases_file)
    for name, count, least in (("iterations", iterations, 1), ("warmup", warmup, 0), ("matmul", matmul, 0)):
        if count < least:
            raise InputError(name, count, f"a whole number from {least} on belongs here")
    return asked.sweep(
        op,
        sizes,
        factor,
        dtype,
        groups=asked.groups(group),
        iterations=iterations,
        warmup=warmup,
        in_place=in_place,
        matmul=matmul,
        graph=graph,
        late=asked.late(late),
        jitter=asked.jitter(jitter, seed),
    )
