"""Is an nccl-tests log read whatever generation wrote it and whatever was printed between?"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.errors import InputError
from commsim.measurement.read import measurements
from tests.measurement.printed import FOOTER, HALVES, HEADS, MESSAGE, ROWS, devices, log

if TYPE_CHECKING:
    from pathlib import Path

    from commsim.measurement.records import Measurement


@pytest.fixture
def read(tmp_path: Path) -> Reading:
    return Reading(tmp_path / "log.txt")


class Reading:
    """Reads a text as a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __call__(self, text: str, **told: object) -> list[Measurement]:
        self.path.write_text(text, encoding="utf-8")
        return measurements(self.path, **told)  # type: ignore[arg-type]

    def one(self, text: str) -> Measurement:
        (found,) = self(text)
        return found


def test_a_whole_log(read: Reading) -> None:
    found = read.one(log())
    assert (found.op.name, found.ranks, found.nodes, found.dtype, found.redop) == ("all_reduce", 8, 1, "float", "sum")
    assert found.sizes.tolist() == [1048576, 2097152]
    assert found.seconds.tolist() == pytest.approx([100e-6, 150e-6])
    assert found.in_place_seconds.tolist() == pytest.approx([105e-6, 160e-6])
    assert found.busbw.tolist() == pytest.approx([18.35e9, 24.47e9], rel=1e-3)
    assert found.settings["iterations"] == "20"
    assert found.settings["warmup"] == "5"
    assert (found.problems, found.notes) == ((), ())


def test_hosts_are_numbered_and_their_names_dropped(read: Reading) -> None:
    found = read.one("\n".join([*devices(16, hosts=2), HEADS["new"], ROWS[0].replace("18.35", "19.66"), *FOOTER[:1]]))
    assert [host.ranks for host in found.hosts] == [tuple(range(8)), tuple(range(8, 16))]
    assert found.accelerators == ("NVIDIA H100 80GB HBM3",)
    assert "gpu-a" not in repr(found)


@pytest.mark.parametrize(
    "prefix", ["[1,0]<stdout>:", " 0: ", "[0] ", "    ", "[STAT]:", "2026-05-05T06:16:47.123Z ", "> "]
)
def test_launchers_tags(read: Reading, prefix: str) -> None:
    found = read.one("\n".join(prefix + line for line in log().splitlines()))
    assert (found.op.name, found.ranks, len(found.rows), found.problems) == ("all_reduce", 8, 2, ())


def test_a_tag_within_a_row(read: Reading) -> None:
    tag = "[1,0]<stdout>:"
    tagged = "".join(f"{tag}{line}\n" for line in log().splitlines())
    assert read.one(tagged.replace(ROWS[0], tag.join(HALVES[0]))) == read.one(log())


@pytest.mark.parametrize("at", ["-1", "sum", "18.35", "18.35      0", "float"])
def test_a_row_cut_by_a_message_is_put_together(read: Reading, at: str) -> None:
    """NCCL's message is glued to what it cuts; the rest of the row comes on a line of its own, some lines later."""
    head, _, tail = ROWS[0].partition(at)
    glue = " " if at == "float" else ""
    found = read.one(log().replace(ROWS[0], f"{head}{at}{glue}{MESSAGE}\n{MESSAGE}\n{tail}"))
    if at == "float":  # the reduction stands alone on the next line: no row can be told from that
        assert any("is broken" in said for said in found.problems)
        return
    assert found.rows == read.one(log()).rows
    assert any("put together from 2 pieces" in said for said in found.notes)
    assert found.problems == ()


def test_a_message_before_a_row_on_the_same_line(read: Reading) -> None:
    assert read.one(log().replace(ROWS[0], MESSAGE + ROWS[0])).rows == read.one(log()).rows


def test_a_row_cut_within_a_figure_is_named(read: Reading) -> None:
    found = read.one(log().replace(ROWS[0], ROWS[0].replace("10.49", f"10.4{MESSAGE}\n9")))
    assert len(found.rows) == 1
    assert any("line" in said and "1048576 B is broken" in said for said in found.problems)


def test_columns_that_touch_are_named(read: Reading) -> None:
    found = read.one(log().replace("    100.0   10.49", "1000000.1010.49"))
    assert any("1048576 B is broken" in said for said in found.problems)


@pytest.mark.parametrize("host", ["gpu-a7", "max01", "10.0.0.1", "3090-node1"])
@given(data=st.data())
def test_wherever_a_message_cuts_a_row(
    tmp_path_factory: pytest.TempPathFactory, host: str, data: st.DataObject
) -> None:
    """Either the row comes out as it was, or it is said that something is wrong: whatever the host calls itself."""
    read = Reading(tmp_path_factory.mktemp("cut") / "log.txt")
    at = data.draw(st.integers(0, len(ROWS[0])))
    message = MESSAGE.replace("gpu-a7", host)
    found = read(log().replace(ROWS[0], f"{ROWS[0][:at]}{message}\n{message}\n{ROWS[0][at:]}"))
    assert any(one.problems for one in found) or found[0].rows == read.one(log()).rows


