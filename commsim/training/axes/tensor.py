"""What do the ranks that share each matrix say?"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from commsim.collectives.kinds import ALL_GATHER, ALL_REDUCE, REDUCE_SCATTER, Collective
from commsim.training.axes.axis import Axis, Behind, Traffic, When

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commsim.training.pieces import Join, Piece
    from commsim.training.setting import Setting

_Said = tuple[Collective, int, When, Behind]
FP32 = 4.0
"""Bytes of the statistics of the cross entropy."""


@dataclass(frozen=True, repr=False)
class Tensor(Axis):
    """Each matrix is split (Shoeybi et al. 2019); with `sequence` the rest is split along the sequence as well.

    With sequence parallelism an all-reduce becomes reduce-scatter and all-gather (Korthikanti et al. 2022, section
    4.2.2).
    """

    sequence: bool = True
    name: ClassVar[str] = "tensor"

    def traffic(self, setting: Setting, piece: Piece) -> tuple[Traffic, ...]:
        """Return, for each part of the piece, what joins its input and sums its output."""
        joins = Counter(piece.joins).items()
        return tuple(one for join, times in joins for one in self._around(setting, join, times))

    def _around(self, setting: Setting, join: Join, times: int) -> Iterator[Traffic]:
        for op, width, when, behind in self._said(setting, join):
            held = 1.0 if self.sequence else 0.0
            if width:
                size = setting.bytes_of(width)
                again = join.repeated and not (join.stops and op is not ALL_GATHER)
                yield Traffic("tensor", "tensor", op, size, when, behind, times, again, held)
        if join.statistics:
            size, count = setting.shard.tokens * FP32, float(times * join.statistics)
            yield Traffic("tensor", "tensor", ALL_REDUCE, size, "forward", count=count)

    def _said(self, setting: Setting, join: Join) -> tuple[_Said, ...]:
        """What is said at a join.

        Backward, Megatron gathers the input again behind the matmul of the input's gradient, and scatters (or, without
        sequence parallelism, sums) that gradient behind the matmul of the weight's, since 2022. The rest waits, unless
        tensor overlap hides it behind its own matmul.
        """
        behind: Behind = "matmul" if setting.recipe.overlap_tensor else "nothing"
        backward: Behind = "columns" if setting.recipe.overlap_backward else "nothing"
        if not self.sequence:
            return (
                (ALL_REDUCE, join.scattered, "forward", "nothing"),
                (ALL_REDUCE, join.gathered, "backward", backward),
            )
        return (
            (ALL_GATHER, join.gathered, "forward", behind),
            (REDUCE_SCATTER, join.scattered, "forward", behind),
            (ALL_GATHER, join.scattered, "backward", behind),
            (ALL_GATHER, join.gathered, "backward", backward),
            (REDUCE_SCATTER, join.gathered, "backward", backward),
        )
