"""Which keys does a query see?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from commsim.training.operations import Array


@dataclass(frozen=True)
class Span:
    """Which keys a causal query sees: every `stride`-th one, the `most` latest or best of them, within its `chunk`."""

    most: int | None = None
    stride: int = 1
    chunk: int | None = None

    def keys(self, sequence: Array) -> Array:
        """Return how many keys a query sees on average.

        With n = length / stride candidates, of which at most w are seen, the mean over positions of min(position, w)
        is w - w²/2n; without a limit n/2, the causal half.
        """
        candidates = np.minimum(sequence, self.chunk or np.inf) / self.stride
        most = np.minimum(candidates, self.most or np.inf)
        seen: Array = most - most**2 / (2 * candidates)
        return seen
