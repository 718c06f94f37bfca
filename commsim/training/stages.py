"""How long does each chunk of the pipeline take with one micro-batch, and what does it expose?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from commsim.training.axes import AXES
from commsim.training.overlap import exposed
from commsim.training.profile import SUMMED, Profile
from commsim.training.sync import Sync

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_DATA = list(AXES).index("data")


@dataclass(frozen=True, eq=False)
class Stages:
    """The forward and backward pass of every kind of chunk for one micro-batch, s, one entry a plan last.

    compute[pass, kind, plan]; exposed[axis, pass, kind, plan], in the order of AXES; weights[kind, plan], the part of
    the backward compute that gives the gradients of weights.
    """

    compute: Floats
    exposed: Floats
    weights: Floats

    @cached_property
    def seconds(self) -> Floats:
        """Everything, [pass, kind, plan]."""
        total: Floats = self.compute + self.exposed.sum(axis=0)
        return total


def stages(kinds: Ints, profile: Profile, sync: Sync) -> Stages:
    """Return the passes of kinds of chunk, of which each has so many of each piece: kinds[kind, piece]."""
    held = kinds.astype(float)
    whole = Profile(held @ profile.values[:SUMMED], profile.buffers)
    said = Sync(held @ sync.values, sync.shares, sync.buffers)
    adds, later = whole.exposed.copy(), whole.later.copy()
    adds[_DATA] += said.exposed
    later[_DATA] += said.later
    return Stages(whole.compute, adds + _stuck_out(later, said.speaks_later, whole.free), whole.weights)


def _stuck_out(later: Floats, pieces: Floats, free: Floats) -> Floats:
    """What is exposed [axis, pass, kind, plan] of what is said behind whole passes.

    Axes hide one after another in the order of AXES. Of weights and gradients those of one of the `pieces`[pass, kind,
    plan] that speak stick out at least: the first weights come before any compute, the last gradients after it.
    """
    found = np.zeros_like(later)
    for number, seconds in enumerate(later):
        if seconds.any():
            found[number] = exposed(seconds, free)
            free = np.maximum(free - seconds, 0.0)
    found[_DATA] = np.maximum(found[_DATA], later[_DATA] / np.maximum(pieces, 1))
    return found
