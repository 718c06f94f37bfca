"""Are a model's FLOPs those that public results were counted with?"""

from __future__ import annotations

import csv
import dataclasses
from collections import defaultdict
from statistics import median
from typing import TYPE_CHECKING

import pytest

from commsim.training.configs.rows import read_rows, row_model
from commsim.training.configs.well_known import model, models
from commsim.training.layers.span import Span
from commsim.training.model import Model
from commsim.training.parameters import parameters
from commsim.training.work import model_flops

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

Row = dict[str, str]
Case = tuple[Row, Model, float]

CAUSAL = (
    "Megatron-Bridge",
    "NVIDIA dgxc-benchmarking grok",
    "NVIDIA dgxc-benchmarking llama4",
    "NVIDIA dgxc-benchmarking deepseek",
    "Megatron-MoE-ModelZoo",
    "Megatron-Core MoE",
)
"""Sources that count half of the attention, as we do."""
FULL = (
    "NeMo performance summary",
    "NVIDIA dgxc-benchmarking llama3",
    "NVIDIA dgxc-benchmarking pax",
    "NVIDIA dgxc-benchmarking nemotron-h",
)
"""Sources that count attention over all pairs of tokens, which is our count at twice the length."""
UNTRUE = {"DG209", "DG231", "DG216"}
"""Rows whose printed figures contradict each other by a factor of two: tokens per second, or the peak of their MFU."""


