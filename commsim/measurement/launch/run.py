"""How is a sweep of collectives measured from Python?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from commsim.errors import InputError
from commsim.measurement.launch.asked import sweep
from commsim.measurement.launch.crew import Crew, Order
from commsim.measurement.launch.memory import need_memory
from commsim.measurement.launch.watch import watch
from commsim.measurement.read import measurements
from commsim.units import parse

if TYPE_CHECKING:
    from commsim.measurement.records import Measurement


def bench(
    ops: str,
    out: str | Path,
    *,
    ranks: int,
    backend: str,
    sizes: str = "8..64MiB",
    factor: float = 2.0,
    dtype: str = "float",
    timeout: str = "5 min",
    **conditions: Any,  # noqa: ANN401 - those of Case
) -> list[Measurement]:
    """Measure operations (`all_reduce,all_gather`) with ranks of this machine, and return what the file then holds.

    `conditions` are those of `commsim.measurement.launch.cases.Case`: iterations, warmup, groups, late, jitter ... What
    the file holds already is not measured again. InputError, LackError (no GPU, no torch, too little memory) and
    PartialError (a rank died or hung; what was measured is in the file).
    """
    if backend not in {"nccl", "gloo"}:
        raise InputError("backend", backend, "no such backend", among=("nccl", "gloo"))
    cases = sweep(ops, sizes, factor, dtype, **conditions)
    if backend == "gloo":
        need_memory(cases, ranks)
    with Crew(Order(tuple(cases), ranks, backend, Path(out), float(parse(timeout, "s", "timeout", "60 s")))) as crew:
        watch(crew)
    return measurements(out)
