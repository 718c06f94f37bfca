"""What does it load when everyone in a group sends to everyone else?

Counted, not enumerated: n ranks have n (n - 1) pairs, but a rank sees only how many others it has at each place of a
node and at each level of the machine (and, where units are wired to each other directly, in each sibling of its own).
The source's half of every way is loaded from the source; the target's half is, seen from the target, the same count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from commsim.hardware.atlas import Table
from commsim.hardware.loads import Moved, carry
from commsim.hardware.transfers import Way, longest

if TYPE_CHECKING:
    from commsim.hardware.topology import Topology

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Number = TypeVar("Number", np.int64, np.float64)
End = tuple[int, int]
"""Where others are: the level at which one meets them, and in which sibling of one's own unit (-1: whichever)."""
SOURCE, TARGET = 0, 1


def exchanged(topology: Topology, load: Floats, groups: Ints, share: float) -> Way:
    """Add to load[link] what each member of groups[group, member] sends to every other one; return the longest way.

    InputError when no path joins two members.
    """
    ends = _ends(topology)
    node, local = topology.locate(np.sort(groups, axis=1))
    others = _others(topology, node, local, ends).reshape(node.size, -1)
    first, alike = _patterns(np.column_stack([local.reshape(-1), others]))
    table, towards, way = _ways(topology, local.reshape(-1)[first], others[first], ends)
    near, weight = node.reshape(-1), np.full(node.size, share)
    for end in np.unique(towards[table.share > 0]).tolist():
        far = _sibling(topology, near, ends[end]) if end >= 0 else near
        carry(load, topology.numbering, table.only(towards == end), Moved(alike, (near, far), weight))
    return way


def _ends(topology: Topology) -> list[End]:
    """The levels of the machine, each once for every sibling unit where siblings are wired to each other."""
    wired = set(topology.numbering.span[topology.numbering.siblings > 1].tolist())
    found: list[End] = [(0, -1)]
    for level, tier in enumerate(topology.tiers, start=1):
        siblings = range(tier.units) if topology.spans[level - 1] in wired else [-1]
        found += [(level, sibling) for sibling in siblings]
    return found


def _sibling(topology: Topology, node: Ints, end: End) -> Ints:
    """A node of that sibling of each node's unit."""
    level, sibling = end
    return node // topology.spans[level] * topology.spans[level] + sibling * topology.spans[level - 1]


def _others(topology: Topology, node: Ints, local: Ints, ends: list[End]) -> Ints:
    """How many other members each member has: int[member, place in a node, end].

    The members of each group stand in the order of their nodes, so that a unit's members stand together.
    """
    found = np.zeros((node.size, topology.gpus_per_node, len(ends)), dtype=np.int64)
    inside = np.zeros(found.shape[:2], dtype=np.int64)
    inside[np.arange(node.size), local.reshape(-1)] = 1  # itself
    for number, (level, sibling) in enumerate(ends):
        span = topology.spans[level]
        unit = np.cumsum(np.diff(node // span, axis=1, prepend=-1).reshape(-1) != 0) - 1
        if sibling < 0:
            within = _counts(unit, local.reshape(-1), topology.gpus_per_node)[unit]
            found[:, :, number], inside = within - inside, within
            continue
        siblings = topology.tiers[level - 1].units
        own = node.reshape(-1) // topology.spans[level - 1] % siblings
        counts = _counts(
            unit * siblings + own, local.reshape(-1), topology.gpus_per_node, rows=(unit[-1] + 1) * siblings
        )
        found[:, :, number] = np.where(own == sibling, 0, counts[unit * siblings + sibling].T).T
        inside = _counts(unit, local.reshape(-1), topology.gpus_per_node)[unit]
    return found


def _counts(unit: Ints, local: Ints, places: int, rows: int = 0) -> Ints:
    """How many members stand at each place of each unit: int[unit, place]."""
    rows = rows or int(unit.max()) + 1
    return np.bincount(unit * places + local, minlength=rows * places).reshape(rows, places)


def _patterns(rows: Ints) -> tuple[Ints, Ints]:
    """The first row of each kind, and of which kind each row is; rows of one kind are equal."""
    # Told apart by a number, for sorting whole rows takes long; should two kinds share it, each row is its own kind.
    number = rows @ np.random.default_rng(0).integers(1 << 62, size=rows.shape[1])
    _, first, alike = np.unique(number, return_index=True, return_inverse=True)
    if (rows == rows[first[alike]]).all():
        return first, alike
    return np.arange(len(rows)), np.arange(len(rows))


def _ways(topology: Topology, local: Ints, others: Ints, ends: list[End]) -> tuple[Table, Ints, Way]:
    """All ways of a member in one row of a table, as often as there are others at their ends; and the longest way.

    Only the source's half of the ways to the others, and the target's half of the ways from them, is loaded. The second
    answer says for each hop towards which of the `ends` it goes, when it leads to a sibling unit, else -1.
    """
    row, there = np.nonzero(others)
    place, end = np.divmod(there, len(ends))
    level = np.array([level for level, _ in ends])[end]
    edges, shares, towards, longest_ways = [], [], [], []
    for side, (a, b) in ((SOURCE, (local[row], place)), (TARGET, (place, local[row]))):
        ways, way = topology.atlas.ways(a, b, level)
        half = np.where(ways.side == side, ways.share, 0.0)[way] * others[row, there][:, None].astype(np.float64)
        leads = np.where(topology.numbering.siblings[ways.edge[way]] > 1, end[:, None], -1)
        edges.append(_in_rows(row, len(local), ways.edge[way]))
        shares.append(_in_rows(row, len(local), half))
        towards.append(_in_rows(row, len(local), leads))
        longest_ways.append(longest(topology, ways))
    edge, share = np.concatenate(edges, axis=1), np.concatenate(shares, axis=1)
    none = np.zeros(len(edge))
    table = Table(edge, np.zeros_like(edge), share, np.zeros((len(edge), len(topology.kinds))), none)
    return table, np.concatenate(towards, axis=1), Way.longest(longest_ways, topology)


def _in_rows(row: Ints, rows: int, values: NDArray[Number]) -> NDArray[Number]:
    """The values[entry, hop] of the entries of each row (which stand together) side by side: [row, entry and hop]."""
    slot = np.arange(len(row)) - np.searchsorted(row, row)
    side_by_side = np.zeros((rows, int(slot.max(initial=-1)) + 1, values.shape[1]), dtype=values.dtype)
    side_by_side[row, slot] = values
    return side_by_side.reshape(rows, -1)
