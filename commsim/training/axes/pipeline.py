"""What do the stages of a pipeline say?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from commsim.collectives.kinds import ALL_REDUCE, SEND_RECV
from commsim.errors import InputError
from commsim.training.axes.axis import Axis, Traffic, need_whole

if TYPE_CHECKING:
    from commsim.training.pieces import Piece
    from commsim.training.setting import Setting


@dataclass(frozen=True, repr=False)
class Pipeline(Axis):
    """Layers are split into stages; each stage holds `virtual` chunks of layers (Narayanan et al. 2021).

    `layers` says how many layers each chunk has, in the order of the model; without it they are spread (see `chunks`).
    """

    virtual: int = 1
    layers: tuple[int, ...] = ()
    name: ClassVar[str] = "pipeline"

    def __post_init__(self) -> None:
        """Refuse what is no pipeline; InputError."""
        super().__post_init__()
        need_whole("plan: virtual stages", self.virtual)
        if self.size == 1 and self.virtual > 1:
            raise InputError("plan: virtual stages", self.virtual, "1 belongs here: there is only one pipeline stage")
        for layers in self.layers:
            need_whole("plan: pipeline: layers", layers, least=0)
        if self.layers and len(self.layers) != self.chunks:
            expected = f"one number of layers for each of {self.chunks} chunks belongs here"
            raise InputError("plan: pipeline: layers", self.layers, expected)

    @property
    def chunks(self) -> int:
        """Chunks of layers in all."""
        return self.size * self.virtual

    def traffic(self, setting: Setting, piece: Piece) -> tuple[Traffic, ...]:
        """Return the summing of the gradients of weights that the first and the last stage both hold, once a step.

        Between chunks the pipeline speaks besides (see `message`).
        """
        if not piece.tied:
            return ()
        return (Traffic("pipeline", "ends", ALL_REDUCE, piece.tied * setting.recipe.gradient_bytes, "step"),)

    def message(self, setting: Setting) -> Traffic:
        """Return the activations that go from one chunk of layers to the next, one rank's part of them."""
        streams = max(block.streams for block in setting.model.blocks)
        size = setting.bytes_of(setting.model.hidden * streams) / (setting.plan.tensor if setting.plan.sequence else 1)
        return Traffic("pipeline", "pipeline", SEND_RECV, size, "message", held=2.0)
