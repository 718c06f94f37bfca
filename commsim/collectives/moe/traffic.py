"""Who sends how much to whom, for one token of one byte on each rank?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from commsim.collectives.moe.routing import Spread

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def scattered(spread: Spread, draw: int) -> Floats:
    """Return copies[source, target] when each copy of a token goes straight to its expert's rank."""
    ranks = len(spread.owner)
    return np.broadcast_to(spread.copies[draw], (ranks, ranks))


def railed(spread: Spread, draw: int) -> tuple[Floats, Floats]:
    """Return copies[source, target] along the rails, and copies[forwarder, target] inside the nodes.

    A token goes once to each node that has an expert of it, to the rank of the same place there (the forwarder), which
    copies it to each rank that has one. Tokens that stay in their node are forwarded by their own rank.
    """
    relay = _relays(spread.owner)
    ranks, nodes = relay.shape
    away = np.where(np.arange(nodes) == spread.owner[:, None], 0.0, spread.to_node[draw])
    rails = np.zeros((ranks, ranks))
    np.add.at(rails, (np.arange(ranks)[:, None], relay), away)
    served = np.zeros((ranks, nodes))
    np.add.at(served, (relay, np.arange(nodes)), 1.0)
    inside: Floats = served[:, spread.owner] * spread.to_rank[draw]
    return rails, inside


def _relays(owner: Ints) -> Ints:
    """Which rank forwards for a source in each node: relay[rank, node], that of the same place, counted around."""
    order = np.argsort(owner, kind="stable")
    sizes = np.bincount(owner)
    starts = np.cumsum(sizes) - sizes
    place = np.empty(len(owner), dtype=np.int64)
    place[order] = np.arange(len(owner)) - starts[owner[order]]
    found: Ints = order[starts + place[:, None] % sizes]
    return found
