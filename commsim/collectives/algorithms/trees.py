"""How does data climb and descend trees of ranks?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commsim.collectives.algorithms.table import Group, algorithm
from commsim.collectives.kinds import ALL_REDUCE, BROADCAST, REDUCE, Collective
from commsim.collectives.schedule import Phase, Round, Schedule, Transfer, rounds, transfer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]


@algorithm("binomial_tree", ALL_REDUCE, BROADCAST, REDUCE)
def binomial_tree(op: Collective, group: Group) -> Schedule:
    """Everything down, or up, a binomial tree from place 0, round by round; all-reduce goes up and then down.

    Thakur, Rabenseifner and Gropp 2005, section 4 (broadcast, reduce).
    """
    n, down = group.size, []
    for step in (1 << bit for bit in range((n - 1).bit_length())):
        senders = np.arange(min(step, n - step))
        down.append((senders, senders + step))
    climbing = [transfer(b, a, 1.0) for a, b in reversed(down)]
    return _climbing_and_descending(op, climbing, [transfer(a, b, 1.0) for a, b in down])


@algorithm("double_tree", ALL_REDUCE, BROADCAST, REDUCE)
def double_tree(op: Collective, group: Group) -> Schedule:
    """Half of the data through each of two binary trees, in chunks that follow each other.

    Every place is a leaf of one of the trees, so that it sends and receives twice the size at most (Sanders, Speck and
    Traeff 2009, "Two-tree algorithms for full bandwidth broadcast, reduction and scan"; NCCL's trees). A
    broadcast first takes half to the second tree's root, a reduce fetches it from there.
    """
    n = group.size
    child, parent, depth, second = _two_trees(n)
    # Whoever holds everything already, or is to have it, needs no copy of it.
    used = np.ones(len(child), dtype=bool) if op is ALL_REDUCE else child != 0
    levels = [used & (depth == level) for level in range(1, int(depth.max()) + 1)]
    climbing = [transfer(child[level], parent[level], 0.5) for level in reversed(levels) if level.any()]
    descending = [transfer(parent[level], child[level], 0.5) for level in levels if level.any()]
    if op is BROADCAST:
        descending.insert(0, transfer(0, second, 0.5))
    if op is REDUCE:
        climbing.append(transfer(second, 0, 0.5))
    return _climbing_and_descending(op, climbing, descending, streaming=True)


@algorithm("tree", ALL_REDUCE)
def tree(_: Collective, group: Group) -> Schedule:
    """A chain inside each domain and a double tree between the domains, one for each rail, as NCCL's tree.

    Chain r ends at member r, whose NIC takes 1/k of the data; all but one of the k chains use each step of a domain.
    """
    between = double_tree(ALL_REDUCE, Group(group.outer)) if group.outer > 1 else Schedule((), streaming=True)
    k, blocks = group.inner, group.blocks
    if k == 1:
        return between
    member = np.arange(k)
    up, down = transfer((member + 1) % k, member, 1 / k), transfer(member, (member + 1) % k, 1 / k)
    chain_up, chain_down = (Schedule((_chained(step, k - 1),)).on(blocks) for step in (up, down))
    return chain_up.then(between.on(group.rails, 1 / k)).then(chain_down)


def _chained(step: Transfer, repeat: int) -> Phase:
    return Phase((Round((step,), repeat, relayed=True),), streaming=True)


def _climbing_and_descending(
    op: Collective, climbing: list[Transfer], descending: list[Transfer], *, streaming: bool = False
) -> Schedule:
    steps = {BROADCAST: descending, REDUCE: climbing}.get(op, climbing + descending)
    return rounds(*steps, streaming=streaming)


def _two_trees(n: int) -> tuple[Ints, Ints, Ints, int]:
    """The edges child[e], parent[e] of both trees with the child's depth, and the root of the second tree.

    The second tree is the first one mirrored, or, for an odd n, moved on by one place: leaves become inner places.
    """
    role = np.arange(1, n)
    above, depth = _in_order_tree(n)
    place = (n - 1 - np.arange(n)) if n % 2 == 0 else (np.arange(n) + 1) % n
    child, parent = np.concatenate([role, place[role]]), np.concatenate([above[role], place[above[role]]])
    return child, parent, np.tile(depth[role], 2), int(place[0])


def _in_order_tree(n: int) -> tuple[Ints, Ints]:
    """The parent and the depth of each place in the binary tree whose places are numbered in order, with root 0.

    The lowest set bit of a place is its height: the parent is the nearest place that is higher by one, and where that
    lies outside, the nearest higher one on the other side. Odd places are leaves.
    """
    place = np.arange(n)
    bit = place & -place
    above = (place ^ bit) | (bit << 1)
    above = np.where(above < n, above, place ^ bit)
    depth, at = np.zeros(n, dtype=np.int64), place
    while at.any():
        depth += at > 0
        at = above[at]
    return above, depth
