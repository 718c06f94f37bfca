"""What does it load when everyone in a group sends to everyone else?

Counted, not enumerated: n ranks have n (n - 1) pairs, but a rank sees only how many others it has at each place of a
node and at each level of the machine. The source's half of every way is loaded from the source; the target's half is,
seen from the target, the same count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from commsim.hardware.loads import Moved, carry
from commsim.hardware.transfers import Way, longest, sent

if TYPE_CHECKING:
    from commsim.hardware.topology import Topology

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
SOURCE, TARGET = 0, 1


def exchanged(topology: Topology, load: Floats, groups: Ints, share: float) -> Way:
    """Add to load[link] what each member of groups[group, member] sends to every other one; return the longest way.

    Exact for every group whose machine is tiled; where units are wired to each other directly (`peers`) a way depends
    on both ends of a pair, so there the pairs are enumerated. InputError when no path joins two members.
    """
    if topology.numbering.siblings.max(initial=1) > 1:
        return enumerated(topology, load, groups, share)
    node, local = topology.locate(np.sort(groups, axis=1))
    others = _others(topology, node, local)
    member, place, level = np.nonzero(others)
    weight = others[member, place, level].astype(np.float64) * share
    here, at = local.reshape(-1)[member], node.reshape(-1)[member]
    ways = []
    for side, (a, b) in ((SOURCE, (here, place)), (TARGET, (place, here))):
        table, way = topology.atlas.ways(a, b, level)
        carry(load, topology.numbering, table.only(table.side == side), Moved(way, (at, at), weight))
        ways.append(longest(topology, table))
    return Way.longest(ways, topology)


def enumerated(topology: Topology, load: Floats, groups: Ints, share: float) -> Way:
    """Do the same as `exchanged`, pair by pair."""
    a, b = np.nonzero(~np.eye(groups.shape[1], dtype=bool))
    ends = groups[:, a], groups[:, b]
    return sent(topology, load, ends, np.full(ends[0].shape, share))


def _others(topology: Topology, node: Ints, local: Ints) -> Ints:
    """How many other members each member has: int[member, place in a node, level], levels from the same node upwards.

    The members of each group stand in the order of their nodes, so that a unit's members stand together.
    """
    places = topology.gpus_per_node
    inside = np.zeros((node.size, places, len(topology.spans)), dtype=np.int64)
    for level, span in enumerate(topology.spans):
        starts = np.diff(node // span, axis=1, prepend=-1) != 0
        unit = np.cumsum(starts.reshape(-1)) - 1
        counts = np.bincount(unit * places + local.reshape(-1), minlength=(unit[-1] + 1) * places)
        inside[:, :, level] = counts.reshape(-1, places)[unit]
    inside[:, :, 1:] -= inside[:, :, :-1].copy()
    inside[np.arange(node.size), local.reshape(-1), 0] -= 1
    return inside
