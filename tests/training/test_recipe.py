"""Is a recipe read as its trainers mean it, and refused in one line where it is none?"""

from __future__ import annotations

from typing import Any

import pytest

from commsim.errors import InputError
from commsim.training.operations import FULL, NOTHING, SELECTIVE
from commsim.training.recipe import PRECISIONS, Recipe


@pytest.mark.parametrize(
    ("recompute", "modules"),
    [
        ("none", NOTHING),
        ("selective", SELECTIVE),
        ("full", FULL),
        ("moe_act+layernorm", frozenset({"moe_act", "layernorm"})),
        ("selective+mlp", SELECTIVE | {"mlp"}),
    ],
)
def test_recompute(recompute: str, modules: frozenset[str]) -> None:
    assert Recipe(8, recompute=recompute).recomputed == modules


def test_narrow_formats_are_those_of_the_layers_matmuls() -> None:
    """Attention and logits stay in bf16 (Transformer Engine; Megatron-Core)."""
    formats = {
        name: (Recipe(8, precision=name).matmul_format, Recipe(8, precision=name).other_format) for name in PRECISIONS
    }
    assert formats["bf16"] == ("bf16", "bf16")
    assert formats["fp8"] == formats["mxfp8"] == ("fp8", "bf16")
    assert formats["nvfp4"][1] == "bf16"


@pytest.mark.parametrize("name", ["global_batch", "micro_batch", "sequence"])
@pytest.mark.parametrize("given", [0, -1, 1.5, True, 1e30, 10**30, "64", None, float("nan")])
def test_counts_are_whole_numbers(name: str, given: object) -> None:
    where = name.replace("_", "-")
    with pytest.raises(InputError, match=f"{where}: .*; a whole number from 1 to 1e.09 belongs here"):
        Recipe(**{"global_batch": 8, name: given})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"precision": "fp9"}, "precision: 'fp9'; no such precision; did you mean 'fp"),
        ({"recompute": "ful"}, "recompute: 'ful'; no such choice; did you mean 'full'?"),
        ({"recompute": "full+attn"}, "recompute: 'attn'; no such choice"),
        ({"unfused": "norm+los"}, "unfused: 'los'; no such choice; did you mean 'loss'?"),
        ({"recompute_layers": 4}, "recompute-layers: 4; it needs recompute=full (or some modules) beside it"),
        ({"recompute": "full", "recompute_layers": -1}, "recompute-layers: -1; a whole number that is not negative"),
        ({"recompute": "full", "recompute_layers": 1.5}, "recompute-layers: 1.5; a whole number that is not negative"),
        ({"imbalance": 0.5}, "imbalance: 0.5; a number of at least 1 belongs here"),
        ({"imbalance": float("nan")}, "imbalance: nan; a number of at least 1 belongs here"),
        ({"imbalance": float("inf")}, "imbalance: inf; a number of at least 1 belongs here"),
        ({"gradient_bytes": 0}, "gradient-bytes: 0; bytes, such as 2 or 4, belong here"),
        ({"weight_bytes": float("nan")}, "weight-bytes: nan; bytes, such as 2 or 4, belong here"),
    ],
)
def test_mistakes(options: dict[str, Any], line: str) -> None:
    with pytest.raises(InputError) as error:
        Recipe(8, **options)
    assert str(error.value).startswith(line)