def test_a_lost_row_is_missed(read: Reading) -> None:
    found = read.one(log().replace(ROWS[0] + "\n", ""))
    assert "1 rows of the 2 sizes that were to be measured" in found.problems
    assert any("average 23.705 GB/s, printed 20.81" in said for said in found.problems)


def test_a_figure_that_contradicts_time_and_size_is_named(read: Reading) -> None:
    found = read.one(log().replace("   10.49   18.35", "   19.49   18.35"))
    assert any("size / time of 1048576 B is 10.49 GB/s, printed 19.49" in said for said in found.problems)
    found = read.one(log().replace("   24.47 ", "   29.47 "))
    assert any("busbw by algbw on 8 ranks" in said for said in found.problems)


def test_a_run_that_died_before_its_first_row(read: Reading) -> None:
    rest = "gpu-a7: Test NCCL failure all_reduce.cu:274 'remote process exited at 10.1.2.3'\n"
    found = read.one("# Collective test starting: all_reduce_perf\n" + log().split(ROWS[0])[0] + rest)
    assert (found.op.name, found.ranks, found.rows) == ("all_reduce", 8, ())
    assert found.problems == (
        "the run failed: Test NCCL failure all_reduce.cu:274 'remote process exited at ADDRESS'",
        "the run ended before its first row (2 sizes were to come)",
    )


def test_a_run_that_died_midway(read: Reading) -> None:
    found = read.one(log().split(ROWS[1])[0])
    assert found.problems == (
        "1 rows of the 2 sizes that were to be measured",
        "the run ended at 1048576 B without its closing lines",
    )


def test_placeholders_are_refused(read: Reading) -> None:
    rows = re.sub(r"(?<=-1).*", "    XXXXX  XXX.XX  XXX.XX    N/A   XXXXXX  XXX.XX  XXX.XX      0", ROWS[0])
    with pytest.raises(InputError, match="1048576 B is broken: 'XXXXX"):
        read(log(rows))


@pytest.mark.parametrize("bad", ["nan", "inf", "-100.0", "0.00"])
def test_a_time_that_nothing_takes_is_named(read: Reading, bad: str) -> None:
    found = read.one(log().replace("    100.0 ", f"    {bad} "))
    assert len(found.rows) == 1
    assert any("are no time and bandwidths" in said or "is broken" in said for said in found.problems)


def test_wrong_results_are_a_problem(read: Reading) -> None:
    found = read.one(log().replace("18.35      0", "18.35  1e+06").replace(": 0 OK", ": 1 FAILED"))
    assert found.rows[0].out_of_place
    assert found.rows[0].out_of_place.wrong == 1_000_000
    assert any("wrong results" in said for said in found.problems)


def test_only_out_of_place(read: Reading) -> None:
    found = read.one(log(*(head + out[:-1] + "N/A" for head, out, _ in HALVES)))
    assert [row.in_place for row in found.rows] == [None, None]
    assert found.seconds.tolist() == pytest.approx([100e-6, 150e-6])


def test_only_in_place(read: Reading) -> None:
    found = read.one(log(*(head + " " * len(out) + into for head, out, into in HALVES)))
    assert found.rows[0].out_of_place is None
    assert found.seconds.tolist() == pytest.approx([105e-6, 160e-6])
    assert any("in place stands for it" in said for said in found.notes)


def test_columns_of_each_iteration(read: Reading) -> None:
    head = HEADS["new"].replace("#wrong", "#wrong   i_min   i_max   i_p99   i_cv%")
    out = "    61.20  137.07  239.87       0    58.90    70.10    70.00     3.20"
    into = "    60.90  137.74  241.05       0    58.70    66.00    66.00     2.10"
    row = f"     8388608       2097152     float     sum      -1{out}{into}  2026-07-01 10:00:00"
    found = read.one("\n".join([*devices(), head, row]))
    side = found.rows[0].out_of_place
    assert side
    assert side.spread
    spread = (side.spread.fastest, side.spread.slowest, side.spread.p99, side.spread.variation)
    assert spread == pytest.approx((58.9e-6, 70.1e-6, 70e-6, 0.032))
    assert found.rows[0].in_place
    assert found.rows[0].in_place.seconds == pytest.approx(60.9e-6)


def test_a_timestamp_is_no_figure(read: Reading) -> None:
    assert read.one(log(*(f"{row}  2026-07-01 10:00:00" for row in ROWS))).rows == read.one(log()).rows


