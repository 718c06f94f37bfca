"""Is a measured collective right for its machine?"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from commsim.errors import InputError
from commsim.hardware.system import System
from commsim.libraries.nccl import Nccl
from commsim.libraries.nccl.team import of_gpus
from commsim.libraries.own import OF_VENDOR, own
from commsim.measurement.check.causes import Suspect, suspects
from commsim.measurement.check.expected import Expected, Rows
from commsim.measurement.check.held import Held, Judged, Tolerance, Verdict
from commsim.measurement.check.sense import nonsense
from commsim.measurement.check.windows import ordinary
from commsim.measurement.cluster import cluster, named, of_others, on_windows
from commsim.units import counted

if TYPE_CHECKING:
    from commsim.libraries.library import Library
    from commsim.measurement.records import Measurement

OF_THE_MODEL = Tolerance(small=0.40, middle=0.55, large=0.76, dip=0.30)
"""Of 182 public tables of runs that their owners hold for healthy 1 % lie below: it is what clusters of one kind, what
deliberate settings take, and the model differ by together. Of 25 degraded ones all but one lie below."""
WITHOUT_NVLINK = dataclasses.replace(OF_THE_MODEL, large=0.65)
"""In a box whose GPUs meet over PCIe the processor and its memory decide: 22 to 33 GB/s on eight RTX 5090, with three
processors, are all right (NVIDIA/nccl-tests#332)."""
OF_A_BASELINE = Tolerance(small=0.75, middle=0.85, large=0.95, dip=0.80)
"""Two clusters of a kind differ by 0.5 % at 64 MiB and above and by 5 % below, one from day to day no more."""
TCP = "tcp"
UNKNOWN = "it is not known on which machine it was measured: say --system"
ALONE = "one rank has nobody to exchange anything with"


@dataclass(frozen=True, eq=False)
class Check:
    """A table of a benchmark, judged: its rows, the verdict on the whole and why; `expected` beside a model.

    `assumed` says what is usual for such a machine and was taken for granted, as nobody said it.
    """

    table: Measurement
    system: System | None
    rows: tuple[Judged, ...]
    verdict: Verdict
    reasons: tuple[str, ...] = ()
    expected: Expected | None = None
    assumed: tuple[str, ...] = ()

    @cached_property
    def causes(self) -> tuple[Suspect, ...]:
        """Who is suspected if it is low, the likeliest first."""
        return suspects(self.expected) if self.expected and self.verdict == "low" else ()


def check(
    table: Measurement,
    system: System | str | None = None,
    *,
    library: Library | None = None,
    **changes: Any,  # noqa: ANN401 - the fields of Changes
) -> Check:
    """Return the verdict on a table of a benchmark.

    `system` is the machine, or its name with `changes` as `load` takes them; without it the machine is told by what the
    table says (see `cluster`), and on one that is not known only what is impossible anywhere is found. Whatever the
    settings of the run were, it is held against `library` (NCCL, free to choose): settings and fallbacks are suspects;
    but how buffers were registered is part of what was measured.
    InputError when the table leaves open what was measured, when it has no rows, and when the machine is too small.
    """
    found = system if isinstance(system, System) else _at_its_best(table, system, changes)
    if other := found and of_others(table, found):
        table = dataclasses.replace(table, problems=(*table.problems, other))
    judged = _checked(table, found, library)
    return judged if found is system else dataclasses.replace(judged, assumed=_assumed(table, found, changes))


def _assumed(table: Measurement, system: System | None, changes: dict[str, Any]) -> tuple[str, ...]:
    """The network between nodes, where neither the table nor the user says what it is."""
    net = system.scale_out if system and system.nodes > 1 else None
    stated = changes.keys() & {"nic", "nics_per_node"} or (table.nics and table.nics.bandwidth)
    if system is None or net is None or stated:
        return ()
    nics = f"{counted(system.nics_per_node, 'NIC')} of {net.nic * 8 / 1e9:g} Gb/s a node, {net.fabric}"
    return (f"{nics}: say --nic and --nics-per-node where it is another network",)


def _at_its_best(table: Measurement, name: str | None, changes: dict[str, Any]) -> System | None:
    """The machine of a table, None when it is not known; TCP is no network of it but what libraries fall back to."""
    if name is None and named(table) is None:
        if changes:
            given = ", ".join(changes)
            raise InputError("system", None, f"say which machine {given.replace('_', '-')} belongs to")
        return None
    nics, best = table.nics, table
    if nics and nics.fabric == TCP:
        best = dataclasses.replace(table, nics=dataclasses.replace(nics, fabric=None))
    return cluster(best, named(table) if name is None else name, **changes)


def _checked(table: Measurement, system: System | None, library: Library | None) -> Check:
    if not Rows(table).told:
        ended = next(iter(table.problems), "no rows")
        raise InputError(table.source or "measurement", ended, "at least one size with a time belongs here")
    senseless = nonsense(table)
    if system is None or table.ranks == 1:
        return _unknown(table, senseless, ALONE if table.ranks == 1 else _whose(table))
    if table.ranks > system.gpus:
        raise InputError("system", system.gpus, f"at least the {table.ranks} GPUs of the table belong here")
    expected = Expected(table, system, own(system, library) if library else _free(table, system))
    if doubt := ordinary(expected):
        table = dataclasses.replace(table, problems=(*table.problems, doubt))
    tolerance = OF_THE_MODEL if any(map(of_gpus, expected.kinds)) or system.nodes > 1 else WITHOUT_NVLINK
    held = Held(expected.sizes, expected.measured, expected.seconds, expected.least, tolerance, expected.factor)
    return dataclasses.replace(_judged(table, system, held, senseless), expected=expected)


def _whose(table: Measurement) -> str:
    """Why the machine is not known."""
    devices = " and ".join(sorted(set(table.accelerators)))
    return f"no machine is usual for {devices}: say --system" if devices else UNKNOWN


def _free(table: Measurement, system: System) -> Library:
    """The library of the machine, free to choose for buffers that are registered as those of the table were."""
    found = own(system)
    if isinstance(found, Nccl) and found.name == OF_VENDOR["NVIDIA"] and on_windows(table):
        return dataclasses.replace(found, symmetric=True)
    return found


def beside(table: Measurement, baseline: Measurement) -> Check:
    """Return the verdict on a table beside an earlier run of the same operation on as many ranks.

    Times between the baseline's sizes are interpolated. InputError when the two do not share operation, ranks or sizes.
    """
    now, then = Rows(table), Rows(baseline)
    for what, ours, theirs in (("operation", table.op.name, baseline.op.name), ("ranks", table.ranks, baseline.ranks)):
        if ours != theirs:
            raise InputError(f"baseline: {what}", theirs, f"{ours} belongs here, as in the table")
    if table.ranks == 1:
        return _unknown(table, nonsense(table), ALONE)
    both = (now.sizes >= then.sizes.min(initial=np.inf)) & (now.sizes <= then.sizes.max(initial=0.0))
    if not both.any():
        raise InputError("baseline: sizes", baseline.sizes.tolist(), "sizes around those of the table belong here")
    order = np.argsort(then.sizes)
    known = np.log(then.sizes[order]), np.log(then.measured[order])
    expected = np.exp(np.interp(np.log(now.sizes[both]), *known))
    least, of = np.zeros(both.sum()), "the baseline's bandwidth"
    held = Held(now.sizes[both], now.measured[both], expected, least, OF_A_BASELINE, now.factor, of)
    return _judged(table, None, held, nonsense(table))


def _judged(table: Measurement, system: System | None, held: Held, senseless: list[str]) -> Check:
    impossible = [*senseless, *held.impossible]
    if impossible:
        return Check(table, system, held.rows, "impossible", tuple(impossible))
    return Check(table, system, held.rows, "low" if held.low else "good", tuple(held.low or [held.usual]))


def _unknown(table: Measurement, senseless: list[str], why: str) -> Check:
    verdict: Verdict = "impossible" if senseless else "unknown"
    rows = Rows(table)
    busbw = rows.sizes * rows.factor / rows.measured
    judged = tuple(Judged(size, speed, verdict) for size, speed in zip(rows.sizes.tolist(), busbw.tolist()))
    return Check(table, None, judged, verdict, tuple(senseless or [why]))
