"""How do ranks pass data round a ring, or on to a neighbour?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commsim.collectives.algorithms.table import Group, algorithm
from commsim.collectives.kinds import (
    ALL_GATHER,
    ALL_REDUCE,
    BROADCAST,
    REDUCE,
    REDUCE_SCATTER,
    SEND_RECV,
    Collective,
)
from commsim.collectives.schedule import Phase, Round, Schedule, everyone, rounds, transfer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]


@algorithm("ring", ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, BROADCAST, REDUCE)
def ring(op: Collective, group: Group) -> Schedule:
    """Each rank passes 1/n of the size to the next: n - 1 rounds, twice for all-reduce (Patarasuk and Yuan 2009).

    Broadcast and reduce pass everything through the open ring, from or to place 0, in chunks that follow each other.
    """
    n = group.size
    source, target, weight = neighbours(group)
    if op in (BROADCAST, REDUCE):
        used = (target if op is BROADCAST else source) != 0
        passed = transfer(source[used], target[used], weight[used] / (n - 1))
        return Schedule((Phase((Round((passed,), n - 1, relayed=True),), streaming=True),))
    passed = transfer(source, target, weight / n)
    return Schedule((Phase((Round((passed,), (2 if op is ALL_REDUCE else 1) * (n - 1), relayed=True),)),))


@algorithm(
    "mesh_ring",
    ALL_REDUCE,
    ALL_GATHER,
    REDUCE_SCATTER,
    serves=lambda group: group.inner > 1,
    needs="several ranks of a scale-up domain",
    meshed=True,
)
def mesh_ring(op: Collective, group: Group) -> Schedule:
    """As many rings as leave each directed pair of ranks of a domain to one of them, so that a mesh is used whole.

    In one domain the complete directed graph falls apart into n - 1 rings (Tillson 1980; not for n = 4 and 6, where
    libraries come close), so each pair carries 1/(n (n - 1)) of the size in each round of `ring`. Between domains of k
    there is a ring for each rail, and the graph falls apart into k paths with all ends apart (Williams 1949, for even
    k), so each pair inside carries 1/(n k), as each rank does along its rail.
    """
    n = group.size
    repeat = (2 if op is ALL_REDUCE else 1) * (n - 1)
    if group.outer == 1:
        return Schedule((Phase((Round((everyone(n, 1 / (n * (n - 1))),), repeat, relayed=True),)),))
    source, target, weight = neighbours(group, meshed=True)
    return Schedule((Phase((Round((transfer(source, target, weight / n),), repeat, relayed=True),)),))


def neighbours(group: Group, *, meshed: bool = False) -> tuple[Ints, Ints, Floats]:
    """Return who passes on to whom, source[t] -> target[t], and the weight[t] of the data that goes this way.

    In one domain that is one ring in the order of the places. A group of several domains makes one ring for each rail,
    so that every rank's NIC is used: ring r enters each even domain at member r and leaves it at member r - 1, and runs
    through each odd domain the other way, so that it stays on its rail between them (NCCL's NCCL_CROSS_NIC=2).
    All but one of the rings use each step inside a domain, one uses each step between domains. `meshed`: no two of the
    rings go through a domain by the same steps.
    """
    places, k = np.arange(group.size), group.inner
    if k == 1 or group.outer == 1:
        return places, np.roll(places, -1), np.ones(group.size)
    domain, member = np.divmod(places, k)
    steps = range(1, k) if meshed else [np.where(domain % 2 == 0, 1, -1)]
    onward = [domain * k + (member + step) % k for step in steps]
    # The last of an odd number of domains runs as the first one does, so the rings change their rail there.
    shifted = (domain == group.outer - 1) & (group.outer % 2 == 1)
    across = (domain + 1) % group.outer * k + (member + shifted) % k
    weight = np.repeat([(k - 1) / k / len(onward)] * len(onward) + [1 / k], group.size)
    return np.tile(places, len(onward) + 1), np.concatenate([*onward, across]), weight


@algorithm("pair", SEND_RECV)
def pair(_: Collective, group: Group) -> Schedule:
    """Each rank sends to the next and receives from the one before, as nccl-tests' sendrecv does."""
    places = np.arange(group.size)
    return rounds(transfer(places, np.roll(places, -1), 1.0))
