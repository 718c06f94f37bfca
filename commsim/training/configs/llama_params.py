"""Which model does a params.json, as Llama and Mistral were first published, describe?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commsim.errors import InputError
from commsim.training.block import Block, stack
from commsim.training.layers.attention import Attention
from commsim.training.layers.experts import Experts
from commsim.training.layers.feed_forward import FeedForward
from commsim.training.layers.span import Span
from commsim.training.model import MOST, MOST_LAYERS, Model

if TYPE_CHECKING:
    from commsim.training.configs.keys import Config
    from commsim.training.layers.part import Part

_MULTIPLE_OF = 256
"""What Llama's own code takes when the file says nothing."""


def describes_llama(config: Config) -> bool:
    """Tell whether the table has the keys of a params.json."""
    return "dim" in config and "n_layers" in config


def describe_llama(config: Config, name: str) -> Model:
    """Return the model that the table describes. InputError when it cannot be read, or leaves the vocabulary open."""
    if "moe_args" in config:
        raise InputError(f"{config.where}: moe_args", config.values["moe_args"], "give its Hugging Face config.json")
    if config.values.get("vocab_size") == -1:
        raise InputError(f"{config.where}: vocab_size", -1, "the size of the tokenizer's vocabulary (Llama 2: 32000)")
    heads, hidden = config.count("n_heads"), config.count("dim")
    span = Span(most=config.count("sliding_window")) if "sliding_window" in config else Span()
    attention = Attention(
        heads=heads,
        kv_heads=config.count("n_kv_heads", default=heads),
        head_dim=config.count("head_dim", default=max(1, hidden // heads)),
        span=span,
    )
    blocks, kinds = stack([Block.of(attention, _feed_forward(config))] * config.count("n_layers", most=MOST_LAYERS))
    vocabulary = config.count("vocab_size")
    return Model(name, config.where, hidden, vocabulary, blocks, kinds)


def _feed_forward(config: Config) -> Part:
    width = config.count("hidden_dim", default=0, least=0) or _width(config)
    if "moe" not in config:
        return FeedForward(width)
    moe = config.table("moe")
    return Experts(moe.count("num_experts"), moe.count("num_experts_per_tok"), width)


def _width(config: Config) -> int:
    """Return the width as Llama's code computes it: two thirds of 4 dim, times a factor, rounded up to a multiple."""
    factor = config.values.get("ffn_dim_multiplier", 1.0)
    if isinstance(factor, bool) or not isinstance(factor, int | float) or not 0 < factor <= MOST:
        raise InputError(f"{config.where}: ffn_dim_multiplier", factor, "a number above 0 belongs here")
    multiple = config.count("multiple_of", default=_MULTIPLE_OF)
    width = int(factor * (8 * config.count("dim") // 3))
    return max(1, -(-width // multiple)) * multiple
