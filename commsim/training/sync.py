"""What do the ranks say that hold the same weights, and which weights does each of them hold?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from commsim.training.axes import Data
from commsim.training.operations import Work
from commsim.training.passes import passes
from commsim.training.pieces import Piece
from commsim.training.profile import stacked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commsim.training.axes import When
    from commsim.training.operations import Array
    from commsim.training.passes import Machine, Spoken
    from commsim.training.plan import Plan

Floats = NDArray[np.float64]
ONCE: tuple[When, ...] = ("first forward", "last backward", "step")
SHARDED_FROM = {"weights": 3, "gradients": 2, "optimizer": 1}
"""The stage of ZeRO from which on each is sharded (Rajbhandari et al. 2020, figure 1)."""
SPEAKS = slice(7, 11)
"""Rows of `Sync.values` that tell whether a piece speaks at all."""
_SILENT = Piece("", Work((), (), 0.0), ("", ""))


@dataclass(frozen=True, eq=False)
class Sync:
    """What plans that hold the same weights alike have in common: `values`[number, piece, plan] in s, and weights.

    `shares`[part, group, plan] is the share that a rank holds of the weights, the gradients and the optimizer's state,
    of the dense weights and of the experts'. `buffers`[plan]: the memory for what is said, B.
    """

    values: Floats
    shares: Floats
    buffers: Floats

    @property
    def exposed(self) -> Floats:
        """What each micro-batch waits for, [pass, piece, plan], s."""
        return self.values[0:2]

    @property
    def later(self) -> Floats:
        """What is said in each micro-batch behind everything that the chunk computes, [pass, piece, plan], s."""
        return self.values[2:4]

    @property
    def once(self) -> Floats:
        """What is said once a step at each of `ONCE`, [when, piece, plan], s."""
        return self.values[4:7]

    @property
    def speaks(self) -> Floats:
        """How many pieces say something at the first forward and at the last backward pass, [when, piece, plan]."""
        return self.values[7:9]

    @property
    def speaks_later(self) -> Floats:
        """How many pieces say something `later`, [pass, piece, plan]."""
        return self.values[9:11]

    @property
    def weights(self) -> Floats:
        """Dense weights and those of experts, [group, piece, plan]."""
        return self.values[11:13]

    def of(self, plans: NDArray[np.intp]) -> Sync:
        """Return the same of these plans, numbers of the last axis."""
        return Sync(self.values.take(plans, axis=-1), self.shares.take(plans, axis=-1), self.buffers[plans])


def sync(
    machine: Machine, plan: Plan, pieces: Sequence[Piece], said: Sequence[Sequence[Spoken]], buffers: Array = 0.0
) -> Sync:
    """Return what the pieces' weights cause: `said` is what each of them says along the data axis and once a step."""
    rows = [_numbers(machine, *both) for both in zip(pieces, said)]
    sizes = [plan.layout(f"{group} shard").size for group in ("data", "expert data")]
    axis = plan.axis(Data)
    shares = [[1 / size if axis.shards(stage) else 1.0 for size in sizes] for stage in SHARDED_FROM.values()]
    return Sync(stacked(rows), np.array(shares)[:, :, None], np.atleast_1d(buffers))


def _numbers(machine: Machine, piece: Piece, said: Sequence[Spoken]) -> list[Array]:
    """The rows of `Sync.values`: data parallelism hides behind whole passes or behind nothing, so needs no compute."""
    both = passes(machine, _SILENT, said)
    later = [one.later.get("data", 0.0) for one in both]
    once = [sum((one.seconds for one in said if one.traffic.when == when), 0.0) for when in ONCE]
    speaks = [float(any(one.traffic.when == when for one in said)) for when in ONCE[:2]]
    return [
        *(one.exposed.get("data", 0.0) for one in both),
        *later,
        *once,
        *speaks,
        *((np.asarray(one) > 0).astype(float) for one in later),
        *(piece.work.weights, piece.work.expert_weights),
    ]
