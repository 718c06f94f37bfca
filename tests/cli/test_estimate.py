"""Does `commsim estimate` say how long a step takes, and why?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from commsim.training.axes import AXES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Answer

KEYS = ["step_time_s", "tokens_per_s_per_gpu", "mfu", "model_flops_per_gpu", "memory_bytes", "fits", "breakdown"]
KEYS += ["assumptions", "range"]
JOB: tuple[object, ...] = ("estimate", "llama3.1-8b", "hgx-h100", "--gpus", 64, "--plan", "tensor=2,pipeline=2,data=16")
JOB += ("--global-batch", 64)


def test_document(commsim: Callable[..., Answer]) -> None:
    step = commsim(*JOB, "--json").document
    assert list(step) == KEYS
    assert list(step["breakdown"]) == ["compute_s", "bubble_s", "exposed_s", "optimizer_s"]
    assert set(step["breakdown"]["exposed_s"]) <= set(AXES)
    assert step["tokens_per_s_per_gpu"] == pytest.approx(64 * 8192 / step["step_time_s"] / 64)
    assert (step["fits"], step["range"]) == (True, None)


def test_the_parts_make_the_step(commsim: Callable[..., Answer]) -> None:
    step = commsim(*JOB, "--json").document
    parts = {**step["breakdown"], **step["breakdown"]["exposed_s"]}
    assert sum(value for key, value in parts.items() if key != "exposed_s") == pytest.approx(step["step_time_s"])


def test_the_table_says_the_same(commsim: Callable[..., Answer]) -> None:
    out, step = commsim(*JOB).out, commsim(*JOB, "--json").document
    assert f"{step['mfu']:.1%}" in out
    assert [line for line in out.splitlines() if len(line) > 80] == []
    assert [
        word for word in ("pipeline bubble", "exposed: tensor", "fits in", "taken for granted") if word not in out
    ] == []


def test_what_an_axis_says(commsim: Callable[..., Answer]) -> None:
    said = commsim(*JOB, "--explain", "tensor", "--json").document["explain"]
    assert {(one["axis"], one["ranks"]) for one in said} == {("tensor", 2)}
    assert {one["bottleneck"].partition(" (")[0] for one in said} <= {"nvlink4", "channels", "latency"}
    assert all(one["op"] in commsim(*JOB, "--explain", "tensor").out for one in said)


def test_sources_are_named(commsim: Callable[..., Answer]) -> None:
    document = commsim(*JOB, "--sources", "--json").document
    cited = {name for one in document["sources"] for name in one["documents"]}
    assert cited == set(document["documents"])
    assert {one["what"] for one in document["sources"]} >= {"nvlink4 bandwidth", "h100-sxm bf16 dense peak"}
    assert "nvlink4 bandwidth" in commsim(*JOB, "--sources").out


def test_uncertain_machines_give_a_range(commsim: Callable[..., Answer]) -> None:
    step = commsim(*JOB[:2], "vr-nvl72", *JOB[3:], "--json").document
    assert set(step["range"]) == {"step_time_s", "tokens_per_s_per_gpu", "mfu"}
    assert all(low <= step[key] <= high for key, (low, high) in step["range"].items())


@pytest.mark.parametrize(
    ("option", "value", "slower"),
    [("--recompute", "full", True), ("--precision", "fp8", False), ("--nic", "50 Gb/s", True)],
)
def test_options_reach_the_step(commsim: Callable[..., Answer], option: str, value: str, *, slower: bool) -> None:
    before, after = commsim(*JOB, "--json").document, commsim(*JOB, option, value, "--json").document
    assert (after["step_time_s"] > before["step_time_s"]) == slower


def test_options_reach_the_plan(commsim: Callable[..., Answer]) -> None:
    """ZeRO 3 keeps no whole weights; more chunks a stage make a smaller bubble."""
    plain = commsim(*JOB, "--json").document
    assert commsim(*JOB, "--zero", 3, "--json").document["memory_bytes"] < plain["memory_bytes"]
    assert (
        commsim(*JOB, "--virtual-stages", 2, "--json").document["breakdown"]["bubble_s"]
        < plain["breakdown"]["bubble_s"]
    )


def test_without_sequence_parallelism_tensor_ranks_all_reduce(commsim: Callable[..., Answer]) -> None:
    said = commsim(*JOB, "--no-sequence-parallel", "--explain", "tensor", "--json").document["explain"]
    assert {one["op"] for one in said} == {"all_reduce"}


def test_own_model(commsim: Callable[..., Answer], tmp_path: Path) -> None:
    config = {"model_type": "llama", "hidden_size": 1024, "num_hidden_layers": 4, "num_attention_heads": 8}
    config |= {"intermediate_size": 4096, "vocab_size": 32000}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    answer = commsim("estimate", tmp_path, "hgx-h100", "--plan", "data=8", "--global-batch", 8)
    assert (answer.code, answer.err) == (0, "")


def test_plot(commsim: Callable[..., Answer], tmp_path: Path) -> None:
    file = tmp_path / "step.png"
    assert commsim(*JOB, "--plot", file).code == 0
    assert file.read_bytes().startswith(b"\x89PNG")
