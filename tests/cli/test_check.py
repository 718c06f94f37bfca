"""Does the command say whether a benchmark is right, and why not?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from commsim.cli.check import MOST_SUSPECTS
from tests.measurement.printed import log
from tests.validation.tables import MIB, published, write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Answer

NICS = {"per_node": 8, "gbit_per_s": 400, "fabric": "infiniband"}


def rows(busbw: float, ranks: int = 16) -> list[dict[str, float]]:
    """Rows of an all-reduce at a bus bandwidth, B/s."""
    return [{"size_bytes": n * MIB, "time_s": n * MIB * 2 * (ranks - 1) / ranks / busbw} for n in (256, 512, 1024)]


@pytest.fixture
def two(tmp_path: Path) -> Callable[..., Path]:
    """Return the file of an all-reduce of two H100 nodes at a bus bandwidth."""

    def made(busbw: float, **more: object) -> Path:
        return write(tmp_path, **{"nodes": 2, "ranks": 16, "nics": NICS, "rows": rows(busbw)} | more)

    return made


def test_good(commsim: Callable[..., Answer], two: Callable[..., Path]) -> None:
    answer = commsim("check", two(440e9))
    assert (answer.code, answer.err) == (0, "")
    assert "good: 10" in answer.out
    title, header = answer.out.splitlines()[:2]
    assert (title, "expected" in header) == ("all_reduce on 16 ranks, 2 nodes of hgx-h100", True)
    assert "likely causes" not in answer.out


def test_low_with_its_causes(commsim: Callable[..., Answer], two: Callable[..., Path]) -> None:
    answer = commsim("check", two(60e9))
    assert answer.code == 1
    assert "likely causes" in answer.out
    assert "1.  one NIC of a node is used instead of all" in answer.out


def test_the_likeliest_causes_are_shown_and_all_of_them_told(
    commsim: Callable[..., Answer], two: Callable[..., Path]
) -> None:
    found = commsim("check", two(250e9), "--json").document["causes"]
    assert len(found) > MOST_SUSPECTS == commsim("check", two(250e9)).out.count("try: ")


def test_document(commsim: Callable[..., Answer], two: Callable[..., Path]) -> None:
    found = commsim("check", two(60e9), "--json").document
    assert (found["verdict"], found["system"], found["op"], found["ranks"]) == ("low", "hgx-h100", "all_reduce", 16)
    row = found["rows"][-1]
    assert row["size_bytes"] == 1024 * MIB
    assert row["busbw_bytes_per_s"] == pytest.approx(60e9)
    assert row["low_bytes_per_s"] < row["expected_bytes_per_s"] < row["high_bytes_per_s"]
    assert (row["verdict"], found["causes"][0]["cause"]) == ("low", "one-nic")


def test_publishers_opinions_are_not_read(commsim: Callable[..., Answer], two: Callable[..., Path]) -> None:
    """A judgement must not know what it is scored against."""
    plain, told = (commsim("check", two(60e9, **more), "--json").document for more in ({}, {"health": "degraded"}))
    assert plain == told


def test_a_fallback_does_not_lower_what_is_expected(commsim: Callable[..., Answer], two: Callable[..., Path]) -> None:
    """TCP is no network of the machine's: it is what its library fell back to, and the first suspect."""
    plain, fallen = (
        commsim("check", two(4e9, nics=NICS | more), "--json").document for more in ({}, {"fabric": "tcp"})
    )
    assert plain["rows"] == fallen["rows"]
    assert "sockets" in [one["cause"] for one in plain["causes"]]


def test_as_configured(commsim: Callable[..., Answer], tmp_path: Path) -> None:
    ring = [{"size_bytes": n * MIB, "time_s": n * MIB * 1.75 / 330e9} for n in (512, 1024, 4096)]
    path = write(tmp_path, rows=ring, settings={"nvls": False, "as_stated": "NCCL_NVLS_ENABLE=0"})
    free, bound = (commsim("check", path, "--json", *more).document for more in ((), ("--as-configured",)))
    assert bound["rows"][-1]["expected_bytes_per_s"] < free["rows"][-1]["expected_bytes_per_s"]
    assert bound["verdict"] == "good"


def test_what_a_user_says_of_the_machine(commsim: Callable[..., Answer], two: Callable[..., Path]) -> None:
    answer = commsim("check", two(290e9), "--json", "--nic", "200 Gb/s")
    assert answer.document["verdict"] == "good"
    assert commsim("check", two(290e9), "--json").document["verdict"] == "low"


def test_unknown_machine(commsim: Callable[..., Answer], tmp_path: Path) -> None:
    answer = commsim("check", write(tmp_path, system=""))
    assert answer.code == 0
    assert "unknown: it is not known on which machine it was measured: say --system" in answer.out
    told = commsim("check", write(tmp_path, system=""), "--system", "hgx-h100", "--json")
    assert told.document["system"] == "hgx-h100"


def test_names_of_gpus_tell_the_box(commsim: Callable[..., Answer], tmp_path: Path) -> None:
    lines = [f"#  Rank  {n} Group  0 Pid 1 on host device  {n} [0000:1b:00] NVIDIA H100 80GB HBM3" for n in range(8)]
    size = 1024 * MIB
    us = size * 1.75 / 460e9 * 1e6
    half = f"{us:.1f} {size / us / 1e3:.2f} {size / us / 1e3 * 1.75:.2f} 0"
    lines.append(f"{size} {size // 4} float sum -1 {half} {half}")
    path = tmp_path / "all_reduce.log"
    path.write_text("\n".join(lines) + "\n")
    assert commsim("check", path, "--json").document["system"] == "hgx-h100"


