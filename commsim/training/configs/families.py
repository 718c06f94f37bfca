"""What does a model type mean that its config.json leaves unsaid?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from commsim.training.block import Norm


@dataclass(frozen=True)
class Family:
    """What the code of a model type fixes: the modelling file of that name in Hugging Face Transformers is the source.

    `window_every` n: every n-th layer sees everything, the others their window or chunk. `shared` experts are as wide
    as the routed ones where no key says so.
    """

    gated: bool = True
    tied: bool = False
    norm: Norm = "rms"
    bias: Literal["none", "qkv", "all"] = "none"
    positions: Literal["rotary", "learned", "none"] = "rotary"
    query_norm: Literal["none", "head", "layer"] = "none"
    post_norm: bool = False
    parallel: bool = False
    window_every: int = 0
    shared: int = 0
    shared_gate: bool = False
    expert_bias: bool = False
    sinks: bool = False
    gate: bool = False


FAMILIES: dict[str, Family] = {
    "bloom": Family(gated=False, tied=True, norm="layer", bias="all", positions="none"),
    "deepseek_v2": Family(),
    "deepseek_v3": Family(),
    "deepseek_v32": Family(),
    "deepseek_v4": Family(),
    "gemma": Family(tied=True),
    "gemma2": Family(tied=True, post_norm=True, window_every=2),
    "gemma3_text": Family(tied=True, post_norm=True, query_norm="head", window_every=6),
    "glm4_moe": Family(),
    "glm_moe_dsa": Family(),
    "gpt2": Family(gated=False, tied=True, norm="layer", bias="all", positions="learned"),
    "gpt_bigcode": Family(gated=False, tied=True, norm="layer", bias="all", positions="learned"),
    "gpt_neox": Family(gated=False, norm="layer", bias="all", parallel=True),
    "gpt_oss": Family(expert_bias=True, sinks=True),
    "granite": Family(tied=True),
    "kimi_k2": Family(),
    "kimi_linear": Family(),
    "llama": Family(),
    "llama4_text": Family(window_every=4, shared=1),
    "minimax_m2": Family(query_norm="layer"),
    "mistral": Family(),
    "mixtral": Family(),
    "nemotron": Family(gated=False, norm="layer"),
    "nemotron_h": Family(gated=False),
    "olmo2": Family(query_norm="layer"),
    "opt": Family(gated=False, tied=True, norm="layer", bias="all", positions="learned"),
    "phi3": Family(),
    "qwen2": Family(bias="qkv"),
    "qwen2_moe": Family(bias="qkv", shared_gate=True),
    "qwen3": Family(query_norm="head"),
    "qwen3_moe": Family(query_norm="head"),
    "qwen3_next": Family(query_norm="head", shared_gate=True, gate=True),
    "qwen3_5_text": Family(query_norm="head"),
    "qwen3_5_moe_text": Family(query_norm="head", shared_gate=True),
    "starcoder2": Family(gated=False, tied=True, norm="layer", bias="all"),
}
"""The model types whose layers are known."""

OTHER_MACHINES = ("mamba", "ssm", "rwkv", "time_mix", "linear_attn", "linear_num", "attn_layer_", "lightning", "conv_L")
"""Beginnings of keys that say that layers are no plain attention; they are read for known types only."""
NO_DECODERS = {"bert", "roberta", "distilbert", "electra", "t5", "bart", "whisper", "vit", "clip", "wav2vec2"}
"""Model types that are no decoder language model."""
PLAIN_ACTIVATIONS = {"relu", "relu2", "gelu", "gelu_new", "gelu_fast"}
"""Activations that are mostly used without a gate, for model types that are not known."""
