"""Which nodes of a pipeline can run at the same time?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commsim.training.pipeline.messages import NOTHING

if TYPE_CHECKING:
    from commsim.training.pipeline.schedules import Integers


def in_rounds(before: Integers, needs: Integers) -> tuple[Integers, Integers]:
    """Return the nodes round after round, each in the first after all that it follows, and how many are in each round.

    `before` and `needs` are the nodes that each node follows, operations in the first half, messages in the second.
    Nodes in a deadlock are left out.
    """
    return by_depth(_depths(before, needs))


def by_depth(depth: Integers) -> tuple[Integers, Integers]:
    """Return the nodes round after round and the rounds' sizes, from each node's; NOTHING for those that never run."""
    run = np.argsort(depth, kind="stable")
    run = run[depth[run] != NOTHING]
    first = np.flatnonzero(np.diff(depth[run], prepend=NOTHING))
    return run, np.diff(first, append=run.size)


def _depths(before: Integers, needs: Integers) -> Integers:
    """The round of each node, NOTHING for nodes that never run."""
    first, followers, waiting = _followers(before, needs)
    depth, done = [0] * before.size, [NOTHING] * before.size
    ready = [operation for operation in range(before.size // 2) if not waiting[operation]]
    while ready:
        node = ready.pop()
        done[node] = depth[node]
        for follower in followers[first[node] : first[node + 1]]:
            depth[follower] = max(depth[follower], depth[node] + 1)
            waiting[follower] -= 1
            if not waiting[follower]:
                ready.append(follower)
    return np.array(done)


def _followers(before: Integers, needs: Integers) -> tuple[list[int], list[int], list[int]]:
    """Where the followers of each node begin, those followers, and how many nodes each node waits for."""
    nodes = np.tile(np.arange(before.size), 2)
    followed = np.concatenate([before, needs])
    nodes, followed = nodes[followed != NOTHING], followed[followed != NOTHING]
    sort = np.argsort(followed, kind="stable")
    first = np.searchsorted(followed[sort], np.arange(before.size + 1))
    return first.tolist(), nodes[sort].tolist(), np.bincount(nodes, minlength=before.size).tolist()
