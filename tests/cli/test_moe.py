"""Does `commsim cost SYSTEM dispatch` answer in every mode, and does `validate moe` say how near that comes?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.validation.test_moe import write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Answer

ASKED = ("--tokens", 4096, "--hidden", 7168, "--top-k", 8, "--experts", 256)
KEYS = ["op", "ranks", "size_bytes", "time_s", "algbw_bytes_per_s", "busbw_bytes_per_s", "algorithm", "protocol"]


def test_document(commsim: Callable[..., Answer]) -> None:
    """DeepEP's published 58 GB/s on 32 H800, its own node counted."""
    options = ("--nodes", 4, "--groups", 4, "--precision", "fp8", "--json")
    (row,) = commsim("cost", "hgx-h800", "dispatch", *ASKED, *options).document
    assert list(row) == [*KEYS, "bottleneck", "range"]
    assert (row["op"], row["ranks"], row["algorithm"], row["range"]) == ("dispatch", 32, "normal", None)
    assert row["protocol"] == "token_node_pairs_incl_own"
    assert row["algbw_bytes_per_s"] == pytest.approx(58e9, rel=0.05)
    assert row["size_bytes"] == pytest.approx(row["algbw_bytes_per_s"] * row["time_s"], rel=1e-6)


def test_every_mode_quickest_first(commsim: Callable[..., Answer]) -> None:
    rows = commsim("cost", "hgx-h100", "combine", "--nodes", 8, *ASKED, "--ep", 32, "--all", "--json").document
    assert {row["algorithm"] for row in rows} == {"nccl", "normal", "hybrid", "low_latency"}
    times = [row["time_s"] for row in rows]
    assert times == sorted(times)
    assert {row["ranks"] for row in rows} == {32}


def test_options_reach_the_kernels(commsim: Callable[..., Answer]) -> None:
    def time(*options: object) -> float:
        found: float = commsim("cost", "hgx-b200", "dispatch", *ASKED, "--json", *options).document[0]["time_s"]
        return found

    plain = time()
    assert time("--precision", "fp8") < plain < time("--skew", 1.07)
    assert time("--mode", "hybrid") < plain < time("--multiprocessors", 8)
    assert time("--ep", 2) < plain
    assert time("--ep", 1) == 0.0


def test_people_see_what_is_counted(commsim: Callable[..., Answer]) -> None:
    answer = commsim("cost", "vr-nvl72", "dispatch", "--ep", 64, *ASKED, "--skew", 1.07, "--all")
    words = " ".join(answer.out.split())
    for said in ("dispatch among 64 GPUs of vr-nvl72", "each to 8 of 256 experts", "range", "times the mean", "counts"):
        assert said in words
    assert max(map(len, answer.out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("dispatch", "--hidden", 7168, "--top-k", 8, "--experts", 256), "tokens: nothing; --tokens N belongs to"),
        (("dispatch", *ASKED, "--size", "1MiB"), "size: '1MiB'; dispatch takes --tokens"),
        (("dispatch", *ASKED, "--algorithm", "ring"), "algorithm: 'ring'"),
        (("dispatch", *ASKED, "--ep", 16), "ep: 16; 1 to 8 belong here"),
        (("dispatch", *ASKED, "--ep", 0), "ep: 0"),
        (("dispatch", *ASKED, "--mode", "norml"), "did you mean 'normal'"),
        (("dispatch", *ASKED, "--mode", "normal", "--all"), "either --mode or --all"),
        (("dispatch", *ASKED, "--precision", "fp7"), "precision: 'fp7'"),
        (("dispatch", *ASKED, "--skew", -1), "skew: -1.0"),
        (("dispatch", *ASKED, "--library", "ideal"), "take --mode nccl"),
        (("combine", *ASKED, "--mode", "nccl", "--multiprocessors", 8), "multiprocessors: 8"),
        (("dispatch", *ASKED, "--experts", 4), "top-k: 8"),
        (("all_reduce", "--size", "1MiB", "--ep", 8), "ep: 8; it belongs to dispatch and combine"),
    ],
)
def test_mistakes(commsim: Callable[..., Answer], arguments: tuple[object, ...], said: str) -> None:
    answer = commsim("cost", "hgx-h100", *arguments)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.count("\n") == 1
    assert said in answer.err


def test_the_wire_alone(commsim: Callable[..., Answer]) -> None:
    def time(library: str) -> float:
        options = ("--mode", "nccl", "--library", library, "--json")
        found: float = commsim("cost", "hgx-h100", "dispatch", *ASKED, *options).document[0]["time_s"]
        return found

    assert time("ideal") < time("nccl")


def test_validate_document(commsim: Callable[..., Answer], tmp_path: Path) -> None:
    path = write(tmp_path, {}, {"phase": "prepare"}, {"health": "degraded"})
    found = commsim("validate", "moe", path, "--json").document
    assert [case["row_id"] for case in found["cases"]] == ["R0", "R2"]
    assert set(found["cases"][0]) == {"row_id", "measured_s", "predicted_s", "error", "assumptions"}
    assert [one["row_id"] for one in found["skipped"]] == ["R1"]
    assert (found["summary"]["counted"]["count"], found["summary"]["all"]["count"]) == (1, 2)
    assert found["summary"]["skipped"] == 1


def test_validate_shipped_figures_for_people(commsim: Callable[..., Answer], tmp_path: Path) -> None:
    answer = commsim("validate", "moe", "--plot", tmp_path / "a.svg")
    assert answer.code == 0
    for said in ("healthy, bytes counted", "by mode", "by machine", "by source", "assumed", "constants of the kernels"):
        assert said in answer.out
    assert (tmp_path / "a.svg").read_text(encoding="utf-8").startswith("<?xml")


def test_validate_nothing_is_no_failure(commsim: Callable[..., Answer], tmp_path: Path) -> None:
    answer = commsim("validate", "moe", write(tmp_path, {"phase": "prepare"}))
    assert (answer.code, "not compared" in answer.out) == (0, True)


def test_validate_mistakes(commsim: Callable[..., Answer], tmp_path: Path) -> None:
    path = write(tmp_path, {})
    for arguments in ((path, path), (path, "--models", path), (tmp_path / "none.csv",)):
        answer = commsim("validate", "moe", *arguments)
        assert (answer.code, answer.err.count("\n")) == (2, 1)
