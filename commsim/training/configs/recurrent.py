"""Which recurrent mixer do the keys of a config.json describe?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commsim.errors import InputError
from commsim.training.layers.delta_net import DeltaNet
from commsim.training.layers.mamba import Mamba

if TYPE_CHECKING:
    from commsim.training.configs.text import Text
    from commsim.training.layers.part import Mixer


def delta_net(text: Text) -> DeltaNet:
    """Return the gated delta net of Qwen3-Next and Qwen3.5."""
    return DeltaNet(
        key_heads=text.count("linear_num_key_heads"),
        value_heads=text.count("linear_num_value_heads"),
        key_dim=text.count("linear_key_head_dim"),
        value_dim=text.count("linear_value_head_dim"),
        conv=text.count("linear_conv_kernel_dim"),
    )


def kimi_linear(text: Text, latent: Mixer) -> list[Mixer]:
    """Return Kimi's delta net or `latent` attention of each layer, and last that of a prediction module.

    Its layers are counted from 1.
    """
    table = text.table("linear_attn_config")
    heads, width = table.count("num_heads"), table.count("head_dim")
    gate = None if table.flag("use_full_rank_gate") else width
    conv = table.count("short_conv_kernel_size")
    delta: Mixer = DeltaNet(heads, heads, width, width, conv, decay_rank=width, gate_rank=gate)
    deltas, latents = set(table.counts("kda_layers")), set(table.counts("full_attn_layers"))
    if deltas | latents != set(range(1, text.layers + 1)) or deltas & latents:
        expected = f"kda_layers and full_attn_layers must share out layers 1 to {text.layers}"
        raise InputError(table.where, sorted(deltas ^ latents)[-1:], expected)
    return [delta if number in deltas else latent for number in range(1, text.layers + 1)] + [latent]


def mamba(text: Text) -> Mamba:
    """Return the Mamba-2 mixer of Nemotron-H."""
    return Mamba(
        heads=text.count("mamba_num_heads"),
        head_dim=text.count("mamba_head_dim"),
        state=text.count("ssm_state_size"),
        groups=text.count("n_groups"),
        conv=text.count("conv_kernel"),
        conv_bias=text.flag("use_conv_bias", default=True),
    )
