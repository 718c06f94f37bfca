"""How near do predicted times of dispatch and combine come to measured ones?"""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from commsim.collectives.layout import Layout
from commsim.collectives.moe.demand import Op, counted
from commsim.collectives.moe.routing import Routing
from commsim.errors import InputError
from commsim.hardware.catalogue import load
from commsim.libraries.moe.payload import Load
from commsim.libraries.moe.timing import Where, exchange
from commsim.validation.agreement import Agreement, grouped
from commsim.validation.measured import HEALTHY
from commsim.validation.rows import Skipped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from commsim.hardware.system import System
    from commsim.units import Seconds
    from commsim.validation.moe_rows import MoeRow

UNIFORM = ("", "uniform", "balanced")
KERNELS = {
    "hybrid": ("*deepep-v2*", "*hybrid*"),
    "low_latency": ("trtllm*", "*pplx*"),
}
"""Libraries whose kernels for many tokens copy by the tensor memory accelerator, or send a copy for each expert as
those for few do; those of all others are `normal`."""
FABRICS = {"ethernet": "roce"}
_BF16 = 2.0


@dataclass(frozen=True)
class Case:
    """One measured result beside its prediction, s. `assumed` is what the row leaves to be assumed."""

    row: MoeRow
    measured: Seconds
    predicted: Seconds
    assumed: tuple[str, ...] = ()

    @property
    def error(self) -> float:
        """How much too long the prediction is, as a share of what was measured; below 0 when too short."""
        return self.predicted / self.measured - 1


@dataclass(frozen=True)
class Validation:
    """Measured results beside their predictions, and those that have none."""

    cases: tuple[Case, ...]
    skipped: tuple[Skipped, ...]

    @property
    def counted(self) -> tuple[Case, ...]:
        """The cases that are reported first: their rows say how bytes are counted, nobody doubts their health."""
        return tuple(case for case in self.cases if case.row.counts and case.row.health in ("", HEALTHY))

    def cases_by(self, view: str, cases: Iterable[Case] | None = None) -> dict[str, list[Case]]:
        """Return the cases (all, unless some are given) by a key of VIEWS, in its order. InputError for another."""
        if view not in VIEWS:
            raise InputError("by", view, "no such view", among=VIEWS)
        return dict(sorted(grouped(self.cases if cases is None else cases, VIEWS[view]).items()))

    def by(self, view: str, cases: Iterable[Case] | None = None) -> dict[str, Agreement]:
        """Return the agreement of the cases by a key of VIEWS. InputError for another."""
        found = self.cases_by(view, cases)
        return {name: Agreement.of(case.error for case in each) for name, each in found.items()}


def validate(rows: Iterable[MoeRow]) -> Validation:
    """Return every row beside its prediction, or with the reason why it has none."""
    cases: list[Case] = []
    skipped: list[Skipped] = []
    for row in rows:
        try:
            cases.append(_case(row))
        except InputError as error:
            skipped.append(Skipped(row.row_id, str(error)))
    return Validation(tuple(cases), tuple(skipped))


def _case(row: MoeRow) -> Case:
    if row.missing:
        raise InputError("not stated", ", ".join(row.missing), "both plan and result belong in a row")
    op, mode, routing = _op(row), _mode(row), _routing(row)
    system = _system(row.system, row.nodes, row.gpus_per_node, _network(row))
    where = Where(Layout.first(row.ep), system.topology)
    payload, assumed = _load(row, op)
    found = exchange(op, payload, routing, where, mode=mode, multiprocessors=row.sms)
    measured = row.time_s
    if not measured:
        copies = counted(row.counts, routing, where.layout, where.topology)  # type: ignore[arg-type] # it checks
        measured = payload.tokens * payload.token * copies / (row.bandwidth_bytes_per_s or 0.0)
    return Case(row, measured, found.seconds, assumed)


def _op(row: MoeRow) -> Op:
    ops: dict[str, Op] = {"dispatch": "dispatch", "combine": "combine", "combine_low_precision": "combine"}
    if row.phase not in ops:
        raise InputError("phase", row.phase, "only what moves tokens is predicted", among=ops)
    return ops[row.phase]


def _mode(row: MoeRow) -> str:
    """The kernels: what the row says, told apart by the library for many tokens. InputError for others."""
    if row.mode != "normal":
        return row.mode
    named = row.library.lower()
    fitting = (kernel for kernel, names in KERNELS.items() if any(fnmatch.fnmatchcase(named, one) for one in names))
    return next(fitting, "normal")


def _routing(row: MoeRow) -> Routing:
    if row.distribution not in UNIFORM:
        raise InputError("distribution", row.distribution, "its popularity is not known", among=UNIFORM[1:])
    if row.ep > row.nodes * row.gpus_per_node:
        raise InputError("ep", row.ep, f"{row.nodes} nodes of {row.gpus_per_node} GPUs have fewer ranks")
    return Routing(row.experts, row.topk, groups=row.topk_groups)


def _load(row: MoeRow, op: Op) -> tuple[Load, tuple[str, ...]]:
    """What each rank sends, and what had to be assumed of it: results are added in bf16, scales are as is usual."""
    element, assumed = row.element_bytes, []
    if op == "combine" and row.phase == "combine" and element < _BF16:
        element = _BF16
        assumed.append("results come back in bf16: what is stated is the format of the dispatch")
    scales = row.scale_bytes_per_token
    if scales is None:
        scales = row.hidden * ({1.0: 4 / 128, 0.5: 1 / 16}.get(element, 0.0))
        assumed += [f"scales: {scales / row.hidden:g} bytes a value"] if scales else []
    return Load(row.tokens_per_rank, row.hidden * element + scales), tuple(assumed)


def _network(row: MoeRow) -> tuple[str | None, float | None]:
    rate = row.nic_gbit_per_s_per_gpu
    return FABRICS.get(row.fabric, row.fabric) or None, rate


@lru_cache(maxsize=64)
def _system(name: str, nodes: int, gpus_per_node: int, network: tuple[str | None, float | None]) -> System:
    fabric, rate = network
    system = load(name, nodes=nodes, gpus_per_node=gpus_per_node)
    if nodes <= system.nodes_per_domain or not (fabric or rate):
        return system
    changes = {
        "fabric": fabric,
        "nic": None if rate is None else f"{rate * gpus_per_node / system.nics_per_node:g} Gb/s",
    }
    given = {key: value for key, value in changes.items() if value is not None}
    return load(name, nodes=nodes, gpus_per_node=gpus_per_node, **given)


VIEWS: Mapping[str, Callable[[Case], str]] = {
    "mode": lambda case: f"{case.row.mode} {case.row.phase}",
    "machine": lambda case: case.row.system,
    "ranks": lambda case: f"{case.row.ep:>4} ranks",
    "source": lambda case: case.row.source or "not stated",
    "health": lambda case: case.row.health or "not stated",
}
