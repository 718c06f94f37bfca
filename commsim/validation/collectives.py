"""How near do predicted times of collectives come to measured ones?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from commsim.collectives.layout import Layout
from commsim.errors import InputError
from commsim.measurement.cluster import cluster, library, named
from commsim.validation.agreement import GroupAgreement, grouped
from commsim.validation.measured import HEALTHY, Skipped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from commsim.units import Bytes, Seconds
    from commsim.validation.measured import Measured

BANDS = ((2**20, "< 1 MiB"), (64 * 2**20, "1 to 64 MiB"), (None, ">= 64 MiB"))
"""Sizes below the first number of each pair, B; what limits a collective differs from band to band."""


@dataclass(frozen=True)
class Case:
    """One row of a measured table beside its prediction: bytes as nccl-tests counts them, s."""

    table: Measured
    size: Bytes
    measured: Seconds
    predicted: Seconds

    @property
    def error(self) -> float:
        """How much too long the prediction is, as a share of what was measured; below 0 when too short."""
        return self.predicted / self.measured - 1

    @property
    def band(self) -> str:
        """The name of the band of sizes that it belongs to."""
        return next(name for end, name in BANDS if end is None or self.size < end)


@dataclass(frozen=True)
class Validation:
    """Rows of healthy runs beside their predictions, those of other runs apart, and what is not predicted at all."""

    cases: tuple[Case, ...]
    apart: tuple[Case, ...]
    skipped: tuple[Skipped, ...]

    def cases_by(self, view: str) -> dict[str, list[Case]]:
        """Return the cases by a key of VIEWS, in its order. InputError for another."""
        if view not in VIEWS:
            raise InputError("by", view, "no such view", among=VIEWS)
        found = grouped(self.cases, VIEWS[view])
        order = [name for _, name in BANDS] if view == "band" else sorted(found)
        return {name: found[name] for name in order if name in found}

    def by(self, view: str) -> dict[str, GroupAgreement]:
        """Return the agreement of the cases by a key of VIEWS, each group counting once. InputError for another."""
        return {name: agreement(cases) for name, cases in self.cases_by(view).items()}

    def apart_by_health(self) -> dict[str, GroupAgreement]:
        """Return the agreement of what is listed apart, by what its publishers hold it for."""
        found = grouped(self.apart, lambda case: case.table.health)
        return {name: agreement(cases) for name, cases in found.items()}


def agreement(cases: Iterable[Case]) -> GroupAgreement:
    """Return how well predictions agree, each cluster counting once; at least one case belongs here."""
    found = grouped(cases, lambda case: case.table.group)
    return GroupAgreement.of({name: [case.error for case in each] for name, each in found.items()})


def validate(tables: Iterable[Measured], unread: Iterable[Skipped] = ()) -> Validation:
    """Return every row beside its prediction; tables without one with the reason, behind files that are `unread`."""
    cases: list[Case] = []
    skipped = [*unread]
    for table in tables:
        try:
            cases += _cases(table)
        except InputError as error:
            skipped.append(Skipped(table.id, str(error)))
    healthy = tuple(case for case in cases if case.table.health == HEALTHY)
    apart = tuple(case for case in cases if case.table.health != HEALTHY)
    return Validation(healthy, apart, tuple(skipped))


def _cases(table: Measured) -> list[Case]:
    """The rows of a table that move something; InputError when they cannot be predicted."""
    one = table.measurement
    rows = [row for row in one.rows if row.size and (row.out_of_place or row.in_place)]
    if not rows:
        raise InputError("rows", len(one.rows), "no row has a size and a time")
    sizes = np.array([row.size for row in rows], dtype=np.float64)
    topology, nccl = cluster(one).topology, library(one)
    predicted = nccl.time(one.op, sizes, Layout.first(one.ranks), topology).seconds
    return [Case(table, row.size, row.timing.seconds, float(time)) for row, time in zip(rows, predicted)]


VIEWS: Mapping[str, Callable[[Case], str]] = {
    "band": lambda case: case.band,
    "op": lambda case: case.table.measurement.op.name,
    "machine": lambda case: case.table.measurement.system or str(named(case.table.measurement)),
}