def test_rows_of_size_zero_are_kept(read: Reading) -> None:
    zero = "           0             0     float    none      -1" + "     0.30    0.00    0.00      0" * 2
    row = "         256             8     float    none      -1" + "    86.95    0.00    0.00      0" * 2
    found = read.one(log(zero, row))
    assert found.sizes.tolist() == [0, 256]
    assert found.candidates[0][1] == 8


def test_one_process_for_each_size(read: Reading) -> None:
    found = read("".join(log(row) for row in ROWS))
    assert [one.sizes.tolist() for one in found] == [[1048576], [2097152]]


def test_types_under_one_heading_are_apart(read: Reading) -> None:
    found = read(log(ROWS[0], ROWS[0].replace(" float", "double").replace("262144", "131072")))
    assert [(one.dtype, one.op.name) for one in found] == [("float", "all_reduce"), ("double", "all_reduce")]


def test_several_ranks_that_all_print(read: Reading) -> None:
    """Without MPI every process prints its own table: that of the lowest rank is kept."""
    lines = log().splitlines()
    found = read.one("\n".join(f"[1,{rank}]<stdout>:{line}" for line in lines for rank in (1, 0)))
    assert len(found.rows) == 2


@pytest.mark.parametrize(
    ("line", "library", "version"),
    [
        ("NCCL version 2.22.3+cuda12.2", "nccl", "2.22.3"),
        (f"{MESSAGE[:24]}NCCL INFO NCCL version 2.30.7+cuda13.1", "nccl", "2.30.7"),
        ("# nccl-tests version 2.20.0 (4f2a1c) nccl-headers=22902 nccl-library=23007", "nccl", "2.30.7"),
        ("RCCL version : 2.26.6-HEAD:abc", "rccl", "2.26.6"),
        ("NCCL version 2.18.3+hip5.7", "rccl", "2.18.3"),
    ],
)
def test_versions(read: Reading, line: str, library: str, version: str) -> None:
    found = read.one(f"{line}\n{log()}")
    assert (found.library, found.version) == (library, version)


def test_settings_are_kept_and_places_are_not(read: Reading) -> None:
    said = "gpu-a7:42:43 [0] NCCL INFO {} set by environment to {}."
    keys = ("NCCL_P2P_DISABLE", "1"), ("NCCL_SOCKET_IFNAME", "ens7"), ("NCCL_TOPO_FILE", "/home/ada/topo.xml")
    found = read.one("\n".join(said.format(*pair) for pair in keys) + "\n" + log())
    assert found.settings["NCCL_P2P_DISABLE"] == "1"
    assert "ens7" not in repr(found)
    assert "ada" not in repr(found)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("mpirun -np 8 ./build/all_reduce_perf -b 8 -e 8G -f 2 -g 1 -R 2 -c 0", "2"),
        ("$ ./build/all_reduce_perf -b 8 --local_register=1 -g 8", "1"),
        ("$ ./build/all_reduce_perf -b 8 -g 8", None),
        ("gpu-a7:42:43 [0] NCCL INFO AllReduce [Symmetric]: 8 Bytes -> Kernel AllReduce_AGxLL_R nchannels 1", "2"),
    ],
)
def test_how_buffers_are_registered(read: Reading, line: str, expected: str | None) -> None:
    assert read.one(f"{line}\n{log()}").settings.get("local_register") == expected


def test_largest_size_that_memory_allowed(read: Reading) -> None:
    reduced = log(high=8388608).replace("# Using", "# Reducing maxBytes to 3000000 due to memory limitation\n# Using")
    assert read.one(reduced).problems == ()


def test_groups_that_act_at_once(read: Reading) -> None:
    found = read.one(
        log(ranks=16).replace("Group  0 Pid   4242 on     gpu-a0 device  1", "Group  1 Pid 1 on a device 1")
    )
    assert any("2 groups of 15 ranks" in said for said in found.notes)


def test_host_times_are_a_problem(read: Reading) -> None:
    assert any("launched" in said for said in read.one(log().replace("    time   algbw", " cputime   algbw")).problems)


def test_a_shortened_list_of_devices(read: Reading) -> None:
    found = read.one("\n".join(line for line in log().splitlines() if not re.search(r"Rank  [1-6]", line)))
    assert (found.ranks, found.nodes) == (8, 1)
    found = read.one("\n".join(line for line in log().splitlines() if not re.search(r"Rank  [0-6]", line)))
    assert (found.ranks, found.nodes, found.accelerators) == (8, None, ("NVIDIA H100 80GB HBM3",))


def test_unknown_test_is_named(read: Reading) -> None:
    found = read.one("# Collective test starting: hypercube_perf\n" + log())
    assert any("hypercube_perf" in said for said in found.problems)
    with pytest.raises(InputError, match="say which operation"):
        _ = found.op
