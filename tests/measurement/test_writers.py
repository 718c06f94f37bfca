"""Does nccl-tests' own layout come out, and does reading give back what was written?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.collectives.kinds import ALL_GATHER, COLLECTIVES, Collective
from commsim.errors import InputError
from commsim.measurement.dtypes import ITEM_BYTES
from commsim.measurement.identify import MARKS
from commsim.measurement.read import measurements
from commsim.measurement.records import Host, Measurement, Row, Spread, Timing
from commsim.measurement.writers.nccl_tests import figure, write_text

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("value", "width", "text"),
    [
        (85.7, 7, "85.70"),
        (9999.99, 7, "9999.99"),
        (10061.72, 7, "10061.7"),
        (158724.4, 7, "158724"),
        (1263724.0, 7, "1263724"),
        (1.2e8, 7, "1.2e+08"),
        (0.0, 6, "0.00"),
        (482.27, 6, "482.27"),
        (1234.56, 6, "1234.6"),
        (12345.6, 6, "12346"),
        (2e7, 6, "2e+07"),
    ],
)
def test_figures(value: float, width: int, text: str) -> None:
    assert figure(value, width) == text


def test_layout() -> None:
    """The rows are laid out as nccl-tests 2.17.8 printed them on one H100 box (xxrjun/nccl-tests-cluster)."""
    out, into = Timing(182.87e-6, 183.49e9, 321.10e9, 0), Timing(182.87e-6, 183.49e9, 321.10e9, 0)
    row = Row(33554432, 4194304, out, into)
    host = Host(tuple(range(8)), "NVIDIA H100 80GB HBM3")
    one = Measurement(((COLLECTIVES["all_reduce"], 8),), (row,), dtype="double", redop="sum", hosts=(host,))
    lines = write_text(one).splitlines()
    side = "    time   algbw   busbw  #wrong "
    assert lines[-8:] == [
        f"#{'':62}out-of-place{'':23}in-place{'':10}",
        f"#       size         count      type   redop    root {side}{side}",
        f"#        (B)    (elements)                           {'    (us)  (GB/s)  (GB/s)         ' * 2}",
        f"    33554432       4194304    double     sum      -1{'   182.87  183.49  321.10       0' * 2}",
        "# Out of bounds values : 0 OK",
        "# Avg bus bandwidth    : 321.1 ",
        "#",
        "# Collective test concluded: all_reduce_perf",
    ]


def timings(size: int, kind: Collective, ranks: int, *, spread: bool) -> st.SearchStrategy[Timing]:
    def timing(us: float) -> Timing:
        seconds = float(figure(us, 7)) * 1e-6
        algbw = float(figure(size / seconds / 1e9, 6)) * 1e9
        busbw = float(figure(size / seconds * kind.factor(ranks) / 1e9, 6)) * 1e9
        return Timing(seconds, algbw, busbw, 0, Spread(1e-6, 2e-6, 2e-6, 0.5) if spread else None)

    return st.floats(max(1.0, size / 2e6), 1e7).map(timing)


@st.composite
def tables(draw: st.DrawFn) -> Measurement:
    """Draw a table as nccl-tests may have printed it."""
    kind, ranks = draw(st.sampled_from(list(COLLECTIVES.values()))), draw(st.sampled_from([2, 4, 8, 16, 72]))
    marks, dtype = MARKS[kind.name], draw(st.sampled_from(["float", "half", "bfloat16", "uint8"]))
    spread, one_sided = draw(st.booleans()), draw(st.sampled_from(["out", "in", "both"]))
    counts = sorted(draw(st.sets(st.integers(1, 2**30), min_size=1, max_size=4)))
    rows = []
    for count in counts:
        size = count * ITEM_BYTES[dtype] * (ranks if marks.per_rank else 1)
        out, into = (draw(timings(size, kind, ranks, spread=spread)) for _ in range(2))
        rows.append(Row(size, count, out if one_sided != "in" else None, into if one_sided != "out" else None))
    return Measurement(
        candidates=((kind, ranks),),
        rows=tuple(rows),
        dtype=dtype,
        redop="sum" if True in marks.redop and kind.name != "send_recv" else "none",
        root=0 if marks.root else -1,
        nodes=2,
        hosts=tuple(Host(tuple(range(n * ranks // 2, (n + 1) * ranks // 2)), "NVIDIA B200") for n in range(2)),
        accelerators=("NVIDIA B200",),
        library="nccl",
        version="2.30.7",
        tool="nccl-tests",
        tool_version="2.19.6",
    )


@given(tables())
def test_reading_gives_back_what_was_written(tmp_path_factory: pytest.TempPathFactory, one: Measurement) -> None:
    path: Path = tmp_path_factory.mktemp("written") / "log.txt"
    path.write_text(write_text(one), encoding="utf-8")
    (found,) = measurements(path)
    assert [found.op, found.ranks, found.hosts, found.version] == [one.op, one.ranks, one.hosts, one.version]
    assert (found.dtype, found.redop, found.root, found.problems) == (one.dtype, one.redop, one.root, ())
    assert write_text(found) == write_text(one)
    assert found.sizes.tolist() == one.sizes.tolist()
    assert found.seconds.tolist() == pytest.approx(one.seconds.tolist(), rel=1e-12)
    for mine, theirs in zip(one.rows, found.rows):
        assert (mine.out_of_place is None, mine.in_place is None) == (
            theirs.out_of_place is None,
            theirs.in_place is None,
        )


def test_what_another_tool_measured_can_be_written() -> None:
    """Elements, reduction and root follow from the operation where the other tool does not say them."""
    rows = (Row(1048576, 0, Timing(1e-4)),)
    lines = write_text(Measurement(((ALL_GATHER, 8),), rows, dtype="float")).splitlines()
    assert any(line.split()[:5] == ["1048576", "32768", "float", "none", "-1"] for line in lines)


def test_a_type_that_nccl_tests_has_not() -> None:
    with pytest.raises(InputError, match="no such type"):
        write_text(Measurement(((ALL_GATHER, 8),), (Row(1048576, 0, Timing(1e-4)),), dtype="complex"))
