"""Which measured tables are NCCL's constants fitted on, and how far off are times with other constants?"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from commsim.collectives.layout import Layout
from commsim.errors import InputError
from commsim.measurement.cluster import cluster, library
from commsim.validation.collectives import BANDS, Case, agreement
from commsim.validation.measured import HEALTHY, Measured, read_measured

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from commsim.libraries.calibration import Calibration
    from commsim.libraries.library import Floats
    from commsim.validation.agreement import GroupAgreement

Family = tuple[str, str]
"""A machine, and the fabric between its nodes where there are several."""


class Table:
    """A measured table with what its prediction needs."""

    def __init__(self, of: Measured) -> None:
        """Find its machine and library; InputError when it has none."""
        one = of.measurement
        rows = [row for row in one.rows if row.size and (row.out_of_place or row.in_place)]
        self.of, self.by = of, library(one)
        self.sizes = np.array([row.size for row in rows], dtype=np.float64)
        self.measured = np.array([row.timing.seconds for row in rows])
        system = cluster(one)
        self.topology, self.layout = system.topology, Layout.first(one.ranks)
        self.family: Family = (one.system, system.scale_out.fabric if system.scale_out and system.nodes > 1 else "")

    def off(self, fitted: Calibration) -> Floats:
        """Return log(predicted / measured) of each row."""
        by = dataclasses.replace(self.by, fitted=fitted)
        predicted = by.time(self.of.measurement.op, self.sizes, self.layout, self.topology).seconds
        return np.asarray(np.log(predicted / self.measured))

    def cases(self, fitted: Calibration) -> list[Case]:
        """Return the rows beside their prediction."""
        predicted = np.exp(self.off(fitted)) * self.measured
        return [Case(self.of, int(s), float(m), float(p)) for s, m, p in zip(self.sizes, self.measured, predicted)]


def tables(folder: Path) -> list[Table]:
    """Return the healthy tables of a folder that can be predicted."""
    found = []
    for one in read_measured([folder])[0]:
        try:
            found += [Table(one)] if one.health == HEALTHY and _counts(one) else []
        except InputError:
            continue
    return [one for one in found if len(one.sizes)]


def _counts(one: Measured) -> bool:
    """Whether it ran on NCCL, and was not replayed from a CUDA graph, which hides launches."""
    return one.measurement.library == "nccl" and "CUDA graph" not in one.measurement.settings.get("as_stated", "")


def errors(of: Iterable[Table], fitted: Calibration) -> dict[str, GroupAgreement]:
    """Return the agreement by band of sizes, each group counting once."""
    cases = [case for one in of for case in one.cases(fitted)]
    bands = {name: [case for case in cases if case.band == name] for _, name in BANDS}
    return {name: agreement(found) for name, found in bands.items() if found}
