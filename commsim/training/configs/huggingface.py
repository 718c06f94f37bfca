"""Which model does a Hugging Face config.json describe?"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from commsim.errors import InputError
from commsim.training.block import Block, stack
from commsim.training.configs.families import FAMILIES
from commsim.training.configs.feed_forward import dense, dense_layers, experts
from commsim.training.configs.mixers import hybrid_mixer, mixers
from commsim.training.configs.text import Text, text_of
from commsim.training.model import Model

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commsim.training.configs.keys import Config
    from commsim.training.layers.part import Part

_DEPTH = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules")
_LETTERS = "M*-E"
_FEW = 16
"""More prediction modules or residual streams than this nobody has."""
_LEFT_OUT = {
    "vision_config": "the vision tower is left out",
    "index_topk": "sparse attention: chosen keys count at the config's head sizes, and scoring all keys comes on top",
    "hc_mult": "hyper-connections: their mixing is counted as memory traffic and parameters, not as matrix products",
    "num_hash_layers": "layers routed by a hash of the token are taken to cost what routed ones do",
    "attn_res_block_size": "attention over earlier residuals is left out: its parameters are 4 hidden a layer",
}
"""What the model cannot hold, by the key that tells of it."""


def describe(config: Config, name: str) -> Model:
    """Return the model that the table describes. InputError when it describes none, or one that cannot be read."""
    text = text_of(config)
    depth = text.count(*_DEPTH, default=0, least=0, most=_FEW) if text.flag("use_mtp", default=True) else 0
    layers, module = (_hybrid if "hybrid_override_pattern" in text else _layers)(text)
    blocks, kinds = stack([*layers, *(module if depth else ())])
    learned = text.family.positions == "learned"
    tied = text.flag("tie_word_embeddings", default=text.family.tied)
    return Model(
        name=name,
        source=config.where,
        hidden=text.hidden,
        vocabulary=text.count("vocab_size"),
        blocks=blocks,
        layers=kinds[: len(layers)],
        tied_embeddings=config.flag("tie_word_embeddings", default=tied),
        positions=text.count("n_positions", "max_position_embeddings") if learned else 0,
        mtp=kinds[len(layers) :],
        mtp_depth=depth,
        assumptions=tuple(_assumptions(config, text)),
    )


def _layers(text: Text) -> tuple[list[Block], list[Block]]:
    """Return the layers, and the layer of a prediction module, which is like the last unless the config says more."""
    without = dense_layers(text)
    parts = {alone: dense(text) if alone else experts(text) for alone in set(without)}
    blocks = [_finished(text, mixer, parts[alone]) for mixer, alone in zip(mixers(text), [*without, without[-1]])]
    return blocks[: text.layers], blocks[text.layers :]


def _hybrid(text: Text) -> tuple[list[Block], list[Block]]:
    """Return the layers of a Nemotron-H pattern, one part each, and those of its prediction module."""
    pattern, module = text.text("hybrid_override_pattern"), text.text("mtp_hybrid_override_pattern")
    if set(pattern + module) - set(_LETTERS) or len(pattern) != text.layers:
        expected = f"{text.layers} letters out of {' '.join(_LETTERS)} belong here"
        raise InputError(f"{text.where}: hybrid_override_pattern", pattern, expected)
    blocks = {letter: _finished(text, _hybrid_part(text, letter)) for letter in {*pattern, *module}}
    return [blocks[letter] for letter in pattern], [blocks[letter] for letter in module or pattern[-1:]]


def _hybrid_part(text: Text, letter: str) -> Part:
    if letter == "-":
        return dense(text)
    return experts(text) if letter == "E" else hybrid_mixer(text, letter)


def _finished(text: Text, *parts: Part) -> Block:
    """Return the layer of these parts with the norms, residual streams and dropout of the model."""
    return dataclasses.replace(
        Block.of(*parts),
        norm=text.family.norm,
        post_norm=text.family.post_norm,
        parallel=text.family.parallel and text.flag("use_parallel_residual", default=True),
        streams=text.count("hc_mult", default=1, most=_FEW),
        dropout=any(text.values.get(name, 0) for name in ("resid_pdrop", "hidden_dropout")),
    )


def _assumptions(config: Config, text: Text) -> Iterator[str]:
    """Yield what the config did not say, and what the model cannot hold."""
    if text.kind not in FAMILIES:
        gated = "gated" if text.family.gated else "not gated"
        yield f"model type {text.kind!r} is not known: read as a Llama-like decoder, feed-forward layers {gated}"
    if "tie_word_embeddings" not in config and "tie_word_embeddings" not in text:
        tied = "tied" if text.family.tied else "untied"
        yield f"tied embeddings are not said: taken as {tied}, as model type {text.kind!r} does"
    yield from (said for key, said in _LEFT_OUT.items() if key in config or key in text)
