"""Is an operation told from what its table shows, and only where nothing else would print such a table?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.collectives.kinds import ALL_GATHER, ALL_REDUCE, COLLECTIVES, REDUCE, SEND_RECV
from commsim.errors import InputError
from commsim.measurement.dtypes import dtype
from commsim.measurement.identify import MARKS, Columns, named
from commsim.measurement.records import Measurement, Row, Timing
from commsim.measurement.settings import knobs
from commsim.measurement.versions import code_of, version_of


def columns(op: str, ranks: int, *, told: int | None = None, wrong: int | None = 0) -> Columns:
    """Return what nccl-tests prints of an operation of 1 MiB floats in 10 us to 1 ms."""
    kind, marks = COLLECTIVES[op], MARKS[op]
    size = 2**18 * 4 * (ranks if marks.per_rank else 1)
    algbw = [round(size / time / 1e9, 2) * 1e9 for time in (1e-5, 1e-3)]
    sides = [Timing(1e-5, rate, round(rate * kind.factor(ranks) / 1e9, 2) * 1e9, wrong) for rate in algbw]
    into = [Timing(side.seconds, side.algbw, side.busbw, wrong if marks.in_place_checked else None) for side in sides]
    rows = [Row(size, 2**18, *pair) for pair in zip(sides, into)]
    redop = "sum" if True in marks.redop else "none"
    return Columns(rows, "float", redop, 0 if marks.root else -1, told)


@given(st.sampled_from(sorted(COLLECTIVES)), st.integers(2, 600))
def test_the_operation_is_among_the_candidates(op: str, ranks: int) -> None:
    found = columns(op, ranks, told=ranks).candidates()
    assert (COLLECTIVES[op], ranks) in found


@pytest.mark.parametrize("op", ["all_reduce", "all_gather", "reduce_scatter", "reduce", "broadcast"])
@pytest.mark.parametrize("ranks", [4, 8, 16])
def test_what_needs_no_word(op: str, ranks: int) -> None:
    assert [kind.name for kind, _ in columns(op, ranks, told=ranks).candidates()] == [op]


def test_ranks_by_the_figures() -> None:
    assert columns("all_gather", 16).candidates() == ((ALL_GATHER, 16),)
    assert columns("all_reduce", 16).candidates() == ((ALL_REDUCE, 16),)
    assert columns("reduce", 16).candidates() == ((REDUCE, None),)  # bus bandwidth is algorithm bandwidth


def test_two_ranks_leave_a_choice() -> None:
    """All_reduce and send_recv have the same factor on two ranks, and the same columns where nothing is checked."""
    assert columns("all_reduce", 2, told=2, wrong=None).candidates() == ((ALL_REDUCE, 2), (SEND_RECV, 2))


def test_figures_that_fit_nothing() -> None:
    shown = columns("all_reduce", 8, told=4)
    assert shown.candidates() == ()
    assert shown.candidates(trusting=False) == ((ALL_REDUCE, 4),)


@pytest.mark.parametrize(
    ("text", "op"),
    [
        ("all_reduce_perf_mpi", "all_reduce"),
        ("ReduceScatter", "reduce_scatter"),
        ("alltoall_perf", "all_to_all"),
        ("sendrecv_perf", "send_recv"),
        ("reduce_perf", "reduce"),
        ("h100_2x8_allgather_tcpx.log", "all_gather"),
        ("hypercube_perf", None),
        ("all_reduce-and-all_gather.log", None),
        ("log.txt", None),
    ],
)
def test_names(text: str, op: str | None) -> None:
    assert named(text) == (COLLECTIVES[op] if op else None)


@pytest.mark.parametrize(
    ("op", "ranks", "row", "algbw", "busbw"),
    [  # as public logs print them: an AWS p5, a GCP a3mega, a pair of H100 nodes with one GPU each, a box of H100
        ("all_reduce", 16, Row(2147483648, 0, Timing(9197.5e-6)), 233.49, 437.79),
        ("all_gather", 16, Row(8589934592, 0, Timing(42668.7e-6)), 201.32, 188.73),
        ("all_to_all", 2, Row(268435456, 0, Timing(9956.44e-6)), 26.96, 13.48),
        ("all_reduce", 8, Row(17179869184, 0, Timing(62340.7e-6)), 275.58, 482.27),
    ],
)
def test_bandwidths_are_those_of_nccl_tests(op: str, ranks: int, row: Row, algbw: float, busbw: float) -> None:
    one = Measurement(((COLLECTIVES[op], ranks),), (row,))
    assert round(float(one.algbw[0]) / 1e9, 2) == algbw
    assert round(float(one.busbw[0]) / 1e9, 2) == busbw


def test_types_by_torch() -> None:
    assert [dtype(name) for name in ("torch.float32", "float16", "bfloat16", "int")] == [
        "float",
        "half",
        "bfloat16",
        "int32",
    ]


@pytest.mark.parametrize(("code", "version"), [(23007, "2.30.7"), (22902, "2.29.2"), (20909, "2.9.9"), (2708, "2.7.8")])
def test_versions(code: int, version: str) -> None:
    assert version_of(code) == version
    assert code_of(version) == code


def test_settings_that_may_be_kept() -> None:
    kept = {"NCCL_ALGO": "^Ring,Tree", "NCCL_P2P_LEVEL": "SYS", "NCCL_BUFFSIZE": "8388608"}
    dropped = [
        "NCCL_IB_HCA=mlx5_0",
        "NCCL_ALGO=/etc/passwd",
        "HOME=/home/ada",
        "TOKEN=1",
        "NCCL_PROTO=a b",
        "NCCL_ALGO",
    ]
    assert knobs([*(f"{name}={value}" for name, value in kept.items()), *dropped]) == kept


def test_a_measurement_asks_and_refuses() -> None:
    rows = (Row(8, 2, Timing(1e-5)),)
    with pytest.raises(InputError, match="at least one rank"):
        Measurement(((ALL_REDUCE, 0),), rows)
    with pytest.raises(InputError, match="no less than 1 ps"):
        Timing(float("nan"))
    with pytest.raises(InputError, match="say how many ranks"):
        _ = Measurement(((ALL_REDUCE, None),), rows).busbw
    told = Measurement(((ALL_REDUCE, None), (SEND_RECV, None)), rows).narrowed(ALL_REDUCE, 8)
    assert (told.op, told.ranks) == (ALL_REDUCE, 8)
    assert told.busbw.tolist() == pytest.approx([8 / 1e-5 * 1.75])
