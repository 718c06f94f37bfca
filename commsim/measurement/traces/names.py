"""Which collective does a profiler mean by a name?"""

from __future__ import annotations

from functools import lru_cache

from commsim.collectives.kinds import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, REDUCE_SCATTER
from commsim.measurement.identify import named

BARRIER = "barrier"
TOGETHER = frozenset({ALL_REDUCE.name, ALL_GATHER.name, REDUCE_SCATTER.name, ALL_TO_ALL.name, BARRIER})
"""What nobody can leave before all are there: it ends at the same moment for everyone, but for the last chunk."""


@lru_cache(maxsize=4096)
def collective_of(text: str) -> str | None:
    """Return the collective that is meant by `_allgather_base`, `nccl:all_reduce`, `c10d::barrier`; None for others."""
    if BARRIER in text.lower():
        return BARRIER
    kind = named(text)
    return kind.name if kind else None
