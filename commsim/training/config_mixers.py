"""Which attention, or what in its place, does a config.json give each layer?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commsim.errors import InputError
from commsim.training.config_keys import Config
from commsim.training.layers.attention import Attention
from commsim.training.layers.compressed_attention import CompressedAttention
from commsim.training.layers.core import Span
from commsim.training.layers.delta_net import DeltaNet
from commsim.training.layers.indexer import Indexer
from commsim.training.layers.latent_attention import LatentAttention
from commsim.training.layers.mamba import Mamba

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from commsim.training.families import Family
    from commsim.training.layers.part import Mixer

_FULL, _SLIDING, _CHUNKED, _LINEAR = "full_attention", "sliding_attention", "chunked_attention", "linear_attention"


class Text(Config):
    """The table that describes a language model, what its type means, and how many layers it has."""

    def __init__(self, values: Mapping[str, Any], where: str, family: Family, layers: int) -> None:
        """Hold the table with its family."""
        super().__init__(values, where)
        self.family, self.layers = family, layers

    @property
    def hidden(self) -> int:
        """Width of the residual stream."""
        return self.count("hidden_size", "n_embd")

    @property
    def heads(self) -> int:
        """Query heads."""
        return self.count("num_attention_heads", "n_head")

    @property
    def tied(self) -> bool:
        """What the type takes for granted of the embeddings."""
        return self.family.tied


def mixers(text: Text) -> list[Mixer]:
    """Return the mixer of each layer, and last that of a prediction module."""
    if "compress_ratios" in text:
        return _compressed(text)
    if "linear_attn_config" in text:
        return _kimi_linear(text)
    makers = {_LINEAR: _delta_net, _FULL: _latent if "kv_lora_rank" in text else _attention}
    makers |= {_SLIDING: _attention, _CHUNKED: _attention}
    kinds = _kinds(text)
    unknown = next((kind for kind in kinds if kind not in makers), None)
    if unknown:
        raise InputError(f"{text.where}: layer_types", unknown, "a kind of attention that is known", among=makers)
    made = {kind: makers[kind](text, kind) for kind in dict.fromkeys(kinds)}
    return [*(made[kind] for kind in kinds), made[kinds[-1]]]


def hybrid_mixer(text: Text, letter: str) -> Mixer:
    """Return the mixer of one layer of a Nemotron-H pattern: `M` is Mamba, `*` attention."""
    return _mamba(text) if letter == "M" else _attention(text, _FULL)


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


def _attention(text: Text, kind: str) -> Attention:
    heads, family = text.heads, text.family
    spans: dict[str, Callable[[], Span]] = {
        _SLIDING: lambda: Span(most=text.count("sliding_window")),
        _CHUNKED: lambda: Span(chunk=text.count("attention_chunk_size")),
        _FULL: Span,
    }
    biased = text.flag("attention_bias") or family.bias == "all"
    norm = family.query_norm if text.flag("use_qk_norm", default=True) else "none"
    return Attention(
        heads=heads,
        kv_heads=text.count("num_key_value_heads", default=heads),
        head_dim=_head_dim(text, heads),
        span=spans[kind](),
        gate=text.flag("attn_output_gate", default=text.text("model_type") == "qwen3_next"),
        rotary=family.positions == "rotary",
        query_norm=norm,
        bias=biased or family.bias == "qkv",
        output_bias=biased,
        sinks=family.sinks,
        dropout=bool(text.values.get("attention_dropout", 0) or text.values.get("attn_pdrop", 0)),
    )


def _head_dim(text: Text, heads: int) -> int:
    """Return the width of a head; without a key for it, hidden / heads, which must divide."""
    names = "attention_head_dim", "head_dim"
    if not any(name in text for name in names) and text.hidden % heads:
        raise InputError(f"{text.where}: num_attention_heads", heads, f"a divisor of hidden_size {text.hidden}")
    return text.count(*names, default=text.hidden // heads)


def _indexer(text: Text) -> Indexer | None:
    if "index_topk" not in text:
        return None
    return Indexer(text.count("index_n_heads"), text.count("index_head_dim"), text.count("index_topk"))


def _latent(text: Text, kind: str) -> LatentAttention:
    del kind
    return LatentAttention(
        heads=text.heads,
        kv_rank=text.count("kv_lora_rank"),
        nope_dim=text.count("qk_nope_head_dim"),
        rope_dim=text.count("qk_rope_head_dim", least=0),
        value_dim=text.count("v_head_dim"),
        query_rank=text.count("q_lora_rank", default=0, least=0) or None,
        gate=text.flag("mla_use_output_gate"),
        indexer=_indexer(text),
    )


def _delta_net(text: Text, kind: str) -> DeltaNet:
    del kind
    return DeltaNet(
        key_heads=text.count("linear_num_key_heads"),
        value_heads=text.count("linear_num_value_heads"),
        key_dim=text.count("linear_key_head_dim"),
        value_dim=text.count("linear_value_head_dim"),
        conv=text.count("linear_conv_kernel_dim"),
    )


def _kimi_linear(text: Text) -> list[Mixer]:
    """Return Kimi's delta and latent attention; its layers are counted from 1."""
    table = text.table("linear_attn_config")
    heads, width = table.count("num_heads"), table.count("head_dim")
    rank = None if table.flag("use_full_rank_gate") else width
    linear: Mixer = DeltaNet(
        heads, heads, width, width, table.count("short_conv_kernel_size"), decay_rank=width, gate_rank=rank
    )
    latent: Mixer = _latent(text, _FULL)
    linear_layers, full_layers = set(table.counts("kda_layers")), set(table.counts("full_attn_layers"))
    if linear_layers | full_layers != set(range(1, text.layers + 1)) or linear_layers & full_layers:
        expected = f"kda_layers and full_attn_layers must share out layers 1 to {text.layers}"
        raise InputError(table.where, sorted(linear_layers ^ full_layers)[-1:], expected)
    return [linear if number in linear_layers else latent for number in range(1, text.layers + 1)] + [latent]


def _compressed(text: Text) -> list[Mixer]:
    """Return DeepSeek-V4's attention: a ratio for each layer, 0 being none; the pool is indexed at the smallest."""
    ratios = text.counts("compress_ratios", length=text.layers)
    indexed = min((ratio for ratio in ratios if ratio), default=0)
    made: dict[int, Mixer] = {ratio: _compressed_at(text, ratio, indexed=ratio == indexed > 0) for ratio in set(ratios)}
    layers = [made[ratio] for ratio in ratios[: text.layers + 1]]
    return layers if len(layers) > text.layers else [*layers, layers[-1]]


def _compressed_at(text: Text, ratio: int, *, indexed: bool) -> CompressedAttention:
    return CompressedAttention(
        heads=text.heads,
        head_dim=_head_dim(text, text.heads),
        query_rank=text.count("q_lora_rank"),
        window=text.count("sliding_window"),
        output_groups=text.count("o_groups"),
        output_rank=text.count("o_lora_rank"),
        stride=ratio,
        indexer=_indexer(text) if indexed else None,
    )


def _mamba(text: Text) -> Mamba:
    return Mamba(
        heads=text.count("mamba_num_heads"),
        head_dim=text.count("mamba_head_dim"),
        state=text.count("ssm_state_size"),
        groups=text.count("n_groups"),
        conv=text.count("conv_kernel"),
        conv_bias=text.flag("use_conv_bias", default=True),
    )
