"""Which feed-forward layers and experts do the keys of a config.json describe?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commsim.training.layers.experts import Experts
from commsim.training.layers.feed_forward import FeedForward

if TYPE_CHECKING:
    from commsim.training.configs.text import Text

_COUNT = ("n_routed_experts", "num_local_experts", "num_experts")
_TOP_K = ("num_experts_per_tok", "num_experts_per_token", "experts_per_token")
_WIDTH = ("intermediate_size", "n_inner", "ffn_dim")
_SHARED = ("moe_shared_expert_intermediate_size", "shared_expert_intermediate_size", "shared_intermediate_size")


def dense(text: Text) -> FeedForward:
    """Return the feed-forward layer that every token passes; as in GPT-2 it is 4 hidden wide unless a key says so."""
    width = text.count("intermediate_size_mlp", *_WIDTH, default=4 * text.hidden)
    return FeedForward(width, gated=text.family.gated, bias=text.family.bias == "all" or text.flag("mlp_bias"))


def experts(text: Text) -> Experts:
    """Return the experts: where no key names their width, `intermediate_size` is theirs."""
    width = text.count("moe_intermediate_size", *_WIDTH)
    copies = text.count("n_shared_experts", "num_shared_experts", default=text.family.shared, least=0)
    return Experts(
        count=text.count(*_COUNT),
        top_k=text.count(*_TOP_K),
        width=width,
        gated=text.family.gated,
        shared=text.count(*_SHARED, default=copies * width, least=0),
        latent=text.count("moe_latent_size", "routed_expert_hidden_size", default=0, least=0) or None,
        latent_norm=text.flag("latent_moe_use_norm"),
        shared_gate=text.family.shared_gate,
        bias=text.family.expert_bias,
        router_bias=text.text("topk_method") == "noaux_tc" or text.flag("use_routing_bias"),
    )


def dense_layers(text: Text) -> list[bool]:
    """Tell of each layer whether it has no experts, by the keys that model types have for it."""
    if not text.count(*_COUNT, default=0, least=0):
        return [True] * text.layers
    first = text.count("first_k_dense_replace", default=0, least=0)
    alone = set(text.counts("mlp_only_layers"))
    step = text.count("decoder_sparse_step", "interleave_moe_layer_step", default=1)
    listed = isinstance(text.values.get("moe_layer_freq"), list)
    sparse = text.counts("moe_layer_freq", length=text.layers) if listed else (1,) * text.layers
    frequency = 1 if listed else text.count("moe_layer_freq", default=1)
    return [
        number < first or number in alone or (number + 1) % step != 0 or number % frequency != 0 or not sparse[number]
        for number in range(text.layers)
    ]
