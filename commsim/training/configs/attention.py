"""Which attention do the keys of a config.json describe?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commsim.training.layers.attention import Attention
from commsim.training.layers.compressed_attention import CompressedAttention
from commsim.training.layers.indexer import Indexer
from commsim.training.layers.latent_attention import LatentAttention

if TYPE_CHECKING:
    from commsim.training.configs.text import Text
    from commsim.training.layers.part import Mixer
    from commsim.training.layers.span import Span


def attention(text: Text, span: Span) -> Attention:
    """Return the attention whose queries see that span."""
    family = text.family
    biased = text.flag("attention_bias") or family.bias == "all"
    return Attention(
        heads=text.heads,
        kv_heads=text.count("num_key_value_heads", default=text.heads),
        head_dim=text.head_dim,
        span=span,
        gate=text.flag("attn_output_gate", default=family.gate),
        rotary=family.positions == "rotary",
        query_norm=family.query_norm if text.flag("use_qk_norm", default=True) else "none",
        bias=biased or family.bias == "qkv",
        output_bias=biased,
        sinks=family.sinks,
        dropout=any(text.values.get(name, 0) for name in ("attention_dropout", "attn_pdrop")),
    )


def latent(text: Text) -> LatentAttention:
    """Return the latent attention, with its indexer when there is one."""
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


def compressed(text: Text) -> list[Mixer]:
    """Return DeepSeek-V4's attention of each layer, and last of a prediction module.

    Each layer has a ratio, 0 being no pool; the pool of the smallest ratio is indexed.
    """
    ratios = text.counts("compress_ratios", length=text.layers)
    indexed = min((ratio for ratio in ratios if ratio), default=0)
    made: dict[int, Mixer] = {ratio: _compressed(text, ratio, indexed=ratio == indexed > 0) for ratio in set(ratios)}
    layers = [made[ratio] for ratio in ratios[: text.layers + 1]]
    return layers if len(layers) > text.layers else [*layers, layers[-1]]


def _compressed(text: Text, ratio: int, *, indexed: bool) -> CompressedAttention:
    return CompressedAttention(
        heads=text.heads,
        head_dim=text.head_dim,
        query_rank=text.count("q_lora_rank"),
        window=text.count("sliding_window"),
        output_groups=text.count("o_groups"),
        output_rank=text.count("o_lora_rank"),
        stride=ratio,
        indexer=_indexer(text) if indexed else None,
    )


def _indexer(text: Text) -> Indexer | None:
    if "index_topk" not in text:
        return None
    return Indexer(text.count("index_n_heads"), text.count("index_head_dim"), text.count("index_topk"))
