"""Can these cases be run by so many ranks on this backend? Asked before the first of them is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.buffers import element
from bench.delays import law
from bench.operations import is_in_place
from commsim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from commsim.measurement.launch.cases import Case


def need_fit(cases: Iterable[Case], ranks: int, backend: str) -> None:
    """Refuse the first case that cannot be run, and say what it lacks; InputError."""
    for number, case in enumerate(cases, 1):
        where = f"case {number}, {case.op}"
        element(case.dtype, backend)
        is_in_place(case)
        if case.jitter:
            law(case.jitter)
        _need_ranks(case, ranks, where)
        _need_matrix(case, ranks, where)
        if case.graph and backend != "nccl":
            raise InputError(f"{where}: graph", case.graph, "a CUDA graph needs GPUs: backend nccl")


def _need_ranks(case: Case, ranks: int, where: str) -> None:
    named = [*(rank for group in case.groups for rank in group), *case.late]
    if max(named, default=0) >= ranks:
        raise InputError(f"{where}: ranks", max(named), f"ranks from 0 to {ranks - 1} belong here")


def _need_matrix(case: Case, ranks: int, where: str) -> None:
    members = len(case.groups[0]) if case.groups else ranks
    if case.matrix and (case.op != "all_to_all" or len(case.matrix) != members):
        expected = f"an all_to_all of {members} ranks has a matrix of {members} rows; others have none"
        raise InputError(f"{where}: matrix", f"{len(case.matrix)} rows", expected)
