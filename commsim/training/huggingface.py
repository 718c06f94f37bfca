"""Which model does a Hugging Face config.json describe?"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from commsim.errors import InputError
from commsim.training.config_mixers import Text, hybrid_mixer, mixers
from commsim.training.families import FAMILIES, NO_DECODERS, OTHER_MACHINES, PLAIN_ACTIVATIONS, Family
from commsim.training.layers.experts import Experts
from commsim.training.layers.feed_forward import FeedForward
from commsim.training.model import MOST_LAYERS, Block, Model, stack

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commsim.training.config_keys import Config
    from commsim.training.layers.part import Part

_NESTED = ("text_config", "language_config", "llm_config")
_COUNT = ("n_routed_experts", "num_local_experts", "num_experts")
_TOP_K = ("num_experts_per_tok", "num_experts_per_token", "experts_per_token")
_WIDTH = ("intermediate_size", "n_inner", "ffn_dim")
_DEPTH = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules")
_LETTERS = "M*-E"
_MOST_DEPTH = 16


def describe(config: Config, name: str) -> Model:
    """Return the model that the table describes. InputError when it describes none, or one that cannot be read."""
    text = _text(config)
    depth = text.count(*_DEPTH, default=0, least=0, most=_MOST_DEPTH) if text.flag("use_mtp", default=True) else 0
    layers, module = _hybrid(text) if "hybrid_override_pattern" in text else _layers(text)
    blocks, kinds = stack([*layers, *(module if depth else ())])
    learned = text.family.positions == "learned"
    return Model(
        name=name,
        source=config.where,
        hidden=text.hidden,
        vocabulary=text.count("vocab_size"),
        blocks=blocks,
        layers=kinds[: len(layers)],
        tied_embeddings=config.flag("tie_word_embeddings", default=text.flag("tie_word_embeddings", default=text.tied)),
        positions=text.count("n_positions", "max_position_embeddings") if learned else 0,
        mtp=kinds[len(layers) :],
        mtp_depth=depth,
        assumptions=tuple(_assumptions(config, text)),
    )


def _text(config: Config) -> Text:
    """Return the part of the table that describes the language model, and what its type is known to mean."""
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


def _layers(text: Text) -> tuple[list[Block], list[Block]]:
    """Return the layers, and the layer of a prediction module, which is like the last unless the config says more."""
    parts = {dense: _dense(text) if dense else _experts(text) for dense in {*_dense_layers(text)}}
    feed_forwards = [parts[dense] for dense in _dense_layers(text)]
    blocks = [_finished(text, pair) for pair in zip(mixers(text), [*feed_forwards, feed_forwards[-1]])]
    return blocks[: text.layers], blocks[text.layers :]


def _hybrid(text: Text) -> tuple[list[Block], list[Block]]:
    """Return the layers of a Nemotron-H pattern, one part each, and those of its prediction module."""
    pattern, module = text.text("hybrid_override_pattern"), text.text("mtp_hybrid_override_pattern") or "*E"
    if set(pattern + module) - set(_LETTERS) or len(pattern) != text.layers:
        expected = f"{text.layers} letters out of {' '.join(_LETTERS)} belong here"
        raise InputError(f"{text.where}: hybrid_override_pattern", pattern, expected)
    needed = set(pattern + (module if any(name in text for name in _DEPTH) else ""))
    blocks = {letter: _finished(text, (_hybrid_part(text, letter),)) for letter in needed}
    return [blocks[letter] for letter in pattern], [blocks[letter] for letter in module if letter in blocks]


def _hybrid_part(text: Text, letter: str) -> Part:
    if letter == "-":
        return _dense(text)
    return _experts(text) if letter == "E" else hybrid_mixer(text, letter)


def _finished(text: Text, parts: tuple[Part, ...]) -> Block:
    """Return the layer of these parts with the norms, residual streams and dropout of the model."""
    family = text.family
    parallel = family.parallel and text.flag("use_parallel_residual", default=True)
    dropout = any(text.values.get(name, 0) for name in ("resid_pdrop", "hidden_dropout"))
    streams = text.count("hc_mult", default=1, most=_MOST_DEPTH)
    return dataclasses.replace(
        Block.of(*parts),
        norm=family.norm,
        post_norm=family.post_norm,
        parallel=parallel,
        streams=streams,
        dropout=dropout,
    )


def _dense(text: Text) -> FeedForward:
    width = text.count("intermediate_size_mlp", *_WIDTH, default=4 * text.hidden)
    return FeedForward(width, gated=text.family.gated, bias=text.family.bias == "all" or text.flag("mlp_bias"))


def _dense_layers(text: Text) -> list[bool]:
    """Tell of each layer whether it has no experts, by the keys that model types have for it."""
    if not text.count(*_COUNT, default=0, least=0):
        return [True] * text.layers
    first = text.count("first_k_dense_replace", default=0, least=0)
    alone = set(text.counts("mlp_only_layers"))
    sparse_step = text.count("decoder_sparse_step", "interleave_moe_layer_step", default=1)
    listed = isinstance(text.values.get("moe_layer_freq"), list)
    every = text.counts("moe_layer_freq", length=text.layers) if listed else ()
    frequency = 1 if listed else text.count("moe_layer_freq", default=1)
    return [
        number < first
        or number in alone
        or (number + 1) % sparse_step != 0
        or number % frequency != 0
        or (listed and not every[number])
        for number in range(text.layers)
    ]


def _experts(text: Text) -> Experts:
    """Return the experts: where no key names their width, `intermediate_size` is theirs."""
    width = text.count("moe_intermediate_size", *_WIDTH)
    return Experts(
        count=text.count(*_COUNT),
        top_k=text.count(*_TOP_K),
        width=width,
        gated=text.family.gated,
        shared=_shared(text, width),
        latent=text.count("moe_latent_size", "routed_expert_hidden_size", default=0, least=0) or None,
        latent_norm=text.flag("latent_moe_use_norm"),
        shared_gate=text.family.shared_gate,
        bias=text.family.expert_bias,
        router_bias=text.text("topk_method") == "noaux_tc" or text.flag("use_routing_bias"),
    )


def _shared(text: Text, width: int) -> int:
    """Return the width of all shared experts together."""
    keys = ("moe_shared_expert_intermediate_size", "shared_expert_intermediate_size", "shared_intermediate_size")
    copies = text.count("n_shared_experts", "num_shared_experts", default=text.family.shared, least=0)
    return text.count(*keys, default=copies * width, least=0)


def _assumptions(config: Config, text: Text) -> Iterator[str]:
    """Yield what the config did not say, and what the model cannot hold."""
    kind = text.text("model_type")
    if kind not in FAMILIES:
        gated = "gated" if text.family.gated else "not gated"
        yield f"model type {kind!r} is not known: read as a Llama-like decoder whose feed-forward layers are {gated}"
    if "tie_word_embeddings" not in config and "tie_word_embeddings" not in text:
        yield f"tied embeddings are not said: taken as {'tied' if text.tied else 'untied'}, as model type {kind!r} does"
    if "vision_config" in config:
        yield "the vision tower is left out"
    if "index_topk" in text:
        yield "sparse attention: chosen keys count at the config's head sizes, and scoring all keys comes on top"
    if "hc_mult" in text:
        yield "hyper-connections: their mixing is counted as memory traffic and parameters, not as matrix products"
    if "num_hash_layers" in text:
        yield "layers routed by a hash of the token are taken to cost what routed ones do"
    if "attn_res_block_size" in text:
        yield "attention over earlier residuals is left out: its parameters are 4 hidden a layer"
