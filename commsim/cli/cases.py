"""Which options do the commands take that measure? Each is written down once, here."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from commsim.cli.options import option
from commsim.errors import InputError
from commsim.measurement.launch import asked
from commsim.measurement.launch.cases import Case, read_cases

_what, _how = partial(option, "What"), partial(option, "Conditions")


def cases(
    op: Annotated[str, typer.Argument(metavar="OP[,OP]", help="all_reduce, all_gather, ..., send_recv, barrier.")],
    sizes: Annotated[str, _what("8..8GiB doubles; or 1K,4K.")] = "8..64MiB",
    factor: Annotated[float, _what("From one size to the next.")] = 2.0,
    dtype: Annotated[str, _what("float, bfloat16, half, int8 ...")] = "float",
    iterations: Annotated[int, _what("That count.", "N")] = 20,
    warmup: Annotated[int, _what("Before those.", "N")] = 5,
    in_place: Annotated[bool | None, _what("As torch has it (the default).", name="--in-place/--out-of-place")] = None,
    group: Annotated[str | None, _how("0-3; or 0,1/2,3: two at once.", "RANKS")] = None,
    matmul: Annotated[int, _how("Beside products of N x N, too.", "N")] = 0,
    graph: Annotated[bool, _how("Captured in a CUDA graph.", name="--graph")] = False,
    late: Annotated[list[str] | None, _how("3=50ms: it holds back.", "RANK=TIME")] = None,
    jitter: Annotated[str | None, _how("'lognormal: sigma=1 mean=0.01' (s).", "LAW")] = None,
    seed: Annotated[int, _how("Of the jitter.", "N")] = 0,
    cases_file: Annotated[
        Path | None, _how("JSON list of cases, in place of all this.", "FILE", name="--cases")
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
