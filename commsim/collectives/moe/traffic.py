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
    ranks = len(spread.domain)
    return np.broadcast_to(spread.copies[draw], (ranks, ranks))


def railed(spread: Spread, draw: int) -> tuple[Floats, Floats]:
    """Return copies[source, target] along the rails, and copies[forwarder, target] inside the domains.

    A token goes once to each scale-up domain that has an expert of it, to the rank of the same place there (the
    forwarder), which copies it to each rank that has one. What stays in its domain is forwarded by its own rank.
    """
    relay = _relays(spread.domain)
    ranks, domains = relay.shape
    away = np.where(np.arange(domains) == spread.domain[:, None], 0.0, spread.to_domain[draw])
    rails = np.zeros((ranks, ranks))
    np.add.at(rails, (np.arange(ranks)[:, None], relay), away)
    served = np.zeros((ranks, domains))
    np.add.at(served, (relay, np.arange(domains)), 1.0)
    inside: Floats = served[:, spread.domain] * spread.to_rank[draw]
    return rails, inside


def _relays(domain: Ints) -> Ints:
    """Which rank forwards for a source in each domain: relay[rank, domain], that of the same place, counted around."""
    order = np.argsort(domain, kind="stable")
    sizes = np.bincount(domain)
    starts = np.cumsum(sizes) - sizes
    place = np.empty(len(domain), dtype=np.int64)
    place[order] = np.arange(len(domain)) - starts[domain[order]]
    found: Ints = order[starts + place[:, None] % sizes]
    return found
