"""Which attention, or what in its place, does a config.json give each layer?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commsim.errors import InputError
from commsim.training.configs.attention import attention, compressed, latent
from commsim.training.configs.recurrent import delta_net, kimi_linear, mamba
from commsim.training.layers.span import Span

if TYPE_CHECKING:
    from collections.abc import Callable

    from commsim.training.configs.text import Text
    from commsim.training.layers.part import Mixer

_FULL, _SLIDING, _CHUNKED, _LINEAR = "full_attention", "sliding_attention", "chunked_attention", "linear_attention"
_MAKERS: dict[str, Callable[[Text], Mixer]] = {
    _FULL: lambda text: latent(text) if "kv_lora_rank" in text else attention(text, Span()),
    _SLIDING: lambda text: attention(text, Span(most=text.count("sliding_window"))),
    _CHUNKED: lambda text: attention(text, Span(chunk=text.count("attention_chunk_size"))),
    _LINEAR: delta_net,
}


def mixers(text: Text) -> list[Mixer]:
    """Return the mixer of each layer, and last that of a prediction module."""
    if "compress_ratios" in text:
        return compressed(text)
    if "linear_attn_config" in text:
        return kimi_linear(text, latent(text))
    kinds = _kinds(text)
    unknown = next((kind for kind in kinds if kind not in _MAKERS), None)
    if unknown:
        raise InputError(f"{text.where}: layer_types", unknown, "a kind of attention that is known", among=_MAKERS)
    made = {kind: _MAKERS[kind](text) for kind in dict.fromkeys(kinds)}
    return [*(made[kind] for kind in kinds), made[kinds[-1]]]


def hybrid_mixer(text: Text, letter: str) -> Mixer:
    """Return the mixer of one layer of a Nemotron-H pattern: `M` is Mamba, `*` attention."""
    return mamba(text) if letter == "M" else attention(text, Span())


def _kinds(text: Text) -> tuple[str, ...]:
    """Return the kind of attention of each layer: as listed, or by the keys that model types have for it."""
    listed = text.texts("layer_types", text.layers)
    if listed:
        return listed
    every = text.count("sliding_window_pattern", default=text.family.window_every, least=0)
    chunked = "attention_chunk_size" in text
    limited = _CHUNKED if chunked else _SLIDING
    windowed = chunked or ("sliding_window" in text and text.flag("use_sliding_window", default=True))
    first = text.count("max_window_layers", default=0, least=0) if "use_sliding_window" in text else 0
    return tuple(
        limited if windowed and number >= first and not (every and (number + 1) % every == 0) else _FULL
        for number in range(text.layers)
    )
