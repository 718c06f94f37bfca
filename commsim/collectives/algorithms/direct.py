"""How does everyone speak to everyone, at once or one after another?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commsim.collectives.algorithms.table import Group, algorithm
from commsim.collectives.kinds import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    BROADCAST,
    REDUCE,
    REDUCE_SCATTER,
    Collective,
)
from commsim.collectives.schedule import Phase, Round, Schedule, everyone, rounds, transfer
from commsim.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


@algorithm("direct", ALL_TO_ALL, ALL_GATHER, REDUCE_SCATTER, ALL_REDUCE, BROADCAST, REDUCE)
def direct(op: Collective, group: Group) -> Schedule:
    """Every rank sends every other its part at once; all-reduce does so twice (reduce-scatter, then all-gather).

    Broadcast and reduce: place 0 sends everything to, or receives it from, each other one.
    """
    n = group.size
    if op in (BROADCAST, REDUCE):
        others = np.arange(1, n)
        return rounds(transfer(0, others, 1.0) if op is BROADCAST else transfer(others, 0, 1.0))
    return Schedule((Phase((Round((everyone(n, 1 / n),), 2 if op is ALL_REDUCE else 1),)),))


@algorithm("one_shot", ALL_REDUCE)
def one_shot(_: Collective, group: Group) -> Schedule:
    """Every rank sends every other its whole buffer and reduces for itself: the latency of one message."""
    return rounds(everyone(group.size, 1.0))


MOST_WRITTEN = 1024
"""Ranks of a pairwise exchange at most: its n - 1 rounds of n messages are written out, 6 GB for 16,384 ranks."""


@algorithm(
    "pairwise",
    ALL_TO_ALL,
    REDUCE_SCATTER,
    serves=lambda group: group.size <= MOST_WRITTEN,
    needs=f"at most {MOST_WRITTEN} ranks",
    instead="direct",
)
def pairwise(_: Collective, group: Group) -> Schedule:
    """One partner a round, n - 1 rounds: places with flipped bits, or so many places on unless n is a power of two.

    Thakur, Rabenseifner and Gropp 2005, section 4 (all-to-all, reduce-scatter).
    """
    n, places = group.size, np.arange(group.size)
    flipped = n & (n - 1) == 0
    partners = (places ^ step if flipped else (places + step) % n for step in range(1, n))
    return rounds(*(transfer(places, partner, 1 / n) for partner in partners))


def all_to_all_v(matrix: Floats) -> Schedule:
    """Return the schedule in which each place sends every other its own amount, all at once.

    `matrix`[source, target] is in parts of the size that the price will be multiplied with (bytes, for a size of 1 B).
    What a rank sends to itself moves nothing. InputError when it is no square of finite amounts that are not negative.
    """
    source, target = np.nonzero(_amounts(matrix))
    return rounds(transfer(source, target, matrix[source, target]))


def _amounts(matrix: Floats) -> Floats:
    """The matrix without its diagonal; InputError when it is none."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:  # noqa: PLR2004
        raise InputError("all_to_all_v: matrix", matrix.shape, "a square matrix [source, target] belongs here")
    if not np.isfinite(matrix).all() or matrix.min() < 0:
        raise InputError(
            "all_to_all_v: matrix", float(matrix.min()), "finite amounts that are not negative belong here"
        )
    return np.where(np.eye(len(matrix), dtype=bool), 0.0, matrix)
