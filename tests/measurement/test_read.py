"""Is every file either read or refused in one line, whatever it holds?"""

from __future__ import annotations

import gzip
import io
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.errors import InputError
from commsim.measurement import lines
from commsim.measurement.read import measurements
from tests.measurement.printed import HEADS, MESSAGE, ROWS, devices, log

if TYPE_CHECKING:
    from pathlib import Path

PIECES = st.sampled_from(
    [
        *ROWS,
        *HEADS.values(),
        *devices(2),
        MESSAGE,
        "[1,0]<stdout>:",
        "# nThread 1 nGpus 8 minBytes 0 maxBytes 99 step: 0(bytes)",
        "# Collective test starting: ",
        "COMMS-RES-all_reduce-float32 8 2 1 1 1 1 1 0 0 0",
        "---- Performance of all_gather on 2 devices",
        "4x4  2.879 ms  0.0 0.0",
        "# OSU MPI Allreduce Latency Test v5.9",
        "# Size       Avg Latency(us)",
        "data size: 4.0 GB",
        " duration: 0.1 sec",
        " algo throughput: 1.5 bps",
        '{"record": "run", "schema": 1}',
        '{"results": [{}], "config": {}}',
        "0",
        "-1",
        "nan",
        "1e999",
        "9" * 30,
        "N/A",
        "\x00",
    ]
)


@given(st.lists(PIECES | st.text(max_size=8), max_size=12), st.sampled_from(["\n", " ", ""]))
def test_any_text_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, pieces: list[str], between: str) -> None:
    path = tmp_path_factory.mktemp("text") / "log.txt"
    path.write_text(between.join(pieces), encoding="utf-8", errors="surrogatepass")
    try:
        found = measurements(path)
    except InputError:
        return
    assert all((one.seconds > 0).all() for one in found)


@given(st.binary(max_size=64))
def test_any_bytes_are_refused(tmp_path_factory: pytest.TempPathFactory, given_bytes: bytes) -> None:
    path = tmp_path_factory.mktemp("bytes") / "log.bin"
    path.write_bytes(given_bytes)
    with pytest.raises(InputError):
        measurements(path)


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(log().encode())))
    (found,) = measurements("-")
    assert (found.op.name, found.source) == ("all_reduce", "stdin")


def test_line_ends_of_other_systems(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_bytes(b"\xef\xbb\xbf" + log().replace("\n", "\r\n").encode())
    assert len(measurements(path)[0].rows) == 2


@pytest.mark.parametrize("name", ["absent.log", "", "a\x00b"])
def test_what_cannot_be_opened(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="a file that can be read"):
        measurements(f"{tmp_path}/{name}")


@pytest.mark.parametrize("most", ["LARGEST", "LARGEST_DOCUMENT"])
def test_what_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: str) -> None:
    monkeypatch.setattr(lines, most, 1000)
    path = tmp_path / "log.txt"
    path.write_text(("{ " if most == "LARGEST_DOCUMENT" else "") + log() * 3, encoding="utf-8")
    with pytest.raises(InputError, match="more than 1000 B"):
        measurements(path)


def test_a_line_that_is_too_long(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text("x" * 70_000 + log(), encoding="utf-8")
    with pytest.raises(InputError, match="a line of more than 65536 B"):
        measurements(path)


def test_lines_across_chunks(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text(f"{MESSAGE}\n" * 2000 + log(), encoding="utf-8")
    assert measurements(path)[0].problems == ()


@pytest.mark.parametrize(("op", "ranks"), [("all_redcue", None), (None, 0), ("all_gather", None), (None, 4)])
def test_what_is_told_must_fit(tmp_path: Path, op: str | None, ranks: int | None) -> None:
    path = tmp_path / "log.txt"
    path.write_text(log(), encoding="utf-8")
    with pytest.raises(InputError):
        measurements(path, op=op, ranks=ranks)


def test_tables_of_several_tools_in_one_log(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    osu = "# OSU MPI Allreduce Latency Test v7.4\n# Size       Avg Latency(us)\n4       2.31\n"
    path.write_text(osu + log(), encoding="utf-8")
    assert {one.tool for one in measurements(path)} == {"osu", "nccl-tests"}


def coloured(text: str) -> str:
    """The lines as log viewers colour them."""
    return "".join(f"\x1b[32m{line}\x1b[0m\n" for line in text.splitlines())


def test_colours_are_left_out(tmp_path: Path) -> None:
    plain, bright = tmp_path / "plain.log", tmp_path / "bright.log"
    plain.write_text(log(), encoding="utf-8")
    bright.write_text(coloured(log()), encoding="utf-8")
    (one,), (other,) = measurements(plain), measurements(bright)
    assert (one.rows, one.problems, one.accelerators) == (other.rows, other.problems, other.accelerators)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (gzip.compress(b"text"), "packed by gzip"),
        (b"PK\x03\x04 and more", "packed by zip"),
        ("text".encode("utf-16"), "UTF-16"),
        (b"\xfe\xff" + "text".encode("utf-16-be"), "UTF-16"),
        (b"node_a,node_b,busbw_gbs\na,b,1\n", "--pairs"),
        (b"file, Nodes ,busbw\nx,a b,1\n", "--pairs"),
    ],
)
def test_what_is_no_log_is_named(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "all_reduce.log"
    path.write_bytes(content)
    with pytest.raises(InputError, match=says):
        measurements(path)


@pytest.mark.parametrize("head", ["a,b,seconds", "size,busbw"])
def test_what_screens_no_nodes_is_no_screening(tmp_path: Path, head: str) -> None:
    path = tmp_path / "all_reduce.csv"
    path.write_text(f"{head}\n1,2,3\n", encoding="utf-8")
    with pytest.raises(InputError, match="no table"):
        measurements(path)
