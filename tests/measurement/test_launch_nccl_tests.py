"""Are NVIDIA's own benchmarks run as asked, and is what they print kept without names of hosts?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import commsim as cs
from commsim.errors import InputError, LackError, PartialError
from commsim.measurement.launch.asked import sweep
from commsim.measurement.launch.crew import Order
from commsim.measurement.launch.nccl_tests import commands, measure_with_nccl_tests
from tests.measurement.printed import HALVES, ROWS, log

if TYPE_CHECKING:
    from pathlib import Path

SIZES = "1M..2M"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the PATH for programs that stand for nccl-tests."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return folder


def install(folder: Path, text: str, *, code: int = 0, name: str = "all_reduce_perf") -> None:
    """Put a program there that prints a log, and what it was asked, and ends with a code."""
    program = folder / name
    program.write_text(
        f"#!/bin/sh\necho \"$@\" >{folder}/asked\ncat <<'LOG'\n{text}\nLOG\nexit {code}\n", encoding="utf-8"
    )
    program.chmod(0o755)


def order(tmp_path: Path, ops: str = "all_reduce", sizes: str = SIZES, dtypes: str = "float") -> Order:
    return Order(tuple(sweep(ops, sizes, 2, dtypes)), 8, "nccl-tests", tmp_path / "run.jsonl")


def test_a_run(installed: Path, tmp_path: Path) -> None:
    install(installed, log())
    measure_with_nccl_tests(order(tmp_path))
    asked = (installed / "asked").read_text(encoding="utf-8")
    assert asked == "-b 1048576 -e 2097152 -f 2 -g 8 -d float -n 20 -w 5 -G 0 -c 1\n"
    (found,) = cs.measurements(tmp_path / "run.jsonl")
    assert (found.op.name, found.ranks) == ("all_reduce", 8)
    assert list(found.seconds) == pytest.approx([100e-6, 150e-6])
    assert found.accelerators == ("NVIDIA H100 80GB HBM3",)
    assert "gpu-a" not in (tmp_path / "run.jsonl").read_text(encoding="utf-8")


def test_a_run_that_dies_keeps_its_rows(installed: Path, tmp_path: Path) -> None:
    install(installed, log(ROWS[0]), code=3)
    with pytest.raises(PartialError, match="all_reduce_perf ended with 3 after 1 rows"):
        measure_with_nccl_tests(order(tmp_path))
    assert list(cs.measurements(tmp_path / "run.jsonl")[0].sizes) == [int(HALVES[0][0].split()[0])]


def test_a_program_that_prints_no_table(installed: Path, tmp_path: Path) -> None:
    install(installed, "no GPUs here")
    with pytest.raises(PartialError, match="after 0 rows"):
        measure_with_nccl_tests(order(tmp_path))
    assert not (tmp_path / "run.jsonl").exists()


@pytest.mark.usefixtures("installed")
def test_a_program_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(LackError, match="alltoall_perf of nccl-tests is not on the PATH"):
        measure_with_nccl_tests(order(tmp_path, "all_to_all"))


def test_a_command_for_each_operation_and_type(installed: Path, tmp_path: Path) -> None:
    for name in ("all_reduce_perf", "sendrecv_perf"):
        install(installed, "", name=name)
    found = commands(order(tmp_path, "all_reduce,send_recv", dtypes="float,half"))
    assert [(one[0].rpartition("/")[2], one[one.index("-d") + 1]) for one in found] == [
        ("all_reduce_perf", "float"),
        ("all_reduce_perf", "half"),
        ("sendrecv_perf", "float"),
        ("sendrecv_perf", "half"),
    ]


@pytest.mark.parametrize(("ops", "sizes"), [("barrier", SIZES), ("all_reduce", "1K,3K,5K"), ("all_reduce", "4K,1K")])
def test_what_it_cannot_measure(ops: str, sizes: str, installed: Path, tmp_path: Path) -> None:
    install(installed, log())
    with pytest.raises(InputError, match="nccl-tests"):
        commands(order(tmp_path, ops, sizes))


def test_a_file_that_is_there_is_not_overwritten(installed: Path, tmp_path: Path) -> None:
    install(installed, log())
    (tmp_path / "run.jsonl").touch()
    with pytest.raises(InputError, match="choose another"):
        measure_with_nccl_tests(order(tmp_path))
