"""Does `commsim cost` time a collective, and say how?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from commsim.collectives.kinds import COLLECTIVES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Answer

KEYS = ["op", "ranks", "size_bytes", "time_s", "algbw_bytes_per_s", "busbw_bytes_per_s", "algorithm", "protocol"]
KEYS += ["bottleneck", "range"]
GIB = 2**30


def test_document(commsim: Callable[..., Answer]) -> None:
    (row,) = commsim("cost", "hgx-h100", "all_reduce", "--size", "1GiB", "--json").document
    assert list(row) == KEYS
    assert (row["op"], row["ranks"], row["size_bytes"], row["range"]) == ("all_reduce", 8, GIB, None)
    assert row["algbw_bytes_per_s"] == pytest.approx(GIB / row["time_s"])
    assert row["busbw_bytes_per_s"] == pytest.approx(row["algbw_bytes_per_s"] * 2 * 7 / 8)


@pytest.mark.parametrize("op", [*COLLECTIVES, "alltoall", "sendrecv"])
def test_every_operation(commsim: Callable[..., Answer], op: str) -> None:
    rows = commsim("cost", "hgx-h100", op, "--nodes", 2, "--sizes", "1K..1M", "--factor", 1024, "--json").document
    assert [row["size_bytes"] for row in rows] == [2**10, 2**20]
    assert 0 < rows[0]["time_s"] <= rows[1]["time_s"]


def test_sizes_double(commsim: Callable[..., Answer]) -> None:
    rows = commsim("cost", "hgx-h100", "all_gather", "--sizes", "8..64", "--json").document
    assert [row["size_bytes"] for row in rows] == [8, 16, 32, 64]


def test_all_adds_every_candidate(commsim: Callable[..., Answer]) -> None:
    job = ("cost", "hgx-h100", "all_reduce", "--size", "1GiB", "--json")
    rows = commsim(*job, "--all").document
    chosen = [row for row in rows if row["chosen"]]
    assert len({(row["algorithm"], row["protocol"]) for row in rows}) == len(rows) > 1
    assert [{key: row[key] for key in KEYS} for row in chosen] == commsim(*job).document
    assert rows == sorted(rows, key=lambda row: row["time_s"])


def test_uncertain_figures_give_a_range(commsim: Callable[..., Answer]) -> None:
    rows = commsim("cost", "rubin-ultra-nvl144", "all_reduce", "--sizes", "1K..1G", "--factor", 32, "--json").document
    for row in rows:
        assert set(row["range"]) == {"time_s", "algbw_bytes_per_s", "busbw_bytes_per_s"}
        assert all(low <= row[key] <= high for key, (low, high) in row["range"].items())


def test_a_template_is_named(commsim: Callable[..., Answer]) -> None:
    """Nothing is published of NVL1152: another system's figures stand in, and the result is a range."""
    answer = commsim("cost", "feynman-nvl1152", "all_reduce", "--size", "1G")
    assert answer.code == 0
    assert "rubin-ultra-nvl576" in answer.out
    assert commsim("cost", "feynman-nvl1152", "all_reduce", "--size", "1G", "--json").document[0]["range"]


def test_algorithm_and_protocol_are_kept(commsim: Callable[..., Answer]) -> None:
    forced = ("--algorithm", "ring", "--protocol", "ll128")
    (row,) = commsim("cost", "hgx-h100", "all_reduce", "--size", "1G", *forced, "--json").document
    assert (row["algorithm"], row["protocol"]) == ("Ring", "LL128")


@pytest.mark.parametrize(("switch", "reduced"), [("--nvls", True), ("--no-nvls", False)])
def test_switches_reduce_only_when_they_may(commsim: Callable[..., Answer], switch: str, *, reduced: bool) -> None:
    rows = commsim("cost", "hgx-h100", "all_reduce", "--size", "1G", switch, "--all", "--json").document
    assert any(row["algorithm"].startswith("NVLS") for row in rows) == reduced


def test_network_switches_reduce_only_when_asked(commsim: Callable[..., Answer]) -> None:
    job = ("cost", "hgx-h100", "all_reduce", "--size", "1G", "--nodes", 4, "--all", "--json")
    asked, unasked = commsim(*job, "--sharp").document, commsim(*job).document
    more = {row["algorithm"] for row in asked} - {row["algorithm"] for row in unasked}
    assert any(name.startswith("CollNet") for name in more)


