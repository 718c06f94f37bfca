"""Does the command line explain two jobs, and a job that was measured?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Answer

JOB = "llama3.1-8b hgx-h100 --gpus 64 --plan tensor=2,pipeline=2,data=16 --global-batch 64"


def test_two_jobs(commsim: Callable[..., Answer]) -> None:
    answer = commsim("compare", JOB, f"{JOB} --recompute full")
    assert (answer.code, answer.err) == (0, "")
    assert "changed alone in A" in answer.out
    found = commsim("compare", JOB, f"{JOB} --recompute full", "--json").document
    ours, theirs = (found[side]["step_time_s"] for side in ("a", "b"))
    assert [line.split()[-2][0] for line in answer.out.splitlines() if line.split()[:1] == ["compute"]] == ["+"]
    shown = {line.split()[0]: line.split()[-1] for line in answer.out.splitlines() if line}
    assert shown["exposed:"] == "0", "sums in another order differ by less than a nanosecond"
    assert shown["recompute"] == f"{theirs / ours - 1:+.1%}", "slower than A by so much of A"
    assert shown["tokens/s/GPU"] == f"{ours / theirs - 1:+.1%}"
    assert f"+{(theirs - ours) * 1e3:.3g} ms" in answer.out
    assert [line for line in answer.out.splitlines() if len(line) > 80] == []


def test_only_what_differs(commsim: Callable[..., Answer]) -> None:
    whole = commsim("compare", JOB, f"{JOB} --recompute full --no-overlap-data", "--json").document
    short = commsim("compare", JOB, "recompute=full overlap_data=false", "--json").document
    assert whole == short
    assert {one["what"] for one in short["changes"]} == {"recompute", "overlap-data"}
    assert short["b"]["step_time_s"] > short["a"]["step_time_s"]


def test_jobs_in_files(commsim: Callable[..., Answer], tmp_path: Path) -> None:
    path = tmp_path / "job.txt"
    path.write_text(JOB.replace("--plan", "\\\n  --plan") + " # ours\n")
    found = commsim("compare", path, "micro-batch=2", "--json").document
    assert [one["what"] for one in found["changes"]] == ["micro-batch"]


def test_another_system(commsim: Callable[..., Answer]) -> None:
    found = commsim("compare", JOB, "system=hgx-h200 recompute=full", "--json").document
    assert [(one["what"], one["b"]) for one in found["changes"] if one["what"] == "system"] == [
        ("system", "64 GPUs of hgx-h200")
    ]


def test_measured(commsim: Callable[..., Answer]) -> None:
    job = ("estimate", *JOB.split())
    seconds = commsim(*job, "--recompute", "full", "--json").document["step_time_s"]
    answer = commsim(*job, "--measured", f"elapsed time per iteration (ms): {seconds * 1e3:.1f} |", "--json")
    assert answer.document["gap"]["reasons"][0]["reason"] == "full-recompute"
    assert "every layer is recomputed" in commsim(*job, "--measured", f"{seconds}s").out


def test_sensitivity(commsim: Callable[..., Answer]) -> None:
    found = commsim("estimate", *JOB.split(), "--sensitivity", "--json").document["sensitivity"]
    assert found[0]["figure"] == "compute"
    assert "what the step depends on" in commsim("estimate", *JOB.split(), "--sensitivity").out


def test_a_whole_command_line_is_a_job_and_values_may_be_quoted(commsim: Callable[..., Answer]) -> None:
    plain = commsim("compare", JOB, f"{JOB} --nic '200 Gb/s'", "--json")
    assert plain.code == 0
    assert commsim("compare", f"commsim estimate {JOB}", "nic='200 Gb/s'", "--json") == plain


def test_what_limits_when_links_do_not(commsim: Callable[..., Answer]) -> None:
    job = "llama3.1-8b hgx-h100 --nodes 2 --plan data=16 --global-batch 16 --zero 3"
    shown = " ".join(
        commsim("estimate", *job.split(), "--sensitivity").out.split("what the step depends on")[1].split()
    )
    assert "channels -0." in shown
    assert "copy more slowly than links carry, quicker links change nothing" in shown
    assert "-0.000 %" not in shown


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("compare", JOB, "nowhere.txt"), "compare: B: 'nowhere.txt'; No such file"),
        (("compare", "llama3.1-8b hgx-h100", "recompute=full"), "Missing option '--plan'"),
        (("compare", JOB, "recomput=full"), "No such option: --recomput"),
        (("compare", JOB, "precision=fp7"), "no such precision"),
        (("compare", JOB, "system=hgx-h30"), "system: 'hgx-h30'"),
        (("compare", JOB, f"{JOB} --help"), "No such option: --help"),
        (("compare", JOB, JOB.replace("-8b", "-70b")), "steps of two models differ"),
        (("compare", JOB, "llama 'unclosed"), "No closing quotation"),
        (("compare", JOB, "nodes="), "compare: B: 'nodes='; NAME=VALUE of options belong here"),
        (("compare", JOB, "nodes=2 full"), "NAME=VALUE of options belong here"),
        (("compare", JOB, ""), "compare: B: nothing; there is no job"),
        (("compare", "commsim estimate", "nodes=2"), "compare: A: 'commsim estimate'; there is no job"),
        (("estimate", *JOB.split(), "--measured", "soon"), "measured"),
        (("estimate", *JOB.split(), "--measured", "12.3"), "unit"),
    ],
)
def test_mistakes(commsim: Callable[..., Answer], arguments: tuple[str, ...], says: str) -> None:
    answer = commsim(*arguments)
    assert (answer.code, answer.out) == (2, "")
    assert says in answer.err
    assert answer.err.count("\n") == 1
