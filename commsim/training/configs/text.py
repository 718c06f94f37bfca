"""Which part of a config.json describes the language model, and what is known of its type?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commsim.errors import InputError
from commsim.training.configs.families import FAMILIES, NO_DECODERS, OTHER_MACHINES, PLAIN_ACTIVATIONS, Family
from commsim.training.configs.keys import Config
from commsim.training.model import MOST_LAYERS

if TYPE_CHECKING:
    from collections.abc import Mapping

_NESTED = ("text_config", "language_config", "llm_config")


class Text(Config):
    """The table that describes a language model, what its type means, and how many layers it has."""

    def __init__(self, values: Mapping[str, Any], where: str, family: Family, layers: int) -> None:
        """Hold the table with its family."""
        super().__init__(values, where)
        self.family, self.layers = family, layers

    @property
    def kind(self) -> str:
        """The model type."""
        return self.text("model_type")

    @property
    def hidden(self) -> int:
        """Width of the residual stream."""
        return self.count("hidden_size", "n_embd")

    @property
    def heads(self) -> int:
        """Query heads."""
        return self.count("num_attention_heads", "n_head")

    @property
    def head_dim(self) -> int:
        """Width of a head; without a key for it hidden / heads, which must divide."""
        names = "attention_head_dim", "head_dim"
        if not any(name in self for name in names) and self.hidden % self.heads:
            expected = f"a divisor of hidden_size {self.hidden} belongs here"
            raise InputError(f"{self.where}: num_attention_heads", self.heads, expected)
        return self.count(*names, default=self.hidden // self.heads)


def text_of(config: Config) -> Text:
    """Return the part of the table that describes the language model.

    Raises InputError for a model type that is no decoder, and for an unknown one whose keys change its layers.
    """
    nested = next((name for name in _NESTED if name in config), None)
    text = config.table(nested) if nested else config
    kind = text.text("model_type")
    if kind in NO_DECODERS or text.flag("is_encoder_decoder"):
        raise InputError(f"{config.where}: model_type", kind, "a decoder language model belongs here")
    layers = text.count("num_hidden_layers", "n_layer", most=MOST_LAYERS)
    if kind in FAMILIES:
        return Text(text.values, text.where, FAMILIES[kind], layers)
    other = sorted(key for key in text.values if key.startswith(OTHER_MACHINES))
    if other:
        raise InputError(
            f"{config.where}: model_type", kind, f"its layers are not known, and {other[0]!r} changes them"
        )
    return Text(text.values, text.where, Family(gated=text.text("hidden_act") not in PLAIN_ACTIVATIONS), layers)
