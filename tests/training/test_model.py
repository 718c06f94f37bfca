"""Is a model what its source says: its layers, and how many parameters they have?"""

from __future__ import annotations

import csv
import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import pytest

from commsim.errors import InputError
from commsim.training.block import Block, stack
from commsim.training.configs.well_known import model, models
from commsim.training.layers.attention import Attention
from commsim.training.layers.compressed_attention import CompressedAttention
from commsim.training.layers.experts import Experts
from commsim.training.layers.feed_forward import FeedForward
from commsim.training.layers.mamba import Mamba
from commsim.training.model import Model
from commsim.training.parameters import Parameters, parameters

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

EXACT = {
    "llama3.1-8b": 8_030_261_248,
    "llama3.1-70b": 70_553_706_496,
    "llama3.1-405b": 405_853_388_800,
    "mixtral-8x7b": 46_702_792_704,
    "mixtral-8x22b": 140_620_634_112,
    "qwen3-8b": 8_190_735_360,
    "qwen3-32b": 32_762_123_264,
    "qwen3-30b-a3b": 30_532_122_624,
    "qwen3-235b-a22b": 235_093_634_560,
    "gpt-oss-20b": 20_914_757_184,
    "gpt-oss-120b": 116_829_156_672,
    "deepseek-v3": 671_026_419_200,
}
"""Parameters of the published weights, to the last one, as the Hugging Face pages of these models count them."""

PUBLISHED = {
    "llama2-7b": (6.74, None, 0.01),
    "llama4-maverick": (400, 17, 0.02),
    "llama4-scout": (109, 17, 0.02),  # with a vision tower of 0.9 B
    "deepseek-v2": (236, 21, 0.02),
    "deepseek-v3": (671, 37, 0.02),
    "deepseek-v4-pro": (1600, 49, 0.02),
    "deepseek-v4-flash": (284, 13.3, 0.04),  # 13 B active, which leave the embedding of 0.5 B out
    "kimi-k2": (1026.5, 32.6, 0.01),  # the paper rounds its total to 1.04 T
    "kimi-k3": (2800, None, 0.01),
    "glm-5": (744, 40, 0.05),  # its 40 B active leave the embedding out
    "minimax-m2.5": (229, 10, 0.11),  # as above
    "qwen3-14b": (14.8, None, 0.01),
    "qwen3-4b": (4.0, None, 0.01),
    "qwen3-next-80b-a3b": (80, None, 0.01),
    "qwen3.5-397b-a17b": (397, 17, 0.03),  # with a vision tower of 0.5 B
    "qwen2-57b-a14b": (57.4, 14.2, 0.01),
    "mixtral-8x7b": (46.7, 12.9, 0.01),
    "mixtral-8x22b": (141, 39, 0.01),
    "mistral-7b": (7.24, None, 0.01),
    "grok-1": (314, None, 0.01),
    "nemotron-4-340b": (340, None, 0.01),
    "nemotron-4-15b": (15.6, None, 0.01),
    "nemotron-h-56b": (56.3, None, 0.01),
    "nemotron-3-nano": (31.6, 3.6, 0.01),
    "nemotron-3-super": (120.7, 12.7, 0.01),
    "gpt3-175b": (175, None, 0.01),
    "mt-nlg-530b": (529.6, None, 0.01),
    "megatron-1t": (1008, None, 0.01),
    "bloom-176b": (176.25, None, 0.001),
    "llama3.2-1b": (1.236, None, 0.001),
    "llama3.2-3b": (3.213, None, 0.001),
}
"""Parameters in billions that the vendors state, in all and active, and how near we must come."""


@pytest.mark.parametrize(("name", "count"), EXACT.items())
def test_parameters_to_the_last(name: str, count: int) -> None:
    assert parameters(model(name)).total == count


@pytest.mark.parametrize(("name", "published"), PUBLISHED.items())
def test_parameters_as_published(name: str, published: tuple[float, float | None, float]) -> None:
    total, active, near = published
    counted = parameters(model(name))
    assert counted.total / 1e9 == pytest.approx(total, rel=0.02 if active else near)
    assert active is None or counted.active / 1e9 == pytest.approx(active, rel=near)


def test_parameters_with_the_prediction_module() -> None:
    """DeepSeek-V3's page: 685 B on disk, 14 B of them the module with a copy of embedding and head."""
    counted = parameters(model("deepseek-v3"))
    copies = counted.embedding + counted.output
    assert counted.trained + copies == pytest.approx(685e9, rel=0.001)
    assert counted.predictors.total + copies == pytest.approx(14e9, rel=0.05)


