"""Which plans does no other beat in time and in memory?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Places = NDArray[np.intp]


def front(seconds: Floats, memory: Floats) -> Places:
    """Return the plans that none beats, by number, the quickest first: each is slower and smaller than the one before.

    NaN seconds stand for plans that are beaten.
    """
    known = np.flatnonzero(np.isfinite(seconds))
    order = known[np.lexsort((memory[known], seconds[known]))]
    least = np.minimum.accumulate(memory[order])
    smaller = np.append(True, memory[order][1:] < least[:-1]) if len(order) else np.zeros(0, bool)
    best: Places = order[smaller]
    return best


def beaten(bound: Floats, memory: Floats, known: tuple[Floats, Floats]) -> NDArray[np.bool_]:
    """Return whether some plan with known seconds and memory is as quick as each plan can be, and no larger.

    `bound` is what the plans take at least; `known` are the seconds and memories of a front.
    """
    seconds, sizes = (one[::-1] for one in known)  # the smallest first, which is the slowest
    place = np.searchsorted(sizes, memory, side="right") - 1
    quickest = np.append(seconds, np.inf)[place]  # -1: none is so small
    found: NDArray[np.bool_] = quickest <= bound
    return found
