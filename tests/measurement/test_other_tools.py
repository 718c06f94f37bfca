"""Are PARAM, ds_bench, all_reduce_bench.py and OSU read in their own units and sizes?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from commsim.errors import InputError
from commsim.measurement.read import measurements

if TYPE_CHECKING:
    from pathlib import Path

    from commsim.measurement.records import Measurement


def read(path: Path, *lines: str, ranks: int | None = None) -> list[Measurement]:
    target = path / "out.txt"
    target.write_text("\n".join(lines), encoding="utf-8")
    return measurements(target, ranks=ranks)


PARAM = (
    "[Rank   0] allSizes: [8, 32] element_size: 4 local_rank: 0, num_pg 1, groupSize 4",
    "\t backend: nccl nw-stack: pytorch-dist args.data_types: ['float32']",
    "\tCOMMS-RES                  total-size (B)  nElementsPerRank  Time(us):p50",
)


def test_param(tmp_path: Path) -> None:
    row = (
        "\tCOMMS-RES-all_to_all-float32[tag]   1048576  65536   100.0  110.0  120.0  90.0  130.0   10.486   7.864   0.0"
    )
    (found,) = read(tmp_path, *PARAM, row)
    assert (found.op.name, found.ranks, found.dtype, found.library) == ("all_to_all", 4, "float", "nccl")
    assert found.seconds.tolist() == pytest.approx([100e-6])
    assert found.problems == ()


def test_param_names_what_it_cannot_read(tmp_path: Path) -> None:
    good = "\tCOMMS-RES-all_reduce-float32   1048576  262144   100.0  110.0  120.0  90.0  130.0   99.0   15.729   0.0"
    (found,) = read(tmp_path, *PARAM, good, "\tCOMMS-RES-pingpong-float32  8  2  1.0  2.0")
    assert any("has not the ten columns" in said for said in found.problems)
    assert any("printed 99" in said for said in found.problems)


def ds_bench(op: str, *rows: str, unit: str = "Gbps") -> tuple[str, ...]:
    return (
        f"---- Performance of {op} on 4 devices ------",
        f"Size (Bytes)   Description   Duration   Throughput ({unit})   BusBW ({unit})",
        *rows,
    )


@pytest.mark.parametrize(
    ("op", "size", "throughput", "busbw"),
    [  # 1 MiB a rank in 100 us: all_reduce counts it twice, gather types count all ranks
        ("all_reduce", 1048576, 2 * 83.886, 1.5 * 83.886),
        ("all_gather", 4194304, 335.544, 251.658),
        ("all_to_all", 1048576, 83.886, 62.915),
        ("broadcast", 1048576, 83.886, 83.886),
    ],
)
def test_ds_bench(tmp_path: Path, op: str, size: int, throughput: float, busbw: float) -> None:
    row = f"1.0 MB               262144x4                  100.000 us           {throughput:.3f}       {busbw:.3f}   "
    (found,) = read(tmp_path, *ds_bench(op, "FutureWarning: deprecated", row))
    assert (found.op.name, found.ranks, found.sizes.tolist()) == (op, 4, [size])
    assert found.seconds.tolist() == pytest.approx([100e-6])
    assert found.problems == ()
    assert found.busbw.tolist() == pytest.approx([busbw * 1e9 / 8], rel=1e-4)


def test_ds_bench_units(tmp_path: Path) -> None:
    raw = "1048576      262144x4     0.100 ms      10.486       10.486   "
    (found,) = read(tmp_path, *ds_bench("broadcast", raw, unit="GBps"))
    assert found.problems == ()
    (found,) = read(tmp_path, *ds_bench("broadcast", raw))
    assert any("printed" in said for said in found.problems)


def test_ds_bench_that_died(tmp_path: Path) -> None:
    (found,) = read(tmp_path, *ds_bench("gather", "1.0 MB  262144x4  nan us  nan  nan"))
    assert len(found.problems) == 3
    assert found.rows == ()


def torch_bench(rank: int, seconds: float) -> tuple[str, ...]:
    rate = 2 * 4e9 * 8 / seconds
    return (
        f"{rank}:",
        f" duration: {seconds:.4f} sec",
        f" algo throughput: {rate:.4f} bps, {rate / 1e9:.4f} Gbps",
        f" busbw: {rate / 1e9 * 0.75:.4f}  Gbps",
    )


def test_torch_bench(tmp_path: Path) -> None:
    """The mean over ranks, the median over rounds; throughput counts the size twice."""
    times = {0: (0.6633, 0.0478, 0.0480), 1: (0.4203, 0.0480, 0.0482)}
    rounds = [line for n in range(3) for rank, own in times.items() for line in torch_bench(rank, own[n])]
    (found,) = read(tmp_path, "0 data size: 4.0 GB", "NCCL version 2.7.8+cuda10.2", *rounds)
    assert (found.op.name, found.ranks, found.sizes.tolist()) == ("all_reduce", 2, [4_000_000_000])
    assert found.seconds.tolist() == pytest.approx([0.0481])
    assert (found.version, found.problems) == ("2.7.8", ())


def test_torch_bench_names_what_does_not_fit(tmp_path: Path) -> None:
    lines = ["0 data size: 4.0 GB", *torch_bench(0, 0.05), *torch_bench(2, 0.05), " algo throughput: 5.0 bps, 0 Gbps"]
    lines[2] = " duration: 0.0700 sec"
    (found,) = read(tmp_path, *lines)
    assert [said.split(":")[0] for said in found.problems] == ["line 4", "line 10", "2 of 3 ranks say their times"]


@pytest.mark.parametrize(
    ("title", "op", "times"),
    [
        ("MPI Allreduce Latency Test v5.9", "all_reduce", 1),
        ("MPI-CUDA Allgather Latency Test v7.4", "all_gather", 8),
        ("NCCL All-to-All Personalized Exchange Latency Test v7.4", "all_to_all", 8),
        ("MPI Broadcast Latency Test v5.9", "broadcast", 1),
        ("MPI Reduce_scatter Latency Test v5.9", "reduce_scatter", 1),
    ],
)
def test_osu(tmp_path: Path, title: str, op: str, times: int) -> None:
    head = ("# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations", "")
    rows = ("4                       2.31              1.90              2.80        1000", "8     3.00  2.0 4.0 1000")
    (found,) = read(tmp_path, f"# OSU {title}", "# Datatype: MPI_CHAR.", *head, *rows, ranks=8)
    assert (found.op.name, found.ranks, found.sizes.tolist()) == (op, 8, [4 * times, 8 * times])
    assert found.seconds.tolist() == pytest.approx([2.31e-6, 3e-6])
    assert (found.tool, found.dtype) == ("osu", "char")


def test_osu_between_two_ranks(tmp_path: Path) -> None:
    (found,) = read(tmp_path, "# OSU MPI Latency Test v5.9", "# Size          Latency (us)", "0       1.5", "1   1.6")
    assert (found.op.name, found.ranks, len(found.rows)) == ("send_recv", 2, 2)


def test_osu_asks_for_the_ranks(tmp_path: Path) -> None:
    lines = ("# OSU MPI Allgather Latency Test v5.9", "# Size       Avg Latency(us)", "4       2.31")
    with pytest.raises(InputError, match="say how many ranks"):
        read(tmp_path, *lines)
    (found,) = read(tmp_path, lines[0].replace("Allgather", "Allreduce"), *lines[1:])
    with pytest.raises(InputError, match="say how many ranks"):
        _ = found.ranks


def test_osu_bandwidth_is_no_time(tmp_path: Path) -> None:
    (found,) = read(tmp_path, "# OSU MPI Bandwidth Test v5.9", "# Size      Bandwidth (MB/s)", "1       7.5")
    assert found.rows == ()
    assert "no latency was printed" in found.problems
