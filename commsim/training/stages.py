"""How long does each chunk of the pipeline take with one micro-batch, and what does it expose?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from commsim.training.axes import AXES
from commsim.training.overlap import exposed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from commsim.training.chunks import Chunks
    from commsim.training.passes import Pass

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Stages:
    """The forward and backward pass of every chunk for one micro-batch, s.

    compute[pass, chunk]; exposed[axis, pass, chunk], in the order of AXES; weights[chunk], the part of the backward
    compute that gives the gradients of weights.
    """

    compute: Floats
    exposed: Floats
    weights: Floats

    @cached_property
    def seconds(self) -> Floats:
        """Everything, [pass, chunk]."""
        total: Floats = self.compute + self.exposed.sum(axis=0)
        return total


def stages(chunks: Chunks, passes: Sequence[tuple[Pass, Pass]]) -> Stages:
    """Return the passes of the chunks from the forward and backward pass of each of their pieces."""
    counts = chunks.counts.T.astype(float)
    compute = np.array([[one.compute for one in both] for both in passes]).T @ counts
    free = np.array([[one.free for one in both] for both in passes]).T @ counts
    weights = np.array([backward.weights for _, backward in passes]) @ counts
    alone = _by_axis([[one.exposed for one in both] for both in passes]) @ counts
    later = _by_axis([[one.later for one in both] for both in passes])
    return Stages(compute, alone + _stuck_out(later @ counts, (later > 0) @ counts, free), weights)


def _by_axis(values: Sequence[Sequence[Mapping[str, float]]]) -> Floats:
    """The values [piece][pass] of each axis as [axis, pass, piece]."""
    return np.array([[[one.get(axis, 0.0) for one in both] for both in values] for axis in AXES]).swapaxes(1, 2)


def _stuck_out(later: Floats, pieces: Ints, free: Floats) -> Floats:
    """What is exposed [axis, pass, chunk] of what is said behind whole passes, by so many pieces of each chunk.

    Axes hide one after another in the order of AXES. Of weights and gradients those of one piece stick out at least:
    the first weights come before any compute, the last gradients after it.
    """
    found = np.zeros_like(later)
    for number, (axis, seconds) in enumerate(zip(AXES, later)):
        found[number] = exposed(seconds, free)
        if axis == "data":
            found[number] = np.maximum(found[number], seconds / np.maximum(pieces[number], 1))
        free = np.maximum(free - seconds, 0.0)
    return found