def cases(folder: Path, sources: tuple[str, ...]) -> Iterator[Case]:
    """Yield pre-training rows with their model and the FLOPs per token that they were counted with."""
    rows = read_rows(folder / "training" / "models.csv")
    with (folder / "training" / "published.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            known = rows.get(row["model_id"], {}).get("layers")
            if (
                known
                and row["task"] == "pretrain"
                and row["source"].startswith(sources)
                and row["row_id"] not in UNTRUE
            ):
                published = per_token(row)
                if published:
                    yield row, row_model(rows[row["model_id"]], row["model_overrides"]), published


def per_token(row: Mapping[str, str]) -> float | None:
    """Return the FLOPs per token that a row's TFLOPS or MFU and its speed amount to."""
    share = float(row["mfu_pct"] or 0) / 100 * float(row["peak_tflops_used"] or 0)
    speed = float(row["tokens_per_s_per_gpu"] or 0)
    if not speed and row["step_time_s"]:
        speed = float(row["global_batch"]) * float(row["seq_len"]) / float(row["step_time_s"]) / float(row["n_gpus"])
    flops = float(row["model_tflops_per_gpu"] or share) * 1e12
    return flops / speed if flops and speed else None


def medians(found: Iterator[Case], *, twice: bool = False) -> dict[tuple[str, str, str], float]:
    """Return our count over theirs, the median for each source, model and length."""
    ratios = defaultdict(list)
    for row, made, published in found:
        length = float(row["seq_len"])
        source = row["source"].split(",")[0]
        ours = float(model_flops(made, 2 * length if twice else length))
        ratios[source, made.name, row["seq_len"]].append(ours / published)
    return {key: median(values) for key, values in ratios.items()}


@pytest.mark.data
def test_causal_counts(data: Path) -> None:
    found = (case for case in cases(data, CAUSAL) if case[1].name not in {"gpt-oss-120b", "nemotron3-nano"})
    ratios = medians(found)
    assert len(ratios) > 10
    assert {key: ratio for key, ratio in ratios.items() if not 0.99 < ratio < 1.01} == {}


@pytest.mark.data
def test_full_counts(data: Path) -> None:
    ratios = medians(cases(data, FULL), twice=True)
    assert len(ratios) > 8
    assert {key: ratio for key, ratio in ratios.items() if not 0.99 < ratio < 1.01} == {}


@pytest.mark.data
def test_gpt_oss_was_counted_otherwise_before_mid_2026(data: Path) -> None:
    """Until release 26.04 its experts were counted with two matrices instead of three, and without windows."""
    new: list[float] = []
    old: list[float] = []
    for row, made, published in cases(data, ("Megatron-Bridge",)):
        if made.name == "gpt-oss-120b":
            late = row["source"].split()[-1] >= "26.06"
            ours = float(model_flops(made if late else _without_window_and_gate(made), float(row["seq_len"])))
            (new if late else old).append(ours / published)
    assert len(new) >= 2
    assert new == pytest.approx([1.0] * len(new), rel=0.01)
    assert old == pytest.approx([1.0] * len(old), rel=0.015)


def _without_window_and_gate(made: Model) -> Model:
    blocks = []
    for block in made.blocks:
        assert block.attention
        assert block.experts
        attention = dataclasses.replace(block.attention, span=Span())
        experts = dataclasses.replace(block.experts, gated=False)
        blocks.append(dataclasses.replace(block, attention=attention, experts=experts))
    return dataclasses.replace(made, blocks=tuple(blocks))


@pytest.mark.data
def test_nemotron_nano_is_counted_with_more_channels_than_it_has(data: Path) -> None:
    """Megatron's formula takes 2 hidden = 5,376 channels for Mamba; this model has 64 heads of 64 = 4,096."""
    ratios, corrected = [], []
    for row, made, published in cases(data, ("Megatron-Bridge",)):
        if made.name == "nemotron3-nano":
            ratios.append(float(model_flops(made, float(row["seq_len"]))) / published)
            corrected.append(
                float(model_flops(_with_channels(made, 2 * made.hidden), float(row["seq_len"]))) / published
            )
    assert median(ratios) == pytest.approx(0.933, abs=0.005)
    assert median(corrected) == pytest.approx(1.0, abs=0.01)


def _with_channels(made: Model, channels: int) -> Model:
    blocks = []
    for block in made.blocks:
        mamba = block.mamba
        wider = dataclasses.replace(mamba, heads=channels // mamba.head_dim) if mamba else None
        blocks.append(dataclasses.replace(block, mamba=wider))
    return dataclasses.replace(made, blocks=tuple(blocks))


@pytest.mark.data
def test_deepseek_v4_flash_as_megatron_bridge_counts_it(data: Path) -> None:
    """Its rows have no architecture in the public table; ours comes from its config.json."""
    with (data / "training" / "published.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["model_id"].startswith("deepseek-v4-flash")]
    published = [flops for flops in map(per_token, rows) if flops]
    ours = float(model_flops(model("deepseek-v4-flash"), 4096.0))
    assert ours / median(published) == pytest.approx(1.0, abs=0.03)


def test_dense_model_by_hand() -> None:
    """6 FLOPs a weight, and causal attention 6 L a d s (Chowdhery et al. 2022, appendix B, halved)."""
    known, length = model("llama3.1-405b"), 8192
    vectors = 126 * 2 * 16384 + 16384
    weights = parameters(known).total - 128256 * 16384 - vectors
    assert model_flops(known, length) == pytest.approx(6 * weights + 6 * 126 * 16384 * length)


def test_megatron_formula() -> None:
    """96 B s L h² (1 + s/6h + V/16Lh), eq. 3 of Narayanan et al. 2021, without its recomputation and at full attention.

    Without recomputation that is 72 B s L h² (1 + s/6h + V/12Lh).
    """
    for name in ("gpt3-175b", "mt-nlg-530b", "megatron-1t"):
        known, length = model(name), 2048
        layers, hidden = len(known.layers), known.hidden
        expected = 72 * layers * hidden**2 * (1 + length / (6 * hidden) + known.vocabulary / (12 * layers * hidden))
        assert model_flops(known, 2 * length) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("known", models(), ids=lambda known: known.name)
def test_flops_follow_active_parameters(known: Model) -> None:
    """At short length a token costs 6 FLOPs for each weight it passes, the embedding aside, and the scans besides."""
    counted = parameters(known)
    embedding = 0 if known.tied_embeddings else counted.embedding
    module = counted.predictors.active + known.mtp_depth * known.vocabulary * known.hidden
    weights = counted.active - embedding + module
    assert model_flops(known, 1.0) == pytest.approx(6 * weights, rel=0.03)