@pytest.mark.data
def test_parameters_of_every_architecture_in_the_public_table(data: Path) -> None:
    """The table holds 78 sizes; all agree to 0.3 %."""
    from commsim.training.configs.rows import read_rows, row_model

    rows = read_rows(data / "training" / "models.csv")
    sized = {name: row for name, row in rows.items() if row["params_total_B"]}
    assert len(sized) > 70
    for name, row in sized.items():
        counted = parameters(row_model(row))
        assert counted.total == pytest.approx(float(row["params_total_B"]) * 1e9, rel=0.003), name
        assert counted.active == pytest.approx(float(row["params_active_B"]) * 1e9, rel=0.003), name


@pytest.mark.data
def test_the_table_has_no_row_that_commsim_names_otherwise(data: Path) -> None:
    """A model of ours with the name of a row has its size: biases, norms and positions may differ."""
    with (data / "training" / "models.csv").open(encoding="utf-8", newline="") as file:
        sizes = {row["model_id"]: row["params_total_B"] for row in csv.DictReader(file) if row["params_total_B"]}
    alike = {known.name: sizes[known.name] for known in models() if known.name in sizes}
    assert len(alike) > 10
    for name, size in alike.items():
        assert parameters(model(name)).total == pytest.approx(float(size) * 1e9, rel=0.003), name


@pytest.mark.parametrize("known", models(), ids=lambda known: known.name)
def test_parameters_add_up(known: Model) -> None:
    counted: Parameters = parameters(known)
    parts = sum(
        sum(part.total for part in counted.blocks[kind].values()) * count for kind, count in known.counts.items()
    )
    assert counted.total == parts + counted.embedding + counted.output + counted.norm
    assert counted.active <= counted.total <= counted.trained
    assert (counted.output == 0) == known.tied_embeddings


# The value


DENSE = Block.of(Attention(8, 2, 64), FeedForward(1024))
MOE = Block.of(Attention(8, 2, 64), Experts(4, 2, 512))


def small(*layers: Block) -> Model:
    blocks, kinds = stack(layers)
    return Model("small", "a test", 512, 1000, blocks, kinds)


def test_layers_are_named_by_their_parts() -> None:
    other = Block.of(Attention(8, 2, 64), FeedForward(2048))
    made = small(DENSE, MOE, MOE, other)
    assert made.layers == ("full-dense", "full-moe", "full-moe", "full-dense#2")
    assert made.counts == {"full-dense": 1, "full-moe": 2, "full-dense#2": 1}
    assert made.block("full-dense#2").feed_forward == FeedForward(2048)
    assert made.experts == Experts(4, 2, 512)
    assert made.heads == 8


def test_layers_of_a_chunk_are_counted_without_a_loop() -> None:
    made = small(*[DENSE] * 3, *[MOE] * 5)
    first, last = np.array([0, 2, 4]), np.array([2, 4, 8])
    assert made.counts_between(first, last).tolist() == [[2, 0], [1, 1], [0, 4]]
    assert made.counts_between(0, 8).tolist() == list(made.counts.values())


def test_a_model_is_a_value() -> None:
    made = small(DENSE, MOE)
    assert made == small(DENSE, MOE)
    assert hash(made) == hash(small(DENSE, MOE))
    assert dataclasses.replace(made, hidden=1024) != made


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Attention(8, 3, 64), "a divisor of the 8 heads"),
        (lambda: Attention(0, 1, 64), "above 0"),
        (lambda: Experts(4, 5, 64), "at most the 4 experts"),
        (lambda: Mamba(8, 64, 0, 1), "above 0"),
        (lambda: CompressedAttention(8, 64, 64, 128, 3, 64), "a divisor of the 8 heads"),
        (Block, "a mixer, a feed-forward part or both"),
        (lambda: Block(attention=Attention(8, 8, 64), mamba=Mamba(8, 64, 16, 1)), "one mixer"),
        (small, "at least one layer"),
        (lambda: dataclasses.replace(small(DENSE), hidden=0), "above 0"),
        (lambda: dataclasses.replace(small(DENSE), layers=("full-dens",)), "did you mean 'full-dense'"),
        (lambda: small(DENSE).block("moe"), "no such block"),
    ],
)
def test_what_no_model_can_be(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()
