"""Is it said when a trainer's file is written for another model than the one that is named?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from commsim.training.configs.well_known import model
from commsim.training.trainers.read import read_job
from commsim.training.trainers.trained import Trained

if TYPE_CHECKING:
    from pathlib import Path

MIXTRAL = "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --num-experts 8 --expert-model-parallel-size 8"
LLAMA_70B = "num_layers: 80, hidden_size: 8192, num_attention_heads: 64"
FILES = {
    "job.sh": MIXTRAL,
    "nemo.yaml": f"{{trainer: {{}}, model: {{tensor_model_parallel_size: 8, {LLAMA_70B}}}}}",
    "titan.toml": '[model]\nname = "llama3"\nflavor = "70B"\n[parallelism]\ntensor_parallel_degree = 8\n',
}
NOT_70B = "a hidden size of 8,192, not 4,096; 80 layers, not 32; 64 attention heads, not 32"


@pytest.mark.parametrize(
    ("file", "name", "said"),
    [
        ("job.sh", "mixtral-8x7b", ""),
        ("job.sh", "llama3.1-8b", "8 experts, not 0"),
        ("nemo.yaml", "llama3.1-70b", ""),
        ("nemo.yaml", "llama3.1-8b", NOT_70B),
        ("titan.toml", "llama3.1-70b", ""),
        ("titan.toml", "llama3.1-8b", NOT_70B),
    ],
)
def test_what_differs(tmp_path: Path, file: str, name: str, said: str) -> None:
    (tmp_path / file).write_text(FILES[file])
    assert read_job(tmp_path / file).trains.unlike(model(name)) == said


def test_a_file_without_experts_is_of_a_dense_model() -> None:
    """Mixtral 8x7B and Llama 3.1 8B have the same layers but for the experts (Jiang et al. 2024, table 1)."""
    dense = Trained.of(model("llama3.1-8b"))
    assert dense.unlike(model("mixtral-8x7b")) == "0 experts, not 8"
    assert Trained(layers=32).unlike(model("mixtral-8x7b")) == ""


def test_a_hybrid_has_heads_of_several_kinds() -> None:
    """The 32 heads of attention in a model whose state spaces have 128 (NVIDIA 2025, Nemotron 3 Super)."""
    hybrid = model("nemotron3-super")
    assert {block.mixer.heads for block in hybrid.blocks if block.mixer} == {32, 128}
    assert all(not Trained(heads=heads).unlike(hybrid) for heads in (32, 128))
    assert Trained(heads=64).unlike(hybrid) == "64 attention heads, not 32"
