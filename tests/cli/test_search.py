"""Does `commsim search` find the best plans, and say why each is not the first?"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from commsim.training.search import sweep

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from commsim.training.search.sweep import Case, Outcome
    from tests.cli.conftest import Answer

KEYS = ["plan", "virtual_stages", "zero", "micro_batch", "recompute", "step_time_s", "memory_bytes", "why_not_first"]
JOB: tuple[object, ...] = ("search", "llama3.1-8b", "hgx-h100", "--gpus", 16, "--global-batch", 32, "--top", 3)


def test_document(commsim: Callable[..., Answer]) -> None:
    rows = commsim(*JOB, "--json").document
    assert [list(row) for row in rows] == [KEYS] * 3
    assert [bool(row["why_not_first"]) for row in rows] == [False, True, True]
    assert rows == sorted(rows, key=lambda row: row["step_time_s"])


def test_a_plan_that_was_found_can_be_estimated(commsim: Callable[..., Answer]) -> None:
    row = commsim(*JOB, "--json").document[0]
    options = [f"--{key.replace('_', '-')}={row[key]}" for key in KEYS[1:5]]
    step = commsim("estimate", *JOB[1:7], "--plan", row["plan"], *options, "--json").document
    assert (step["step_time_s"], step["memory_bytes"], step["fits"]) == pytest.approx(
        (row["step_time_s"], row["memory_bytes"], True), rel=1e-12
    )


def test_the_table_says_the_same(commsim: Callable[..., Answer]) -> None:
    out, rows = commsim(*JOB).out, commsim(*JOB, "--json").document
    assert "plans divide" in out
    assert all(row["plan"] in out for row in rows)
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize("columns", [10, 50, 80, 200])
@pytest.mark.parametrize("more", [(), ("--sweep", "gpus=8,16")])
def test_no_option_and_no_part_is_broken_in_two(
    commsim: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch, columns: int, more: tuple[str, ...]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = commsim(*JOB, "--tensor", 2, "--pipeline", 2, *more).out.splitlines()
    cut = ("--zero", "--micro-batch", "--virtual-stages", "--recompute", "exposed", "compute", "bubble")
    assert any("--zero" in line for line in lines) == (columns >= 50)  # below that no option fits
    if columns >= 50:
        assert [line for line in lines if re.sub(r" +[\d.]+ m?s +[\d.]+ GB$", "", line).endswith(cut)] == []


def test_choices_and_the_front(commsim: Callable[..., Answer]) -> None:
    chosen = "--tensor", "2,4", "--context", 1, "--zero", "1,3", "--recompute", "none,full", "--pareto", "--json"
    rows = commsim(*JOB, *chosen).document
    assert {row["recompute"] for row in rows} <= {"none", "full"}
    assert all(row["plan"].startswith(("tensor=2", "tensor=4")) for row in rows)
    assert [row["memory_bytes"] for row in rows] == sorted((row["memory_bytes"] for row in rows), reverse=True)


def test_figure(commsim: Callable[..., Answer], tmp_path: Path) -> None:
    commsim(*JOB, "--plot", tmp_path / "front.svg")
    assert "llama3.1-8b on 16 GPUs" in (tmp_path / "front.svg").read_text(encoding="utf-8")


def test_a_sweep_that_finds_nothing_says_why_and_fails(commsim: Callable[..., Answer]) -> None:
    answer = commsim("search", "llama3.1-405b", "hgx-h100", "--global-batch", "8", "--sweep", "nodes=1,2")
    assert answer.code == 2
    assert answer.out.count("plans fits; the nearest") == 2
    assert answer.err == "commsim: sweep: '2 searches'; at least one that a plan fits belongs among them\n"


def test_sweep(commsim: Callable[..., Answer]) -> None:
    rows = commsim(*JOB[:3], *JOB[5:], "--sweep", "nodes=1,2", "--sweep", "model=llama3.1-8b,llama3.1-405b", "--json")
    told = [(row["model"], row["gpus"], "error" in row) for row in rows.document]
    assert list(dict.fromkeys(told)) == [
        ("llama3.1-8b", 8, False),
        ("llama3.1-405b", None, True),
        ("llama3.1-8b", 16, False),
    ]
    out = commsim(*JOB, "--sweep", "gpus=8,16").out
    assert "llama3.1-8b on hgx-h100, 16 GPUs" in out


def test_who_interrupts_keeps_what_is_done(commsim: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(cases: list[Case], **_: object) -> Iterator[Outcome]:
        yield sweep.outcome(cases[0])
        raise KeyboardInterrupt

    monkeypatch.setattr("commsim.cli.search.searches", interrupted)
    answer = commsim(*JOB, "--sweep", "gpus=8,16", "--json")
    assert answer.code == 4
    assert {row["gpus"] for row in answer.document} == {8}
    assert answer.err == "commsim: search: interrupted after 1 of 2 searches; they are in the answer\n"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--tensor", "3"), "no plan divides the model, the batch and the machine"),
        (("--tensor", "two"), "tensor: 'two'; whole numbers belong here, as in 4,8"),
        (("--recompute", "selectiv"), "did you mean 'selective'"),
        (("--sweep", "node=1,2"), "did you mean 'nodes'"),
        (("--sweep", "nodes=1", "--pareto"), "a figure or a front is of one search"),
        (("--sweep", "system=hgx-h100,hgx-h20x"), "system: 'hgx-h20x'; no such name in the catalogue"),
        (("--sweep", "model=llama3.1-8,llama3.1-8b"), "model: 'llama3.1-8'; no such model"),
        (("--dask", "tcp://127.0.0.1:1"), "--sweep WHAT=A,B belongs beside it"),
    ],
)
def test_mistakes(commsim: Callable[..., Answer], options: tuple[str, ...], told: str) -> None:
    answer = commsim(*JOB, *options)
    assert told in answer.err
    assert (answer.code, answer.err.count("\n")) == (2, 1)


def test_a_batch_is_asked_for(commsim: Callable[..., Answer]) -> None:
    assert "global-batch: nothing; the sequences of one step belong here" in commsim(*JOB[:5]).err
