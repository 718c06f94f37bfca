"""What do the ranks that share each sequence say?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from commsim.collectives.kinds import ALL_GATHER, REDUCE_SCATTER
from commsim.errors import InputError
from commsim.training.axes.axis import Axis, Behind, Traffic

if TYPE_CHECKING:
    from commsim.training.pieces import Piece
    from commsim.training.setting import Setting

BLOCKS = 2.0
"""Blocks of keys and values that a ring holds at a time: one is used while the next arrives."""


@dataclass(frozen=True, repr=False)
class Context(Axis):
    """The sequence is split; attention needs the keys and values of the others.

    `by` is how they travel: `ring` passes them round behind the attention (Liu et al. 2023), `all_gather` collects them
    before it (Llama 3 herd 2024, section 3.3.2).
    """

    by: Literal["ring", "all_gather"] = "ring"
    name: ClassVar[str] = "context"

    def __post_init__(self) -> None:
        """Refuse another way to exchange keys and values; InputError."""
        super().__post_init__()
        if self.by not in {"ring", "all_gather"}:
            raise InputError("plan: context: by", self.by, "no such way", among=("ring", "all_gather"))

    def traffic(self, setting: Setting, piece: Piece) -> tuple[Traffic, ...]:
        """Return the gathering of keys and values, and backward that again and the summing of their gradients."""
        if not piece.exchanged:
            return ()
        size = setting.bytes_of(piece.exchanged) * self.size
        behind: Behind = "attention" if self.by == "ring" else "nothing"
        held = BLOCKS / self.size if self.by == "ring" else 1.0
        again = bool(piece.recomputed & {"core_attn", "layer"})
        return (
            Traffic("context", "context", ALL_GATHER, size, "forward", behind, repeated=again, held=held),
            Traffic("context", "context", ALL_GATHER, size, "backward", behind, held=held),
            Traffic("context", "context", REDUCE_SCATTER, size, "backward", behind, held=held),
        )