def test_baseline(commsim: Callable[..., Answer], tmp_path: Path) -> None:
    (tmp_path / "now").mkdir()
    then = write(tmp_path, nodes=2, ranks=16, nics=NICS, rows=rows(440e9))
    now = write(tmp_path / "now", nodes=2, ranks=16, nics=NICS, rows=rows(400e9))
    answer = commsim("check", now, "--baseline", then)
    assert answer.code == 1
    assert "91% of the baseline's bandwidth" in answer.out
    title, header = answer.out.splitlines()[:2]
    assert (title, "baseline" in header) == ("all_reduce on 16 ranks", True)
    assert commsim("check", then, "--baseline", then).code == 0


def test_a_baseline_of_something_else(commsim: Callable[..., Answer], tmp_path: Path) -> None:
    (tmp_path / "now").mkdir()
    then = write(tmp_path, op="all_gather")
    answer = commsim("check", write(tmp_path / "now"), "--baseline", then)
    assert answer.code == 2
    assert "it has all_gather on 8" in answer.err


def test_several_tables(commsim: Callable[..., Answer], tmp_path: Path) -> None:
    path = tmp_path / "both.json"
    good = published(nodes=2, ranks=16, nics=NICS, rows=rows(440e9))
    low = published(op="all_gather", rows=[{"size_bytes": MIB * 1024, "time_s": 1.0}])
    path.write_text(json.dumps([good, low]))
    found = commsim("check", path, "--json").document
    assert (found["verdict"], [one["verdict"] for one in found["tables"]]) == ("low", ["good", "low"])


def test_pairs(commsim: Callable[..., Answer], tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    pairs = [(a, b, 9 if 3 in (a, b) else 45) for a in range(6) for b in range(a)]
    path.write_text("node_a,node_b,busbw\n" + "".join(f"n{a},n{b},{speed}\n" for a, b, speed in pairs))
    answer = commsim("check", path, "--pairs")
    assert answer.code == 1
    assert "n3" in answer.out
    found: Any = commsim("check", path, "--pairs", "--json").document
    assert [one["nodes"] for one in found["bad_nodes"]] == [["n3"]]


def test_one_rank(commsim: Callable[..., Answer], tmp_path: Path) -> None:
    path = write(tmp_path, ranks=1, rows=[{"size_bytes": MIB, "time_s": 1e-5}])
    answer = commsim("check", path)
    assert answer.code == 0
    assert "unknown: one rank has nobody" in answer.out
    for more in ((), ("--baseline", path)):
        found = commsim("check", path, "--json", *more).document
        assert (found["verdict"], found["rows"][0]["busbw_bytes_per_s"]) == ("unknown", 0)


def test_what_is_assumed_is_said(commsim: Callable[..., Answer], two: Callable[..., Path]) -> None:
    path = two(440e9, nics={"fabric": "infiniband"})
    assert "8 NICs of 400 Gb/s a node, infiniband" in " ".join(commsim("check", path).out.split())
    assert commsim("check", path, "--json").document["assumptions"]
    assert not commsim("check", path, "--json", "--nic", "400 Gb/s").document["assumptions"]


def test_a_table_that_is_no_csv(commsim: Callable[..., Answer], tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text('node_a,node_b,busbw\nn1,n2,"' + "4" * 2**21 + '"\n')
    answer = commsim("check", path, "--pairs")
    assert (answer.code, answer.out) == (2, "")
    assert "a CSV with a row a run belongs here" in answer.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--nodes", "2"), "say which machine nodes"),
        (("--system", "hgx-h10"), "did you mean 'hgx-h100'"),
        (("--system", "hgx-h100", "--nodes", "3"), "a multiple of its 3 nodes"),
        (("--op", "all_gather"), "the table shows all_reduce"),
        (("--baseline", "nowhere.log"), "nowhere.log"),
        (("--system", ""), "no such name"),
        (("--baseline", "nowhere.log", "--nodes", "2"), "'--nodes'; it changes nothing beside --baseline"),
        (("--baseline", "nowhere.log", "--as-configured"), "'--as-configured'; it changes nothing"),
        (("--pairs", "--ranks", "0"), "'--ranks'; it changes nothing beside --pairs"),
        (("--pairs", "--system", "hgx-h100"), "'--system'; it changes nothing beside --pairs"),
    ],
)
def test_mistakes(commsim: Callable[..., Answer], tmp_path: Path, arguments: tuple[str, ...], says: str) -> None:
    answer = commsim("check", write(tmp_path, system=""), *arguments)
    assert (answer.code, answer.out) == (2, "")
    assert says in answer.err
    assert answer.err.count("\n") == 1


def test_tables_are_written_as_nccl_tests_prints_them(commsim: Callable[..., Answer], tmp_path: Path) -> None:
    """A log with a launcher's tags and colours comes out clean, and is judged alike."""
    messy, clean = tmp_path / "messy.log", tmp_path / "clean.log"
    messy.write_text("".join(f"[1,0]<stdout>:\x1b[0m{line}\n" for line in log().splitlines()), encoding="utf-8")
    found = commsim("check", messy, "--write", clean, "--json").document
    assert "\x1b" not in clean.read_text(encoding="utf-8")
    assert clean.read_text(encoding="utf-8").startswith("# Collective test starting: all_reduce_perf\n")
    again = commsim("check", clean, "--json").document
    assert (again["rows"], again["system"], again["ranks"]) == (found["rows"], found["system"], found["ranks"])


def test_where_nothing_can_be_written(commsim: Callable[..., Answer], two: Callable[..., Path], tmp_path: Path) -> None:
    answer = commsim("check", two(440e9), "--write", tmp_path / "no" / "such.log")
    assert (answer.code, answer.out) == (2, "")
    assert "it cannot be written: No such file or directory" in answer.err
