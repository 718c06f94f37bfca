"""Does `commsim replay` say who is slow and why, write what it fits, and refuse what is no trace in a line?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from commsim.stragglers.causes import causes
from tests.stragglers.traced import SHAPE, even

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Answer

KEYS = ["actual_s", "ideal_s", "slowdown", "by_stage", "by_rank", "by_op", "worst_workers", "cause"]


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Return steps of which worker (stage 1, data rank 3) is slow, and passes jitter."""
    seconds, rng = even(), np.random.default_rng(0)
    for op in ("forward-compute", "backward-compute"):
        seconds[op] = seconds[op] * rng.lognormal(0, 0.01, SHAPE)
        seconds[op][1, :, :, 3] *= 1.5
    path = tmp_path / "job.npz"
    np.savez(path, **{op.replace("-", "_"): one for op, one in seconds.items()})  # type: ignore[arg-type]
    return path


def test_document(commsim: Callable[..., Answer], archive: Path) -> None:
    answer = commsim("replay", archive, "--json")
    found = answer.document
    assert answer.code == 0
    assert [key for key in found if key in KEYS] == KEYS
    assert found["slowdown"] == pytest.approx(found["actual_s"] / found["ideal_s"])
    assert (found["cause"], found["worst_workers"][0]["rank"]) == ("one worker", 11)
    assert next(iter(found["by_stage"])) == "1"
    assert set(found["by_stage"]) == {"0", "1", "2", "3"}
    assert found["M_W"] == pytest.approx(1.0, abs=0.1)
    assert set(found["slowdown_of_steps"]) == {"p50", "p90", "max"}
    assert len(found["workers"]) == 32


def test_for_people(commsim: Callable[..., Answer], archive: Path) -> None:
    answer = commsim("replay", archive)
    assert max(map(len, answer.out.splitlines())) <= 80
    for said in ("slowdown 1.", "cause: one worker", "stage 1", "data rank 3", "rank 11", "taken to be that of 1f1b"):
        assert said in answer.out


def test_fit_is_shown_and_written(commsim: Callable[..., Answer], archive: Path, tmp_path: Path) -> None:
    answer = commsim("replay", archive, "--fit", "--out", tmp_path / "causes.yaml")
    assert "slow-rank: factor=1.5" in answer.out
    assert "lognormal" in answer.out
    assert type(causes(tmp_path / "causes.yaml")[0]).__name__ == "SlowRank"
    document = commsim("replay", archive, "--fit", "--json").document["fit"]
    assert document["causes"][0]["kind"] == "slow-rank"
    assert {"law", "parameters", "mean", "sd", "aic", "ks_distance"} <= set(document["laws"]["operations"][0])


def test_figure(commsim: Callable[..., Answer], archive: Path, tmp_path: Path) -> None:
    assert commsim("replay", archive, "--plot", tmp_path / "a.svg").code == 0
    text = (tmp_path / "a.svg").read_text()
    assert "stage 3" in text or len(text) > 10_000


def test_a_trace_that_cannot_tell(commsim: Callable[..., Answer], tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("rank,op,duration\n0,backward,0.293\n1,backward,0.2922\n2,backward,0.293\n")
    answer = commsim("replay", tmp_path / "t.csv", "--json", "--plot", tmp_path / "a.png")
    assert answer.document["cause"] == "not identifiable"
    assert answer.document["actual_s"] is None
    assert "not identifiable" in commsim("replay", tmp_path / "t.csv").out


def test_dumps_of_every_rank(commsim: Callable[..., Answer], tmp_path: Path) -> None:
    for rank, last in enumerate((6, 6, 5)):
        entries = [{"collective_seq_id": one + 1, "profiling_name": "nccl:all_reduce"} for one in range(last)]
        told = {"pg_config": {"0": {"ranks": "[0, 1, 2]"}}, "pg_status": {}, "entries": entries}
        (tmp_path / f"nccl_trace_rank_{rank}.json").write_text(json.dumps(told))
    answer = commsim("replay", *(tmp_path / f"nccl_trace_rank_{rank}.json" for rank in range(3)), "--json")
    assert answer.document["cause"] == "rank 2 missing at seq 6"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["absent.npz"], "absent.npz"),
        (["{}", "--schedule", "1f2b"], "1f1b"),
        (["{}", "--virtual-stages", "3", "--schedule", "interleaved"], "multiple of 3"),
        (["{}", "--virtual-stages", "0"], "at least 1"),
        (["{}", "--plot", "a.txt"], ".png"),
        (["{}", "--out", "absent/causes.yaml"], "cannot be written"),
        (["{}", "{}.copy"], "one file holds all the ranks"),
    ],
)
def test_mistakes_are_a_line(commsim: Callable[..., Answer], archive: Path, arguments: list[str], said: str) -> None:
    archive.with_suffix(".npz.copy").write_bytes(archive.read_bytes())
    answer = commsim("replay", *(one.format(archive) for one in arguments))
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err
    assert answer.err.count("\n") == 1