def test_the_wire_alone_is_never_slower(commsim: Callable[..., Answer]) -> None:
    job = ("cost", "hgx-h100", "all_reduce", "--sizes", "1K..1G", "--factor", 32, "--nodes", 2, "--json")
    nccl, ideal = commsim(*job).document, commsim(*job, "--library", "ideal").document
    assert [row for row, limit in zip(nccl, ideal) if limit["time_s"] > row["time_s"]] == []


@pytest.mark.parametrize("op", ["all_reduce", "all_to_all", "reduce_scatter"])
def test_large_machines(commsim: Callable[..., Answer], op: str) -> None:
    (row,) = commsim("cost", "hgx-h100", op, "--size", "1G", "--gpus", 16384, "--json").document
    assert row["ranks"] == 16384


def test_a_faster_nic_helps_between_nodes(commsim: Callable[..., Answer]) -> None:
    job = ("cost", "hgx-h100", "all_to_all", "--size", "1G", "--nodes", 4, "--json")
    slow, fast = (commsim(*job, "--nic", nic).document[0]["time_s"] for nic in ("200 Gb/s", "400 Gb/s"))
    assert fast < slow


def test_versions_that_nobody_knows_are_named(commsim: Callable[..., Answer]) -> None:
    """2.27 has constants of its own, 2.10 is counted with those of 2.18."""
    asked = ("cost", "hgx-h100", "all_reduce", "--size", "1M", "--json", "--library-version")
    known, older = commsim(*asked, "2.27"), commsim(*asked, "2.10")
    assert [len(one.document) for one in (known, older)] == [1, 1]
    assert known.err == ""
    assert older.err.startswith("note: ")
    assert "2.10" in older.err


def test_table_fits_80_columns(commsim: Callable[..., Answer]) -> None:
    out = commsim("cost", "vr-nvl72", "all_reduce", "--sizes", "1K..8G", "--nodes", 36).out
    assert [line for line in out.splitlines() if len(line) > 80] == []
    assert "8 GiB" in out


@pytest.mark.parametrize("columns", [30, 40, 50, 60, 70])
@pytest.mark.parametrize("system", ["hgx-h100", "vr-nvl72"])
def test_no_word_is_broken_on_a_narrow_terminal(
    commsim: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch, columns: int, system: str
) -> None:
    job = ("cost", system, "all_reduce", "--sizes", "1K..8G", "--nodes", 36)
    monkeypatch.setenv("COLUMNS", "200")
    whole = set(commsim(*job).out.split())
    monkeypatch.setenv("COLUMNS", str(columns))
    out = commsim(*job).out
    assert set(out.split()) <= whole
    assert max(map(len, out.splitlines())) <= columns
    assert {"busbw", "time", "GB/s"} <= set(out.split())


def test_plot(commsim: Callable[..., Answer], tmp_path: Path) -> None:
    file = tmp_path / "busbw.svg"
    assert commsim("cost", "hgx-h100", "all_reduce", "--sizes", "1K..1G", "--plot", file).code == 0
    assert "<svg" in file.read_text(encoding="utf-8")


@pytest.mark.parametrize("library", ["nccl", "ideal"])
def test_alone_a_gpu_has_no_bandwidth(commsim: Callable[..., Answer], library: str) -> None:
    job = ("cost", "gb10", "all_reduce", "--size", "1M", "--library", library)
    (row,) = commsim(*job, "--json").document
    assert (row["ranks"], row["busbw_bytes_per_s"]) == (1, 0.0)
    assert commsim(*job).code == 0


def test_symmetric_windows(commsim: Callable[..., Answer]) -> None:
    """Kernels by NCCL's names in the place of protocols; --all lists them beside the ordinary ways."""
    job = ("cost", "hgx-b200", "all_reduce", "--symmetric", "--sizes", "1KiB,1GiB")
    rows = commsim(*job, "--json").document
    assert [(row["algorithm"], row["protocol"]) for row in rows] == [
        ("Symmetric", "AGxLLMC_R"),
        ("Symmetric", "RSxLDMC_AGxSTMC"),
    ]
    every = commsim(*job, "--json", "--all").document
    assert {row["algorithm"] for row in every} == {"Symmetric", "Ring", "Tree", "NVLS"}
    assert [{key: row[key] for key in KEYS} for row in every if row["chosen"]] == rows
    assert "registered as symmetric windows" in commsim(*job).out
