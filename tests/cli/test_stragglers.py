"""Does `commsim stragglers` say what stragglers cost, and refuse in one line what cannot be?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Answer

JOB: tuple[object, ...] = ("stragglers", "llama3.1-8b", "hgx-h100", "--gpus", 32)
JOB += ("--plan", "tensor=2,pipeline=2,data=8", "--global-batch", 32, "--sequence", 4096, "--steps", 200)
SLOW = ("--cause", "slow-rank: factor=1.3 ranks=9")


def test_document(commsim: Callable[..., Answer]) -> None:
    found = commsim(*JOB, *SLOW, "--cause", "jitter: sigma=0.02", "--json").document
    assert list(found)[:3] == ["step_time_s", "slowdown", "ideal_s"]
    assert set(found["step_time_s"]) >= {"mean", "p50", "p95", "p99", "mean_error_s"}
    assert found["slowdown"]["p99"] >= found["slowdown"]["p50"] > 1.05
    assert found["slowdown"]["mean"] == pytest.approx(found["step_time_s"]["mean"] / found["ideal_s"])
    assert found["tokens_per_s"] == pytest.approx(32 * 4096 / found["step_time_s"]["mean"])
    slow, jitter = found["by_cause"]
    assert slow["cause"] == "slow-rank: factor=1.3 ranks=9"
    assert slow["slowdown_alone"] > jitter["slowdown_alone"] == pytest.approx(slow["slowdown_without"])
    above = found["step_time_s"]["mean"] - found["ideal_s"]
    assert sum(found["amplified"].values()) == pytest.approx(above)
    assert found["waits"]["groups"][0]["ranks"] == [8, 9]
    assert (found["steps"], found["jobs"], found["seed"]) == (200, 200, 0)
    assert found["assumptions"]


def test_same_seed_same_answer(commsim: Callable[..., Answer]) -> None:
    first, again, other = (commsim(*JOB, "--preset", "shared", "--seed", seed, "--json").out for seed in (3, 3, 4))
    assert first == again != other


def test_the_table_says_the_same(commsim: Callable[..., Answer]) -> None:
    more = ("--curve", "--tokens", "1T", "--checkpoint-cost", "20s", "--mitigate", "spares: count=1")
    answer = commsim(*JOB, *SLOW, *more)
    assert answer.code == 0
    assert [line for line in answer.out.splitlines() if len(line) > 80] == []
    words = (
        "who is waited for",
        "ranks 8-9",
        "what each cause costs",
        "fixing it saves",
        "days",
        "spares loses",
        "100,000",
    )
    assert [word for word in (*words, "groups wait in each operation") if word not in answer.out] == []


def test_what_else_is_asked_for(commsim: Callable[..., Answer]) -> None:
    more = ("--curve", "--also", "gb200-nvl72", "--tokens", "1e12", "--checkpoint-every", "30min", "--mtbf", "3h")
    found = commsim(*JOB, *SLOW, *more, "--mitigate", "move-stage", "--mitigate", "spares", "--json").document
    assert {row["system"] for row in found["curve"]} == {"hgx-h100", "gb200-nvl72"}
    assert [row["gpus"] for row in found["curve"] if row["system"] == "hgx-h100"][-1] == 100_000
    training = found["training"]
    assert training["mean_time_between_failures_s"] == pytest.approx(3 * 3600)
    assert training["time_s"]["p5"] < training["time_s"]["mean"] < training["time_s"]["p95"]
    assert training["useful_share"] == pytest.approx(1 / (1 + found["lost_to_failures"]))
    assert [one["mitigation"] for one in found["mitigations"]] == ["move-stage", "spares"]
    assert all(one["source"] and one["loses"] for one in found["mitigations"])


def test_who_measured_a_cause(commsim: Callable[..., Answer]) -> None:
    answer = commsim(*JOB, "--preset", "shared", *SLOW, "--sources")
    assert "MegaScale" in answer.out
    assert "Greyhound" in answer.out
    assert "as given" in answer.out
    found = commsim(*JOB, "--preset", "shared", *SLOW, "--json").document
    assert [bool(one["source"]) for one in found["by_cause"]] == [True] * 6 + [False]


def test_a_training_without_failures_says_so(commsim: Callable[..., Answer]) -> None:
    assert "without failures" in commsim(*JOB, *SLOW, "--tokens", "15B").out


def test_causes_of_a_file_and_of_a_cluster_add_up(commsim: Callable[..., Answer], tmp_path: Path) -> None:
    file = tmp_path / "causes.yaml"
    file.write_text("causes:\n- {kind: pause, every: 20}\n- 'jitter: sigma=0.03'\n", encoding="utf-8")
    found = commsim(*JOB, "--causes", file, *SLOW, "--preset", "dedicated", "--json").document
    kinds = [one["kind"] for one in found["by_cause"]]
    assert kinds[-3:] == ["pause", "jitter", "slow-rank"]
    assert len(kinds) == 8


@pytest.mark.parametrize("figure", ["distribution", "heatmap", "timeline", "tornado", "curve"])
def test_figures(commsim: Callable[..., Answer], tmp_path: Path, figure: str) -> None:
    file = tmp_path / "figure.svg"
    assert commsim(*JOB, *SLOW, "--plot", file, "--figure", figure).code == 0
    assert "<svg" in file.read_text(encoding="utf-8")


def test_an_interrupted_run_answers_with_what_is_done(
    commsim: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("rich.progress.Progress.update", stop)
    answer = commsim(*JOB, *SLOW, "--steps", 100_000, "--json")
    assert answer.code == 4
    assert "interrupted after" in answer.err
    assert 0 < json.loads(answer.out)["steps"] < 100_000


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--cause", "jitter: sigma=1e9"), "lognormal: sigma: 1000000000.0; between 0 and 10"),
        (("--cause", "slow-rank: factor=1e300"), "slow rank: factor: 1e+300; a number above 0, 1e+09 at most"),
        (("--cause", "data-loading: lasting=constant(value=1e300)"), "causes: 1e+300; steps that end within 1e+12 s"),
        (("--cause", "pause: every=9 seconds=5"), "pause: seconds: '5'; write a number with its unit, such as '50 ms'"),
        (("--cause", "zzz"), "cause: 'zzz'; no such kind (one of: effects, variation, jitter"),
        (("--cause", "jitter", "--figure", "heatmap"), "figure: 'heatmap'; --plot FILE belongs beside it"),
        ((), "cause: nothing; --cause, --causes FILE or --preset dedicated belongs here"),
        (("--cause", "slow-rnk"), "did you mean 'slow-rank'?"),
        (("--cause", "slow-rank: factor=-2"), "slow-rank: factor: -2.0"),
        (("--cause", "slow-rank: chance=2"), "slow rank: chance: 2"),
        (("--cause", "slow-rank: ranks=32"), "rank: 32; one of the 32"),
        (("--cause", "data-loading: lasting=pareto(0.9)"), "there is no mean below"),
        (("--cause", "expert-imbalance"), "a model with experts"),
        (("--preset", "dedicatd"), "did you mean 'dedicated'?"),
        (("--causes", "nowhere.yaml"), "nowhere.yaml"),
        ((*SLOW, "--mitigate", "spars"), "did you mean 'spares'?"),
        ((*SLOW, "--mitigate", "planned-gc"), "it mends the kind of cause 'pause'"),
        ((*SLOW, "--tokens", "many"), "tokens: 'many'"),
        ((*SLOW, "--mtbf", "3h"), "--checkpoint-every or --checkpoint-cost"),
        ((*SLOW, "--steps", "0"), "steps: 0"),
        ((*SLOW, "--jobs", "500"), "jobs: 500"),
        ((*SLOW, "--plot", "x.png", "--figure", "heat"), "no such figure"),
    ],
)
def test_refuses(commsim: Callable[..., Answer], arguments: tuple[str, ...], says: str) -> None:
    answer = commsim(*JOB, *arguments)
    assert answer.code == 2
    assert says in answer.err
    assert answer.err.count("\n") == 1
