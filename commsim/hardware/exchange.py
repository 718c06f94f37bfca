"""What does it load when everyone in a group sends to everyone else?

Counted, not enumerated: n ranks have n (n - 1) pairs, but a rank sees only how many others it has at each place of a
node and at each level of the machine. The source's half of every way is loaded from the source; the target's half is,
seen from the target, the same count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from commsim.hardware.atlas import Table
from commsim.hardware.loads import Moved, carry
from commsim.hardware.transfers import Way, longest, sent

if TYPE_CHECKING:
    from commsim.hardware.topology import Topology

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Number = TypeVar("Number", np.int64, np.float64)
SOURCE, TARGET = 0, 1


def exchanged(topology: Topology, load: Floats, groups: Ints, share: float) -> Way:
    """Add to load[link] what each member of groups[group, member] sends to every other one; return the longest way.

    Exact for every group whose machine is tiled; where units are wired to each other directly (`peers`) a way depends
    on both ends of a pair, so there the pairs are enumerated. InputError when no path joins two members.
    """
    if topology.numbering.siblings.max(initial=1) > 1:
        return enumerated(topology, load, groups, share)
    node, local = topology.locate(np.sort(groups, axis=1))
    others = _others(topology, node, local).reshape(node.size, -1)
    first, alike = _patterns(np.column_stack([local.reshape(-1), others]))
    table, way = _ways(topology, local.reshape(-1)[first], others[first])
    at = node.reshape(-1)
    carry(load, topology.numbering, table, Moved(alike, (at, at), np.full(at.size, share)))
    return way


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


def _patterns(rows: Ints) -> tuple[Ints, Ints]:
    """The first row of each kind, and of which kind each row is; rows of one kind are equal."""
    # Told apart by a number, for sorting whole rows takes long; should two kinds share it, each row is its own kind.
    number = rows @ np.random.default_rng(0).integers(1 << 62, size=rows.shape[1])
    _, first, alike = np.unique(number, return_index=True, return_inverse=True)
    if (rows == rows[first[alike]]).all():
        return first, alike
    return np.arange(len(rows)), np.arange(len(rows))


def _ways(topology: Topology, local: Ints, others: Ints) -> tuple[Table, Way]:
    """All ways of a member in one row of a table, as often as there are others at their ends; and the longest way.

    Only the source's half of the ways to the others, and the target's half of the ways from them, is loaded.
    """
    row, end = np.nonzero(others)
    place, level = np.divmod(end, len(topology.spans))
    edges, shares, longest_ways = [], [], []
    for side, (a, b) in ((SOURCE, (local[row], place)), (TARGET, (place, local[row]))):
        ways, way = topology.atlas.ways(a, b, level)
        half = np.where(ways.side == side, ways.share, 0.0)
        edges.append(_in_rows(row, len(local), ways.edge[way]))
        shares.append(_in_rows(row, len(local), half[way] * others[row, end][:, None].astype(np.float64)))
        longest_ways.append(longest(topology, ways))
    edge, share = np.concatenate(edges, axis=1), np.concatenate(shares, axis=1)
    none = np.zeros(len(edge))
    table = Table(edge, np.zeros_like(edge), share, np.zeros((len(edge), len(topology.kinds))), none)
    return table, Way.longest(longest_ways, topology)


def _in_rows(row: Ints, rows: int, values: NDArray[Number]) -> NDArray[Number]:
    """The values[entry, hop] of the entries of each row (which stand together) side by side: [row, entry and hop]."""
    slot = np.arange(len(row)) - np.searchsorted(row, row)
    side_by_side = np.zeros((rows, int(slot.max(initial=-1)) + 1, values.shape[1]), dtype=values.dtype)
    side_by_side[row, slot] = values
    return side_by_side.reshape(rows, -1)
