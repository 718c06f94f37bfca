"""What can the switches do for the ranks?"""

from __future__ import annotations

from commsim.collectives.algorithms.table import Group, algorithm
from commsim.collectives.kinds import ALL_GATHER, ALL_REDUCE, REDUCE_SCATTER, Collective
from commsim.collectives.schedule import Schedule, Transfer, lowered, raised, rounds


@algorithm(
    "nvls",
    ALL_REDUCE,
    ALL_GATHER,
    REDUCE_SCATTER,
    serves=lambda group: group.outer == 1,
    needs="ranks of one scale-up domain",
    in_network=("blocks",),
)
def nvls(op: Collective, group: Group) -> Schedule:
    """The switches of one domain reduce and multicast, as NVLink SHARP does.

    Each rank fetches its part, reduced by the switch on the way, and writes the result to all: out and in S + S/n for
    all-reduce. The switch also carries what a rank keeps, because it copies to, and reads from, every member alike.
    """
    n = group.size
    scatter = _streaming(raised(n, 1.0, "reduce"), lowered(n, 1 / n))
    gather = _streaming(raised(n, 1 / n), lowered(n, 1.0, "multicast"))
    return {REDUCE_SCATTER: scatter, ALL_GATHER: gather}.get(op, scatter.then(gather))


def in_switches(op: Collective, group: Group) -> Schedule:
    """Return the schedule in which the switches between NICs reduce, and multicast the result, as SHARP does.

    Each rank sends and receives the size once for all-reduce.
    """
    n = group.size
    if op is ALL_REDUCE:
        return _streaming(raised(n, 1.0, "reduce"), lowered(n, 1.0, "multicast"))
    if op is ALL_GATHER:
        return _streaming(raised(n, 1 / n), lowered(n, 1.0, "multicast"))
    return _streaming(raised(n, 1.0, "reduce"), lowered(n, 1 / n))


def _streaming(*transfers: Transfer) -> Schedule:
    return rounds(*transfers, streaming=True)
