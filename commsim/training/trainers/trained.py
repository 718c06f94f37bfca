"""Which model is a trainer's configuration written for?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from commsim.units import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commsim.training.model import Model


@dataclass(frozen=True)
class Trained:
    """The sizes of a model as far as a trainer's file says them: layers, hidden width, attention heads, experts."""

    layers: int | None = None
    hidden: int | None = None
    heads: int | None = None
    experts: int | None = None

    @classmethod
    def of(cls, model: Model) -> Self:
        """Return the sizes of a model that a file names instead of describing it."""
        return cls(len(model.layers), model.hidden, model.heads, _experts(model))

    def unlike(self, model: Model) -> str:
        """Return in what the file's model differs from another, "" in nothing: `56 layers, not 32; ...`."""
        return "; ".join(self._differences(model))

    def _differences(self, model: Model) -> Iterator[str]:
        known = {
            block.mixer.heads for block in model.blocks if block.mixer
        }  # a hybrid's mixers have heads of their own
        said = {"layer": self.layers, "attention head": self.heads, "expert": self.experts}
        ours = {"layer": len(model.layers), "attention head": model.heads, "expert": _experts(model)}
        if self.hidden not in {None, model.hidden}:
            yield f"a hidden size of {self.hidden:,}, not {model.hidden:,}"
        for noun, count in said.items():
            if count is not None and count != ours[noun] and not (noun == "attention head" and count in known):
                yield f"{counted(count, noun)}, not {ours[noun]:,}"


def _experts(model: Model) -> int:
    return model.experts.count if model.experts else 0
