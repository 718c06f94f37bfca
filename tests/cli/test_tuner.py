"""Does `commsim tuner` show what NCCL picks, from a machine, from a dump, and from graphs?"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

import commsim.cli
from commsim.hardware.catalogue import load
from commsim.hardware.nccl_xml import write_xml
from commsim.libraries.nccl.constants import OPS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Answer

GRAPHS = """<graphs version="1">
  <graph id="0" pattern="4" crossnic="2" nchannels="8" speedintra="48" speedinter="48" latencyinter="0"
         typeintra="NVL" typeinter="PIX" samechannels="0"/>
  <graph id="1" pattern="3" crossnic="0" nchannels="8" speedintra="48" speedinter="48" latencyinter="0"
         typeintra="NVL" typeinter="PIX" samechannels="0"/>
  <graph id="3" pattern="5" crossnic="0" nchannels="8" speedintra="40" speedinter="48" latencyinter="0"
         typeintra="NVL" typeinter="PIX" samechannels="0"/>
</graphs>
"""


@pytest.fixture(autouse=True)
def _known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commsim.cli, "COMMANDS", tuple(dict.fromkeys((*commsim.cli.COMMANDS, "tuner"))))


@pytest.fixture
def graphs(tmp_path: Path) -> Path:
    """A file as NCCL_GRAPH_DUMP_FILE writes it, of a box of eight H100 among others."""
    file = tmp_path / "graphs.xml"
    file.write_text(GRAPHS, encoding="utf-8")
    return file


def test_document(commsim: Callable[..., Answer]) -> None:
    said = commsim("tuner", "hgx-h100", "--nodes", 2, "--sizes", "1K,1M,1G", "--json").document
    assert list(said) == ["graphs", "table", "picks"]
    assert said["graphs"]["ring"]["channels"] == 8
    assert said["graphs"]["ring"]["speed_inter_bytes_per_s"] == 48e9
    assert list(said["table"]) == list(OPS)
    nvls_tree = said["table"]["all_reduce"]["NVLSTree/Simple"]
    assert nvls_tree == {"latency_s": pytest.approx(66.8e-6), "algbw_bytes_per_s": pytest.approx(246.187e9, rel=1e-5)}
    picks = [row for row in said["picks"] if row["op"] == "all_reduce"]
    assert list(picks[0]) == ["op", "size_bytes", "algorithm", "protocol", "time_s"]
    assert [(row["size_bytes"], row["algorithm"], row["protocol"]) for row in picks] == [
        (2**10, "Tree", "LL"),
        (2**20, "Tree", "LL128"),
        (2**30, "NVLSTree", "Simple"),
    ]
    assert picks[2]["time_s"] == pytest.approx(4428.3e-6, rel=1e-5)


def test_graphs_in_place_of_a_machine(commsim: Callable[..., Answer], graphs: Path) -> None:
    sizes = ("--sizes", "1K..1G", "--json")
    nodes = ("--nodes", 2, "--gpus-per-node", 8, "--compute-capability", 90, "--cpu", "intel")
    read = commsim("tuner", "--graph", graphs, *nodes, *sizes).document
    searched = commsim("tuner", "hgx-h100", "--nodes", 2, *sizes).document
    assert (read["table"], read["picks"]) == (searched["table"], searched["picks"])


def test_a_dump_counts_as_it_stands(commsim: Callable[..., Answer], tmp_path: Path) -> None:
    rack = load("gb200-nvl72", nodes=2)
    file = tmp_path / "rack.xml"
    file.write_text(write_xml(rack), encoding="utf-8")
    as_it_stands, same, twice = (
        commsim("tuner", name, *nodes, "--sizes", "1M", "--json").document
        for name, nodes in ((file, ()), ("gb200-nvl72", ("--nodes", 2)), (file, ("--nodes", 4)))
    )
    assert as_it_stands == same
    assert "NVLSTree/Simple" not in same["table"]["all_reduce"]
    assert "NVLSTree/Simple" in twice["table"]["all_reduce"]


def test_settings(commsim: Callable[..., Answer]) -> None:
    machine = ("tuner", "hgx-h100", "--sizes", "64M", "--json")

    def taken(*more: object) -> list[str]:
        rows = commsim(*machine, *more).document["picks"]
        return [f"{row['algorithm']}/{row['protocol']}" for row in rows if row["op"] == "all_reduce"]

    assert taken() == ["NVLS/Simple"]
    assert taken("--no-nvls") == ["Ring/Simple"]
    assert taken("--set", "NCCL_ALGO=tree", "--set", "NCCL_PROTO=simple") == ["Tree/Simple"]
    assert taken("--set", "NCCL_ALGO=allreduce:collnetchain") == []


def test_collnet(commsim: Callable[..., Answer]) -> None:
    machine = ("tuner", "hgx-h100", "--nodes", 2, "--sizes", "1M")
    assert "CollNetDirect/Simple" in commsim(*machine, "--collnet", "--json").document["table"]["all_gather"]
    assert "notes" not in commsim(*machine, "--collnet").out
    assert "NCCL finds no network here that reduces" in commsim(*machine, "--fabric", "roce", "--collnet").out


def test_versions(commsim: Callable[..., Answer]) -> None:
    machine = ("tuner", "hgx-h100", "--sizes", "64M", "--json", "--library-version")
    tables = [commsim(*machine, version).document["table"]["all_reduce"] for version in ("2.27.5", "2.28")]
    assert [table["NVLS/Simple"]["algbw_bytes_per_s"] / 1e9 for table in tables] == pytest.approx([800 / 3, 272.0])
    assert "older than 2.18: counted with the constants of 2.18" in commsim(*machine, "2.14").err


def test_for_people(commsim: Callable[..., Answer]) -> None:
    said = commsim("tuner", "hgx-h100", "--sizes", "1K,1G").out
    assert max(map(len, said.splitlines())) <= 80
    for word in ("8 ranks in 1 node", "NCCL 2.30", "24 channels", "NVL/PIX", "Ring/LL 15", "NVLS/Simple 3,973"):
        assert word in said


def test_plugin_file(commsim: Callable[..., Answer], tmp_path: Path) -> None:
    file = tmp_path / "nccl_tuner.conf"
    assert commsim("tuner", "hgx-h100", "--nodes", 2, "--plugin", file).code == 0
    last = [line for line in file.read_text(encoding="utf-8").splitlines() if line.startswith("allreduce")][-1]
    assert last == "allreduce,2097152,9223372036854775807,nvls_tree,simple,-1,2,16"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "SYSTEM: nothing; a name or a file belongs here, or --graph FILE"),
        (("hgx-h010",), "did you mean"),
        (("mi300x",), "NCCL runs on NVIDIA's GPUs"),
        (("hgx-h100", "--cpu", "amd"), "cpu: 'amd'; it belongs beside --graph"),
        (("hgx-h100", "--set", "NCCL_ALGO"), "set: 'NCCL_ALGO'; a setting such as NCCL_ALGO=ring belongs here"),
        (("hgx-h100", "--set", "NCCL_DEBUG=INFO"), "set: 'NCCL_DEBUG'; this setting is not mirrored"),
        (("hgx-h100", "--set", "NCCL_ALGO=rnig"), "did you mean 'Ring'?"),
        (("hgx-h100", "--library-version", "new"), "NCCL version: 'new'; a version such as 2.27"),
        (
            ("--graph", "none.xml", "--gpus-per-node", "8"),
            "compute-capability: nothing; a file of graphs does not say",
        ),
        (("--graph", "none.xml", "--compute-capability", "90"), "gpus-per-node: nothing; a file of graphs does not"),
        (
            ("--graph", "none.xml", "--gpus-per-node", "8", "--compute-capability", "90"),
            "none.xml: .*a readable file belongs here",
        ),
        (("hgx-h100", "--graph", "none.xml", "--gpus-per-node", "8", "--compute-capability", "90"), "leave it out"),
    ],
)
def test_mistakes_are_one_line(commsim: Callable[..., Answer], arguments: tuple[str, ...], said: str) -> None:
    answer = commsim("tuner", *arguments)
    assert answer.code == 2
    assert answer.err.count("\n") == 1
    assert re.search(said, answer.err)


def test_cpu_is_one_that_nccl_tells_apart(commsim: Callable[..., Answer], graphs: Path) -> None:
    asked = ("tuner", "--graph", graphs, "--gpus-per-node", 8, "--compute-capability", 90, "--cpu")
    assert commsim(*asked, "amd", "--json").code == 0
    assert "cpu: 'sparc'; NCCL tells no such processors apart" in commsim(*asked, "sparc").err


PRINTED = """\
host:1:1 [{rank}] NCCL INFO   Algorithm   |            Tree           |            Ring           |
host:1:1 [{rank}] NCCL INFO   Protocol    |      LL |  LL128 | Simple |      LL |  LL128 | Simple |
host:1:1 [{rank}] NCCL INFO     AllReduce | 16.8/0.5 | 31.0/0.0 | 36.4/1.9 | 16.6/1.2 | 31.0/0.0 | 36.4/{ring} |
"""


def test_tables_that_nccl_printed(commsim: Callable[..., Answer], tmp_path: Path) -> None:
    log = tmp_path / "nccl.log"
    log.write_text(PRINTED.format(rank=0, ring=2.4) + PRINTED.format(rank=1, ring=2.4), encoding="utf-8")
    (one,) = commsim("tuner", "--log", log, "--json").document
    assert list(one["table"]["all_reduce"]) == ["Tree/LL", "Tree/Simple", "Ring/LL", "Ring/Simple"]
    simple = {"latency_s": pytest.approx(36.4e-6), "algbw_bytes_per_s": pytest.approx(2.4e9)}
    assert one["table"]["all_reduce"]["Ring/Simple"] == simple
    shown = commsim("tuner", "--log", log).out
    assert "what NCCL expected: 1 table\n" in shown
    assert re.search(r"^Ring/Simple +36\.4, 2\.4$", shown, re.MULTILINE)
    log.write_text(PRINTED.format(rank=0, ring=2.4) + PRINTED.format(rank=1, ring=2.5), encoding="utf-8")
    assert "what NCCL expected: 2 tables\n" in commsim("tuner", "--log", log).out


@pytest.mark.parametrize(
    ("more", "where"),
    [
        (("hgx-h100",), "system: 'hgx-h100'"),
        (("--nodes", 2), "nodes: 2"),
        (("--cpu", "amd"), "cpu: 'amd'"),
        (("--library-version", "2.27"), "library-version: '2.27'"),
        (("--set", "NCCL_ALGO=ring"), "set: "),
    ],
)
def test_a_log_stands_alone(
    commsim: Callable[..., Answer], tmp_path: Path, more: tuple[object, ...], where: str
) -> None:
    answer = commsim("tuner", *more, "--log", tmp_path / "nccl.log")
    assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1)
    assert answer.err.startswith(f"commsim: {where}")
    assert answer.err.endswith("; a log takes its place: leave it out\n")
