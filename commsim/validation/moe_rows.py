"""What does a table of measured dispatches and combines say, one row a result?

Its columns are the fields of `MoeRow`, under the same names; others are left alone. Blank means: not stated.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING

from commsim.validation.rows import read_rows

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class MoeRow:
    """One measured dispatch or combine: where, by which kernels, what each rank sent, and how long it took.

    A result has a time, or a bandwidth and what it `counts` (of `collectives.moe.demand.COUNTS`). `topk_groups` limits
    the nodes of a token, `element_bytes` and `scale_bytes_per_token` are what a token is sent in, `sms` the
    multiprocessors of a GPU that the kernels took.
    """

    row_id: str
    system: str
    nodes: int
    gpus_per_node: int
    ep: int
    mode: str
    phase: str
    tokens_per_rank: int
    hidden: int
    topk: int
    experts: int
    element_bytes: float
    source: str = ""
    nic_gbit_per_s_per_gpu: float | None = None
    fabric: str = ""
    library: str = ""
    topk_groups: int | None = None
    scale_bytes_per_token: float | None = None
    distribution: str = "uniform"
    sms: int | None = None
    time_s: float | None = None
    bandwidth_bytes_per_s: float | None = None
    counts: str = ""
    health: str = ""

    @property
    def missing(self) -> list[str]:
        """The columns without which nothing can be compared, of those that are blank or 0."""
        needed = [item.name for item in fields(self) if item.default is MISSING and not getattr(self, item.name)]
        if self.time_s or (self.bandwidth_bytes_per_s and self.counts):
            return needed
        return [*needed, "time_s, or bandwidth_bytes_per_s with counts"]


def read_moe(path: Path) -> list[MoeRow]:
    """Return the rows of a table. InputError when it is no such table, or for a cell that cannot be read."""
    return read_rows(path, MoeRow)
