"""How does a group do a collective in two levels: inside its scale-up domains and between them?

Inside a domain every rank ends with one part of the data, which it takes along its rail (the ranks that stand alike in
their domains), so that every NIC carries the same and no message changes its rail.
"""

from __future__ import annotations

from commsim.collectives.algorithms.direct import direct
from commsim.collectives.algorithms.doubling import halving_doubling
from commsim.collectives.algorithms.in_network import in_switches, nvls
from commsim.collectives.algorithms.rings import ring
from commsim.collectives.algorithms.table import Build, Group, algorithm
from commsim.collectives.algorithms.trees import double_tree
from commsim.collectives.kinds import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, REDUCE_SCATTER, Collective
from commsim.collectives.schedule import Schedule, everyone, rounds

_NEEDS = "several scale-up domains with several ranks each"


def _two_level(group: Group) -> bool:
    return group.outer > 1 and group.inner > 1


def two_levels(op: Collective, group: Group, inside: Build, between: Build) -> Schedule:
    """Return reduce-scatter inside, the operation along each rail, all-gather inside, streaming into each other.

    A reduce-scatter leaves out the last of the three, an all-gather the first.
    """
    k, blocks = group.inner, group.blocks
    across = between(op, Group(group.outer)).on(group.rails, 1 / k)
    first = inside(REDUCE_SCATTER, Group(k, k)).on(blocks).phases if k > 1 and op is not ALL_GATHER else ()
    last = inside(ALL_GATHER, Group(k, k)).on(blocks).phases if k > 1 and op is not REDUCE_SCATTER else ()
    return Schedule((*first, *across.phases, *last), streaming=True)


@algorithm("two_level", ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, serves=_two_level, needs=_NEEDS)
def two_level(op: Collective, group: Group) -> Schedule:
    """Rings inside and between (Cho et al. 2019, "BlueConnect"); all-to-all with rail-aligned forwarding.

    All-to-all goes over the scale-up links to the rank on the target's rail and then along the rail, one NIC hop, as
    NCCL's PXN does.
    """
    if op is ALL_TO_ALL:
        inside = rounds(everyone(group.inner, 1 / group.inner)).on(group.blocks)
        along = rounds(everyone(group.outer, 1 / group.outer)).on(group.rails)
        return Schedule(inside.phases + along.phases, streaming=True)
    return two_levels(op, group, ring, ring)


@algorithm("two_level_halving", ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, serves=_two_level, needs=_NEEDS)
def two_level_halving(op: Collective, group: Group) -> Schedule:
    """A direct exchange inside, halving and doubling between: as few messages in sequence as two levels need."""
    return two_levels(op, group, direct, halving_doubling)


@algorithm("two_level_direct", ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, serves=_two_level, needs=_NEEDS)
def two_level_direct(op: Collective, group: Group) -> Schedule:
    """Direct exchanges inside and between: every rank receives what it has to, once, whatever the number of domains."""
    return two_levels(op, group, direct, direct)


@algorithm(
    "two_level_nvls",
    ALL_REDUCE,
    ALL_GATHER,
    REDUCE_SCATTER,
    serves=_two_level,
    needs=_NEEDS,
    in_network=("blocks",),
)
def two_level_nvls(op: Collective, group: Group) -> Schedule:
    """In-network inside, rings between."""
    return two_levels(op, group, nvls, ring)


@algorithm("nvls_tree", ALL_REDUCE, serves=_two_level, needs=_NEEDS, in_network=("blocks",))
def nvls_tree(_: Collective, group: Group) -> Schedule:
    """In-network inside, a double tree between on each rail (NCCL's NVLSTree)."""
    return two_levels(ALL_REDUCE, group, nvls, double_tree)


@algorithm("nvls_sharp", ALL_REDUCE, serves=_two_level, needs=_NEEDS, in_network=("blocks", "rails"))
def nvls_sharp(_: Collective, group: Group) -> Schedule:
    """In-network inside and between (NCCL's NVLS across nodes)."""
    return two_levels(ALL_REDUCE, group, nvls, in_switches)


@algorithm(
    "sharp",
    ALL_REDUCE,
    ALL_GATHER,
    REDUCE_SCATTER,
    serves=lambda group: group.outer > 1,
    needs="ranks of several scale-up domains",
    in_network=("rails",),
)
def sharp(op: Collective, group: Group) -> Schedule:
    """A direct exchange inside, in-network between, each rank the head of its rail (NCCL's CollNet)."""
    return two_levels(op, group, direct, in_switches)
