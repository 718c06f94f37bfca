"""How does a table of architectures, one row a model, become models?

The layout is that of the public collection of training results: a CSV whose columns say layers, hidden, heads, widths,
experts, latent ranks and the pattern of a hybrid; a result may override some of them (`layers=24;hidden=4096`).
"""

from __future__ import annotations

import csv
from dataclasses import replace
from typing import TYPE_CHECKING

from commsim.errors import InputError, reason
from commsim.training.block import Block, Norm, stack
from commsim.training.layers.attention import Attention
from commsim.training.layers.experts import Experts
from commsim.training.layers.feed_forward import FeedForward
from commsim.training.layers.latent_attention import LatentAttention
from commsim.training.layers.mamba import Mamba
from commsim.training.layers.span import Span
from commsim.training.model import MOST, MOST_LAYERS, Model

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from commsim.training.layers.part import Mixer, Part

_FAMILIES = {
    "gpt-oss-20b": {"expert_bias": "1"},
    "gpt-oss-120b": {"expert_bias": "1"},
    "bloom-family": {"vocab": "250880", "tied_embeddings": "1"},
    "vtrain-gpt-family": {"vocab": "51200", "tied_embeddings": "1"},
}
"""What rows say in words, or not: gpt-oss's biases of experts (its config.json), BLOOM's vocabulary (BigScience
tr11-176B), GPT-2's as Megatron pads it."""


def read_rows(path: Path) -> dict[str, Mapping[str, str]]:
    """Return the rows of the table by the name of the model. InputError when it is no such table."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(str(path), reason(error), "a readable CSV file belongs here") from None
    if not rows or "model_id" not in rows[0]:
        raise InputError(str(path), list(rows[0]) if rows else "nothing", "a table with the column 'model_id'")
    return {row["model_id"]: row for row in rows}


def row_model(row: Mapping[str, str], overrides: str = "") -> Model:
    """Return the model of one row, some columns overridden. InputError when the row does not say enough."""
    name = row["model_id"]
    filled = {key: text for key, text in row.items() if text}
    cells = _Cells(name, filled | _FAMILIES.get(name, {}) | _overrides(name, overrides))
    blocks, layers = stack(_layers(cells))
    depth = cells.count("mtp_layers", 0)
    return Model(
        name=name,
        source=row.get("src", ""),
        hidden=cells.count("hidden"),
        vocabulary=cells.count("vocab"),
        blocks=blocks,
        layers=layers,
        tied_embeddings=cells.count("tied_embeddings", 0) == 1,
        # a module is one layer like the last, or attention and experts in a hybrid
        mtp=() if not depth else ("full", "moe") if cells.get("hybrid") else layers[-1:],
        mtp_depth=depth,
        assumptions=(note,) if (note := row.get("note")) else (),
    )


class _Cells(dict[str, str]):
    """One row of the table, whose cells are read as whole numbers."""

    def __init__(self, name: str, cells: Mapping[str, str]) -> None:
        super().__init__(cells)
        self.name = name

    def count(self, column: str, default: int | None = None, most: int = MOST) -> int:
        """Return the whole number in a column; InputError when it is none, too large, or missing without a default."""
        text = self.get(column, "")
        if not text and default is not None:
            return default
        if not (text.isascii() and text.isdecimal()) or len(text) > len(str(most)) or int(text) > most:
            raise InputError(f"{self.name}: {column}", text, f"a whole number, {most} at most, belongs here")
        return int(text)


def _overrides(name: str, text: str) -> dict[str, str]:
    pairs = [pair.partition("=") for pair in text.split(";") if pair]
    for key, equals, value in pairs:
        if not (key and equals and value):
            raise InputError(f"{name}: overrides", text, "column=number;column=number belongs here")
    return {key.strip(): value.strip() for key, _, value in pairs}


def _layers(cells: _Cells) -> list[Block]:
    """Return the layers in their order."""
    if cells.get("hybrid"):
        return _hybrid(cells)
    count = cells.count("layers", most=MOST_LAYERS)
    sliding = cells.count("swa_layers", 0, most=count)
    first = cells.count("n_dense_layers", 0) if cells.get("n_experts") else count
    dense = [number < first for number in range(count)]
    if cells.get("moe_layer_pattern") == "alternate dense/MoE":
        dense = [number % 2 == 0 for number in range(count)]
    windows = [sliding > 0 and number % (count // sliding) == 0 for number in range(count)]
    mixers = {windowed: _attention(cells, windowed=windowed) for windowed in set(windows)}
    parts = {is_dense: _dense(cells) if is_dense else _experts(cells) for is_dense in set(dense)}
    norm: Norm = "layer" if cells.get("activation") == "gelu" else "rms"
    blocks = (Block.of(mixers[windowed], parts[is_dense]) for windowed, is_dense in zip(windows, dense))
    return [replace(block, norm=norm) for block in blocks]


def _attention(cells: _Cells, *, windowed: bool = False) -> Mixer:
    heads = cells.count("heads")
    if cells.get("kv_lora"):
        rank, nope, rope, value = (cells.count(column) for column in ("kv_lora", "qk_nope", "qk_rope", "v_head"))
        query = cells.count("q_lora", 0) or None
        return LatentAttention(heads, rank, nope, rope, value, query_rank=query)
    rotary = cells.get("activation") != "gelu"  # the GPT family learns its positions
    span = Span(most=cells.count("swa_window") if windowed else None)
    return Attention(heads, cells.count("kv_heads"), cells.count("head_dim"), span=span, rotary=rotary)


def _dense(cells: _Cells) -> Part:
    return FeedForward(cells.count("ffn_hidden"), gated=cells.count("gated_mlp", 0) == 1)


def _experts(cells: _Cells) -> Part:
    count, top_k, width = (cells.count(column) for column in ("n_experts", "topk", "moe_ffn_hidden"))
    gated, latent = cells.count("gated_mlp", 0) == 1, cells.count("latent", 0) or None
    shared = cells.count("shared_ffn_hidden", 0)
    return Experts(count, top_k, width, gated=gated, shared=shared, latent=latent, bias=cells.get("expert_bias") == "1")


def _mamba(cells: _Cells) -> Mamba:
    heads, width, state, groups = (cells.count(f"mamba_{what}") for what in ("heads", "head_dim", "state", "groups"))
    return Mamba(heads, width, state, groups)


def _hybrid(cells: _Cells) -> list[Block]:
    """Return the layers of a pattern such as `M-M*`: one part a layer."""
    pattern = cells["hybrid"]
    if set(pattern) - set("M*-E") or len(pattern) != cells.count("layers"):
        expected = f"{cells['layers']} letters out of M, *, - and E belong here"
        raise InputError(f"{cells.name}: hybrid", pattern, expected)
    parts = {letter: _HYBRID[letter](cells) for letter in set(pattern)}
    return [Block.of(parts[letter]) for letter in pattern]


_HYBRID: Mapping[str, Callable[[_Cells], Part]] = {"M": _mamba, "*": _attention, "-": _dense, "E": _experts}
