"""Does `commsim validate` say how near it comes, and refuse what is no table in a line?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.measurement.printed import log
from tests.validation.published_rows import SHIPPED, cells, write
from tests.validation.tables import write as table

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Answer

MODELS = str(SHIPPED / "models.csv")
COLLECTIVES: dict[str, dict[str, str]] = {"low": {"health": "degraded"}, "rccl": {"library": "mpi"}}


def test_document(commsim: Callable[..., Answer], tmp_path: Path) -> None:
    rows = [cells(row_id="A1"), cells(row_id="A2", tp="3"), cells(row_id="A3", headline="0")]
    answer = commsim("validate", "training", write(tmp_path / "a.csv", *rows), "--models", MODELS, "--json")
    found = answer.document
    assert answer.code == 0
    assert [case["row_id"] for case in found["cases"]] == ["A1", "A3"]
    assert found["cases"][0]["measured_s"] == 1.0
    assert found["cases"][0]["predicted_s"] > 0
    assert found["skipped"][0]["row_id"] == "A2"
    assert list(found["summary"]) == ["headline", "core", "sweeps", "by", "skipped"]
    assert (found["summary"]["headline"]["count"], found["summary"]["core"]["count"]) == (1, 2)
    assert found["summary"]["skipped"] == 1


def test_shipped_results_for_people(commsim: Callable[..., Answer], tmp_path: Path) -> None:
    answer = commsim("validate", "training", "--plot", tmp_path / "a.svg")
    assert answer.code == 0
    assert answer.out.splitlines()[1].startswith("headline")
    for said in ("by GPU", "by precision", "by layers", "by scale", "by source", "not compared", "assumed"):
        assert said in answer.out
    assert (tmp_path / "a.svg").read_text(encoding="utf-8").startswith("<?xml")


def test_the_machine_of_a_log_is_told_by_its_gpus(commsim: Callable[..., Answer], tmp_path: Path) -> None:
    (tmp_path / "all_reduce.log").write_text(log(), encoding="utf-8")
    answer = commsim("validate", "collectives", tmp_path / "all_reduce.log", "--json")
    assert list(answer.document["summary"]["by"]["machine"]) == ["hgx-h100"]


def test_nothing_to_compare_is_no_failure(commsim: Callable[..., Answer], tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", cells(core="0"))
    answer = commsim("validate", "training", path, "--models", MODELS)
    assert (answer.code, "not a core result" in answer.out) == (0, True)
    plotted = commsim("validate", "training", path, "--models", MODELS, "--plot", tmp_path / "a.png")
    assert (plotted.code, plotted.err.count("\n")) == (2, 1)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "missing"),
        (b"row_id,tp\nA1,8\n", "missing"),
        (b"\xff\xfe\x00\x01", "a readable CSV file"),
    ],
)
def test_hostile_tables(commsim: Callable[..., Answer], tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "a.csv").write_bytes(content)
    answer = commsim("validate", "training", tmp_path / "a.csv", "--models", MODELS)
    assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1)
    assert said in answer.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("moon",),
        ("training", "nonesuch.csv", "--models", MODELS),
        ("training", MODELS),
        ("training", "--models", MODELS),
        ("training", MODELS, MODELS, "--models", MODELS),
        ("collectives", MODELS),
        ("collectives", "nonesuch.json"),
        ("collectives", "nonesuch.json", "--models", MODELS),
        ("training", "--fits", MODELS),
        ("memory", MODELS),
        ("memory", "--models", MODELS),
        ("memory", MODELS, MODELS, "--models", MODELS, "--fits", MODELS),
        ("memory", MODELS, "--models", MODELS, "--fits", MODELS),
    ],
)
def test_mistakes(commsim: Callable[..., Answer], arguments: tuple[str, ...]) -> None:
    answer = commsim("validate", *arguments)
    assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1)


def test_collectives_document(commsim: Callable[..., Answer], tmp_path: Path) -> None:
    rows = [{"size_bytes": 2**20, "time_s": 1e-4}]
    files = [table(tmp_path, id=name, **changes) for name, changes in COLLECTIVES.items()]
    found = commsim("validate", "collectives", *files, table(tmp_path, id="a", rows=rows), "--json").document
    assert list(found) == ["cases", "skipped", "summary"]
    (case,) = found["cases"]
    assert list(case) == ["id", "op", "size_bytes", "measured_s", "predicted_s"]
    assert [case[key] for key in ("id", "op", "size_bytes", "measured_s")] == ["a", "all_reduce", 2**20, 1e-4]
    assert [list(one) for one in found["skipped"]] == [["id", "reason"]]
    assert found["summary"]["by"]["band"]["1 to 64 MiB"]["count"] == 1
    assert found["summary"]["apart"]["degraded"]["groups"] == 1


def test_collectives_for_people(commsim: Callable[..., Answer], tmp_path: Path) -> None:
    for name, changes in COLLECTIVES.items():
        table(tmp_path, id=name, **changes)
    table(tmp_path)
    answer = commsim("validate", "collectives", tmp_path, "--plot", tmp_path / "a.svg")
    assert answer.code == 0
    for said in ("4 rows of 1 table", "by band", "by op", "by machine", "degraded", "only nccl", "constants"):
        assert said in answer.out
    assert (tmp_path / "a.svg").read_text(encoding="utf-8").startswith("<?xml")


def runs(folder: Path) -> tuple[str, ...]:
    """A run that ran out of memory, one that fitted and one that cannot be, with what they need."""
    columns = ("model_id", "n_gpus", "tp", "pp", "dp", "global_batch")
    common = {name: cells()[name] for name in columns} | {"source": "Doe 2025", "model_overrides": "", "sp": ""}
    common |= dict.fromkeys(("zero", "recompute", "kernel", "precision"), "")
    tried = [("4", "65536", "OOM", "2"), ("1", "4096", "fits", "2"), ("1", "4096", "fits", "3")]
    rows = [
        {**common, "micro_batch": batch, "seq_len": length, "outcome": outcome, "tp": tensor}
        for batch, length, outcome, tensor in tried
    ]
    results = write(folder / "results.csv", cells(source="Doe 2025"))
    return "memory", str(write(folder / "runs.csv", *rows)), "--models", MODELS, "--fits", str(results)


def test_memory_document(commsim: Callable[..., Answer], tmp_path: Path) -> None:
    found = commsim("validate", *runs(tmp_path), "--json").document
    assert [(case["fitted"], case["said_to_fit"]) for case in found["cases"]] == [(False, False), (True, True)]
    assert found["cases"][0]["share_of_memory"] > 1 > found["cases"][1]["share_of_memory"]
    assert found["summary"]["ran_out"] == {"count": 1, "right": 1, "share": 1.0}
    assert found["summary"]["skipped"] == len(found["skipped"]) == 1


def test_memory_for_people(commsim: Callable[..., Answer], tmp_path: Path) -> None:
    answer = commsim("validate", *runs(tmp_path), "--plot", tmp_path / "a.svg")
    assert answer.code == 0
    for said in ("of those that ran out", "by model", "by recompute", "by attention", "not compared"):
        assert said in answer.out
    assert (tmp_path / "a.svg").read_text(encoding="utf-8").startswith("<?xml")
