"""What does it load when everyone in a group sends to everyone else?

Counted, not enumerated: n ranks have n (n - 1) pairs, but a rank sees only how many others it has at each place of a node
and at each level of the machine. The source's half of every route is loaded from the source; the target's half is, seen
from the target, the same count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from commsim.hardware import routing

if TYPE_CHECKING:
    from commsim.hardware.topology import Topology

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
SOURCE, TARGET = 0, 1


def exchange(topology: Topology, groups: Ints, share: float) -> tuple[Floats, Floats, bool]:
    """Return load[link], hops[kind] and whether it leaves the machine, when every member of each group sends `share` to every other member.

    `groups` is int[group, member]. Exact for every group whose machine is tiled; a machine whose units are wired to each
    other directly (`peers`) depends on both ends of a pair, so there the pairs are enumerated.
    """
    if topology.numbering.siblings.max(initial=1) > 1:
        return _enumerated(topology, groups, share)
    node, local = topology.locate(groups)
    others = _others(topology, node, local)
    member, place, level = np.nonzero(others)
    weight = others[member, place, level] * share
    here, at = local.reshape(-1)[member], node.reshape(-1)[member]
    load, hops, network = np.zeros(topology.numbering.total), np.zeros(len(topology.kinds)), False
    for side, ends in ((SOURCE, (here, place)), (TARGET, (place, here))):
        table, which = _half(topology, (*ends, level), side)
        edge = table.edge[which]
        links = topology.numbering.offset[edge] + at[:, None] // topology.numbering.span[edge]
        weights = table.share[which] * weight[:, None]
        load += np.bincount(links.ravel(), weights=weights.ravel(), minlength=topology.numbering.total)
        hops = max(hops, *table.hops.astype(np.float64), key=lambda h: float(h @ _latency(topology)))
        network = network or bool(table.network.any())
    return load, hops, network


def _others(topology: Topology, node: Ints, local: Ints) -> Ints:
    """How many other members each member has: int[member, place in a node, level], levels from the same node upwards."""
    places, levels = topology.gpus_per_node, len(topology.spans) + 1
    inside = np.zeros((node.size, places, levels), dtype=np.int64)
    group = np.arange(len(node))[:, None] * topology.nodes
    for level in range(levels):
        unit = node // topology.spans[level] if level < levels - 1 else np.zeros_like(node)
        _, number = np.unique((group + unit).reshape(-1), return_inverse=True)
        counts = np.bincount(number * places + local.reshape(-1), minlength=(number.max() + 1) * places)
        inside[:, :, level] = counts.reshape(-1, places)[number]
    inside[:, :, 1:] -= inside[:, :, :-1].copy()
    inside[np.arange(node.size), local.reshape(-1), 0] -= 1
    return inside


def _half(topology: Topology, key: tuple[Ints, Ints, Ints], side: int) -> tuple[routing.Table, Ints]:
    """The distinct routes, of each only what lies on one side, and which of them each row takes."""
    shape = (topology.gpus_per_node, topology.gpus_per_node, len(topology.spans) + 1)
    distinct, which = np.unique(np.ravel_multi_index(key, shape), return_inverse=True)
    paths = [routing.between(topology.cell, *map(int, row)) for row in zip(*np.unravel_index(distinct, shape))]
    halves = [routing.on_side(path, side) for path in paths]
    return routing.padded(halves, topology.numbering.order, topology.numbering.kind_index), which


def _enumerated(topology: Topology, groups: Ints, share: float) -> tuple[Floats, Floats, bool]:
    pairs = ~np.eye(groups.shape[1], dtype=bool)
    a, b = np.nonzero(pairs)
    routes = topology.route(groups[:, a].reshape(-1), groups[:, b].reshape(-1))
    weights = (routes.share * share).ravel()
    load = np.bincount(routes.links.ravel(), weights=weights, minlength=topology.numbering.total)
    longest = int(np.argmax(routes.hops @ _latency(topology)))
    return load, routes.hops[longest].astype(np.float64), bool(routes.network.any())


def _latency(topology: Topology) -> Floats:
    return np.array([float(link.latency) for link in topology.kinds])
