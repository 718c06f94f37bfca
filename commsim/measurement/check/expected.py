"""What should a machine deliver, and what can it not deliver?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from commsim.collectives.layout import Layout
from commsim.libraries.calibration import NOMINAL, Case
from commsim.measurement.check.caps import least_time_per_byte

if TYPE_CHECKING:
    from commsim.hardware.system import System
    from commsim.libraries.library import Floats, Library
    from commsim.measurement.records import Measurement, Row


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of a table that move something, as arrays [row].

    `measured` is the shorter of the times out of place and in place, s: one odd cell is no verdict.
    """

    table: Measurement

    @cached_property
    def told(self) -> tuple[Row, ...]:
        """The rows that have bytes and a time."""
        return tuple(row for row in self.table.rows if row.size and (row.out_of_place or row.in_place))

    @cached_property
    def sizes(self) -> Floats:
        """Bytes, as nccl-tests counts them."""
        return np.array([row.size for row in self.told], dtype=np.float64)

    @cached_property
    def measured(self) -> Floats:
        """Seconds."""
        return np.array([min(one.seconds for one in (row.out_of_place, row.in_place) if one) for row in self.told])

    @property
    def factor(self) -> float:
        """Bus bandwidth over size / time."""
        return self.table.op.factor(self.table.ranks)


@dataclass(frozen=True, eq=False)
class Expected(Rows):
    """What a library should need for the rows of a table on a machine, s.

    Whatever settings the run had, these are the times of a library that is free to choose, unless it is told.
    """

    system: System
    library: Library

    @cached_property
    def seconds(self) -> Floats:
        """What is expected, [row]."""
        return self.at()

    @cached_property
    def least(self) -> Floats:
        """What no software can beat, [row]."""
        return self.sizes * least_time_per_byte(self.table.op, self.table.ranks, self.system.topology)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of link of the machine."""
        return tuple(link.kind for link in self.system.topology.kinds)

    def at(self, case: Case = NOMINAL, library: Library | None = None) -> Floats:
        """Return the times in another case of the machine, or of another library, [row]."""
        by, layout = library or self.library, Layout.first(self.table.ranks)
        return by.time(self.table.op, self.sizes, layout, self.system.topology, case=case).seconds
