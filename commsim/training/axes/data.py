"""What do the ranks say that have batches of their own?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from commsim.collectives.kinds import ALL_GATHER, ALL_REDUCE, REDUCE_SCATTER
from commsim.errors import InputError
from commsim.training.axes.axis import Axis, Behind, Traffic, When, need_whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commsim.training.pieces import Piece
    from commsim.training.setting import Setting

_GRADIENTS, _WEIGHTS = 2, 3
AHEAD = 2.0
"""Pieces whose weights a rank holds whole at a time with stage 3: the one that runs and the one fetched ahead."""


@dataclass(frozen=True, repr=False)
class Data(Axis):
    """Batches are dealt out.

    `zero` 1 to 3 shards optimizer state, gradients, weights (Rajbhandari et al. 2020) over `shard` of the ranks, all
    when None. Fewer is hybrid sharding (Zhao et al. 2023, section 3.2.2): several shards hold the same.
    """

    zero: int = 1
    shard: int | None = None
    name: ClassVar[str] = "data"

    def __post_init__(self) -> None:
        """Refuse what is no sharding; InputError."""
        super().__post_init__()
        if isinstance(self.zero, bool) or self.zero not in range(_WEIGHTS + 1):
            raise InputError("plan: zero", self.zero, "0, 1, 2 or 3 belongs here")
        if self.shard is None:
            return
        need_whole("plan: shard", self.shard)
        if self.size % self.shard:
            raise InputError("plan: shard", self.shard, f"a divisor of the {self.size} data ranks belongs here")
        if not self.zero:
            raise InputError("plan: shard", self.shard, "it needs zero=1, 2 or 3: zero=0 shards nothing")

    def shards(self, what: int) -> bool:
        """Tell whether the optimizer (1), the gradients (2) or the weights (3) are sharded."""
        return self.zero >= what

    def traffic(self, setting: Setting, piece: Piece) -> tuple[Traffic, ...]:
        """Return the summing of the piece's gradients and, with sharding, the gathering of its weights.

        Those that hold the same weights speak: for experts they are others than for the rest.
        """
        held = {"data": float(piece.work.weights), "expert data": float(piece.work.expert_weights)}
        return tuple(one for group, weights in held.items() if weights for one in self._of(setting, group, weights))

    def _of(self, setting: Setting, group: str, weights: float) -> Iterator[Traffic]:
        """Replicas of a shard sum what they own once a step."""
        gradients, behind = weights * setting.recipe.gradient_bytes, _behind(setting)
        if not self.zero:
            yield Traffic("data", group, ALL_REDUCE, gradients, "last backward", behind)
            return
        shard = f"{group} shard"
        yield from self._scattered(setting, shard, gradients)
        yield from self._gathered(setting, shard, weights * setting.recipe.weight_bytes)
        owned = gradients / setting.plan.layout(shard).size
        yield Traffic("data", f"{group} replicas", ALL_REDUCE, owned, "last backward", behind)

    def _scattered(self, setting: Setting, group: str, size: float) -> Iterator[Traffic]:
        """Sharded gradients are scattered after each micro-batch, others once a step.

        With a pipeline, whose micro-batches overlap, stage 2 also scatters once (Llama 3 herd 2024, section 3.3.2).
        """
        each = self.shards(_WEIGHTS) or (self.shards(_GRADIENTS) and setting.plan.pipeline == 1)
        held = 1.0 if self.shards(_GRADIENTS) else 0.0
        when: When = "backward" if each else "last backward"
        yield Traffic("data", group, REDUCE_SCATTER, size, when, _behind(setting), held=held)

    def _gathered(self, setting: Setting, group: str, size: float) -> Iterator[Traffic]:
        """Sharded weights are gathered for both passes of each micro-batch, others once a step."""
        whens: tuple[When, ...] = ("forward", "backward") if self.shards(_WEIGHTS) else ("first forward",)
        held = AHEAD if self.shards(_WEIGHTS) else 0.0
        for when in whens:
            yield Traffic("data", group, ALL_GATHER, size, when, _behind(setting), held=held)


def _behind(setting: Setting) -> Behind:
    return "pass" if setting.recipe.overlap_data else "nothing"
