"""Is a row of the table of architectures read as the model that it means?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from commsim.errors import InputError
from commsim.training.configs.rows import read_rows, row_model
from commsim.training.layers.attention import Attention
from commsim.training.layers.experts import Experts
from commsim.training.layers.feed_forward import FeedForward

if TYPE_CHECKING:
    from pathlib import Path

DENSE = {
    "model_id": "mine",
    "layers": "4",
    "hidden": "512",
    "ffn_hidden": "2048",
    "gated_mlp": "0",
    "activation": "gelu",
    "heads": "8",
    "kv_heads": "8",
    "head_dim": "64",
    "vocab": "1000",
    "tied_embeddings": "1",
    "src": "a test",
}
MOE = DENSE | {"n_experts": "8", "topk": "2", "moe_ffn_hidden": "256", "gated_mlp": "1", "activation": "swiglu"}
HYBRID = MOE | {
    "hybrid": "ME*E",
    "mamba_heads": "8",
    "mamba_head_dim": "64",
    "mamba_state": "16",
    "mamba_groups": "2",
    "latent": "128",
    "mtp_layers": "2",
}


def test_a_dense_row() -> None:
    made = row_model(DENSE)
    assert made.layers == ("full-dense",) * 4
    assert made.block("full-dense").attention == Attention(8, 8, 64, rotary=False)
    assert made.block("full-dense").feed_forward == FeedForward(2048, gated=False)
    assert (made.source, made.tied_embeddings, made.vocabulary) == ("a test", True, 1000)


def test_rows_with_experts() -> None:
    assert row_model(MOE).layers == ("full-moe",) * 4
    assert row_model(MOE | {"n_dense_layers": "1"}).layers == ("full-dense",) + ("full-moe",) * 3
    alternating = row_model(MOE | {"moe_layer_pattern": "alternate dense/MoE"})
    assert alternating.layers == ("full-dense", "full-moe") * 2
    assert alternating.experts == Experts(8, 2, 256)


def test_windows_on_every_other_layer() -> None:
    assert row_model(DENSE | {"swa_window": "128", "swa_layers": "2"}).layers == ("sliding-dense", "full-dense") * 2


def test_a_hybrid_row() -> None:
    made = row_model(HYBRID)
    assert made.layers == ("mamba", "moe", "full", "moe")
    assert (made.mtp, made.mtp_depth) == (("full", "moe"), 2)
    assert made.experts == Experts(8, 2, 256, latent=128)


def test_overrides() -> None:
    assert len(row_model(DENSE, "layers=2").layers) == 2
    made = row_model(DENSE, "layers=2;hidden=1024")
    assert made.hidden == 1024


@pytest.mark.data
def test_families_are_completed_by_what_a_result_overrides(data: Path) -> None:
    rows = read_rows(data / "training" / "models.csv")
    shape = "layers=70;hidden=14336;ffn_hidden=57344;heads=112;kv_heads=112;head_dim=128"
    assert row_model(rows["bloom-family"], shape).vocabulary == 250880
    with pytest.raises(InputError, match="bloom-family: layers"):
        row_model(rows["bloom-family"])


@pytest.mark.parametrize(
    ("row", "overrides", "message"),
    [
        (DENSE | {"layers": "4.5"}, "", "mine: layers"),
        (DENSE | {"layers": "1000000000000"}, "", "4096 at most"),
        (DENSE | {"layers": "-4"}, "", "mine: layers"),
        (DENSE | {"hidden": "nan"}, "", "mine: hidden"),
        (DENSE | {"vocab": ""}, "", "mine: vocab"),
        (DENSE | {"heads": "8²"}, "", "mine: heads"),
        (HYBRID | {"hybrid": "ME*X"}, "", "4 letters out of M"),
        (DENSE | {"swa_window": "128", "swa_layers": "9"}, "", "4 at most"),
        (DENSE, "layers", "column=number"),
        (DENSE, "layers=x", "mine: layers"),
    ],
)
def test_rows_that_cannot_be(row: dict[str, str], overrides: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        row_model(row, overrides)


@pytest.mark.parametrize(("text", "message"), [("a,b\n1,2\n", "the column 'model_id'"), ("", "the column 'model_id'")])
def test_tables_that_are_none(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "models.csv"
    file.write_text(text)
    with pytest.raises(InputError, match=message):
        read_rows(file)
    with pytest.raises(InputError, match="a readable CSV file"):
        read_rows(tmp_path / "absent.csv")
