"""Are verdicts those of people who know the machine?"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import commsim as cs
from commsim.collectives.kinds import ALL_GATHER, ALL_REDUCE
from commsim.collectives.layout import Layout
from commsim.errors import InputError
from commsim.libraries.nccl import Nccl
from commsim.measurement.check.caps import least_time_per_byte
from commsim.measurement.check.judge import OF_THE_MODEL, beside, check
from commsim.measurement.records import Nics, Row, Timing
from tests.measurement.check.tables import H100, SIZES, TWO, busbw, by_model, made

GIB = 2.0**30


def test_as_expected_is_good() -> None:
    found = check(made("all_reduce", TWO, by_model("all_reduce", TWO)), TWO)
    assert (found.verdict, found.causes) == ("good", ())
    assert found.reasons == ("100% of the expected bandwidth at 64 MiB and above",)
    assert {row.verdict for row in found.rows} == {"good"}
    assert all(row.low < row.busbw < row.high for row in found.rows if row.low and row.high)


@given(st.floats(0.02, 0.95))
def test_low_from_the_tolerance_on(share: float) -> None:
    found = check(made("all_gather", H100, by_model("all_gather", H100) / share), H100)
    assert found.verdict == ("low" if share < OF_THE_MODEL.large else "good")


def test_the_better_of_both_places_counts() -> None:
    """A single odd cell happens: the same row in place says what is right."""
    table = made("all_reduce", H100, by_model("all_reduce", H100))
    rows = [dataclasses.replace(row, in_place=Timing(row.timing.seconds)) for row in table.rows]
    odd = dataclasses.replace(rows[-1], out_of_place=Timing(rows[-1].timing.seconds * 40))
    assert check(dataclasses.replace(table, rows=(*rows[:-1], odd)), H100).verdict == "good"


def test_the_better_of_both_places_counts_in_each_row() -> None:
    table = made("all_gather", H100, by_model("all_gather", H100))
    rows = [
        Row(row.size, row.count, *(Timing(row.timing.seconds * by) for by in ((1, 3), (3, 1))[n % 2]))
        for n, row in enumerate(table.rows)
    ]
    found = check(dataclasses.replace(table, rows=tuple(rows)), H100)
    assert found.reasons == ("100% of the expected bandwidth at 64 MiB and above",)


@pytest.mark.parametrize(
    ("largest", "share", "verdict"),
    [
        (2.0**18, OF_THE_MODEL.small - 0.03, "low"),
        (2.0**18, OF_THE_MODEL.small + 0.03, "good"),
        (2.0**25, OF_THE_MODEL.middle - 0.03, "low"),
        (2.0**25, OF_THE_MODEL.middle + 0.03, "good"),
    ],
)
def test_smaller_sizes_are_allowed_more(largest: float, share: float, verdict: str) -> None:
    table = made("all_gather", H100, by_model("all_gather", H100) / share)
    some = tuple(row for row in table.rows if row.size <= largest)
    assert check(dataclasses.replace(table, rows=some), H100).verdict == verdict


def test_latency_is_no_dip() -> None:
    sizes = 2.0 ** np.array([8, 10, 12, 14, 28, 30, 32])
    usual = Nccl().time(ALL_REDUCE, sizes, Layout.first(8), H100.topology).seconds
    assert check(made("all_reduce", H100, usual * [9, 9, 9, 9, 1, 1, 1], sizes), H100).verdict == "good"


def test_a_dip_is_low() -> None:
    seconds = by_model("all_reduce", H100)
    seconds[3:6] *= 5
    found = check(made("all_reduce", H100, seconds), H100)
    assert found.verdict == "low"
    assert "from 4 MiB to 64 MiB" in found.reasons[0]


def test_a_dip_at_the_end_is_low() -> None:
    """Messages of 4 GiB on at a quarter of the bandwidth, in a table whose median is as expected."""
    sizes = 2.0 ** np.arange(26, 35).astype(np.float64)
    seconds = Nccl().time(ALL_REDUCE, sizes, Layout.first(8), H100.topology).seconds * [1, 1, 1, 1, 1, 1, 4, 4, 4]
    found = check(made("all_reduce", H100, seconds, sizes), H100)
    assert (found.verdict, found.reasons) == ("low", ("25% of the expected bandwidth from 4 GiB to 16 GiB",))


def test_impossible() -> None:
    """NVIDIA/nccl#2408: 87.6 GB/s over one NIC of 50 GB/s; the data were wrong."""
    two = cs.load("hgx-h100", nodes=2, gpus_per_node=1)
    found = check(busbw("all_reduce", two, 2.0**20, 87.6), two)
    assert found.verdict == "impossible"
    assert "1.75 times what the links can carry" in found.reasons[0]


@pytest.mark.parametrize(("beyond", "verdict"), [(1.01, "good"), (1.05, "impossible")])
def test_hardly_possible(beyond: float, verdict: str) -> None:
    """A figure is rounded, and clocks differ, by 2 % at most."""
    least = SIZES * least_time_per_byte(ALL_GATHER, 16, TWO.topology)
    assert check(made("all_gather", TWO, least / beyond), TWO).verdict == verdict


def test_no_more_than_is_possible_is_right() -> None:
    """All-gathers over 16 nodes come so near to the line of their NICs that what is right ends there."""
    many = cs.load("hgx-h100", nodes=16)
    row = check(made("all_gather", many, by_model("all_gather", many)), many).rows[-1]
    assert row.high == pytest.approx(ALL_GATHER.factor(128) / least_time_per_byte(ALL_GATHER, 128, many.topology))


def test_a_misprint_is_no_verdict() -> None:
    seconds = by_model("all_reduce", H100)
    seconds[-1] /= 10
    found = check(made("all_reduce", H100, seconds), H100)
    assert found.verdict == "good"
    assert found.rows[-1].verdict == "impossible"


def test_wrong_results_are_impossible() -> None:
    table = made("all_reduce", H100, by_model("all_reduce", H100))
    wrong = Row(8192, 2048, Timing(2e-5, wrong=3))
    found = check(dataclasses.replace(table, rows=(wrong, *table.rows)), H100)
    assert (found.verdict, found.reasons) == ("impossible", ("results are wrong at 8 KiB",))


def test_wrong_results_in_place_are_impossible() -> None:
    wrong = Row(8192, 2048, Timing(2e-5), Timing(2e-5, wrong=1))
    assert check(dataclasses.replace(made("all_reduce", H100, []), rows=(wrong,))).verdict == "impossible"


def test_faster_than_any_machine() -> None:
    found = check(busbw("all_reduce", H100, 2.0**30, 20_000))
    assert (found.verdict, found.reasons) == ("impossible", ("faster than any machine at 1 GiB",))


@pytest.mark.parametrize(("sizes", "seconds"), [((20, 22), (2e-5, 2e-5)), ((20, 26), (2e-5, 6e-5))])
def test_latency_is_no_mistake(sizes: tuple[int, int], seconds: tuple[float, float]) -> None:
    """Four times the bytes may take as long, 64 times three times as long, where latency is most of it."""
    found = check(made("all_reduce", H100, seconds, 2.0 ** np.array(sizes)))
    assert found.verdict == "unknown"


def test_calls_that_were_not_waited_for() -> None:
    """pytorch/pytorch#70267: the time of issuing a call does not grow with its size, on whatever machine."""
    seconds = np.full(len(SIZES), 22e-6)
    found = check(made("all_reduce", H100, seconds))
    assert found.verdict == "impossible"
    assert "the calls were timed, not the transfers" in " ".join(found.reasons)


def test_an_unknown_machine() -> None:
    found = check(made("all_reduce", H100, by_model("all_reduce", H100) * 50))
    assert (found.verdict, found.causes) == ("unknown", ())
    assert found.rows[0].expected is None


def test_the_machine_that_a_table_names() -> None:
    table = dataclasses.replace(made("all_reduce", TWO, by_model("all_reduce", TWO)), system="hgx-h100")
    found = check(table)
    assert found.system is not None
    assert (found.system.name, found.system.gpus, found.verdict) == ("hgx-h100", 16, "good")
    halved = check(table, nic="200 Gb/s")
    assert halved.rows[-1].expected < found.rows[-1].expected  # type: ignore[operator]


def test_what_is_assumed_of_the_network_is_said() -> None:
    table = made("all_reduce", TWO, by_model("all_reduce", TWO))
    (said,) = check(table, "hgx-h100").assumed
    assert said.startswith("8 NICs of 400 Gb/s a node, infiniband")
    assert not check(table, "hgx-h100", nic="200 Gb/s").assumed
    assert not check(table, TWO).assumed
    assert not check(dataclasses.replace(table, nics=Nics(8, 50e9)), "hgx-h100").assumed
    assert not check(made("all_reduce", H100, by_model("all_reduce", H100)), "hgx-h100").assumed


def test_nothing_measured() -> None:
    table = dataclasses.replace(made("all_reduce", H100, []), rows=())
    with pytest.raises(InputError, match="at least one size with a time"):
        check(table, H100)


def test_a_machine_that_is_too_small() -> None:
    with pytest.raises(InputError, match="at least the 16 GPUs"):
        check(made("all_reduce", TWO, by_model("all_reduce", TWO)), H100)


def test_beside_a_baseline() -> None:
    then = made("all_reduce", H100, by_model("all_reduce", H100))
    assert beside(then, then).verdict == "good"
    slower = made("all_reduce", H100, by_model("all_reduce", H100) * 1.08)
    found = beside(slower, then)
    assert (found.verdict, found.system) == ("low", None)
    assert "93% of the baseline's bandwidth at 64 MiB and above" in found.reasons[0]


def test_sizes_between_those_of_the_baseline() -> None:
    then = made("all_reduce", H100, SIZES / 1e11, SIZES)
    now = made("all_reduce", H100, SIZES[:-1] * 1.5 / 1e11, SIZES[:-1] * 1.5)
    assert beside(now, then).rows[0].expected == pytest.approx(1.75 * 1e11, rel=1e-6)


@pytest.mark.parametrize(
    ("sizes", "share", "verdict"),
    [
        ((10, 12, 14), 0.72, "low"),
        ((10, 12, 14), 0.78, "good"),
        ((21, 23, 25), 0.82, "low"),
        ((21, 23, 25), 0.88, "good"),
    ],
)
def test_beside_a_baseline_of_small_sizes(sizes: tuple[int, ...], share: float, verdict: str) -> None:
    of = 2.0 ** np.array(sizes)
    then, now = (made("all_reduce", H100, of / 1e11 / by, of) for by in (1.0, share))
    assert beside(now, then).verdict == verdict


def test_a_dip_beside_a_baseline() -> None:
    then = made("all_reduce", H100, SIZES / 1e11)
    now = made("all_reduce", H100, SIZES / 1e11 / [1, 1, 0.77, 0.77, 0.77, 1, 1, 1, 1])
    assert beside(now, then).verdict == "low"


def test_a_baseline_in_any_order() -> None:
    then = made("all_reduce", H100, by_model("all_reduce", H100))
    assert beside(then, dataclasses.replace(then, rows=then.rows[::-1])).reasons == beside(then, then).reasons


@pytest.mark.parametrize("op", ["all_gather", "reduce_scatter"])
def test_another_operation_is_no_baseline(op: str) -> None:
    with pytest.raises(InputError, match="all_reduce belongs here"):
        beside(made("all_reduce", H100, by_model("all_reduce", H100)), made(op, H100, by_model(op, H100)))


def test_a_baseline_of_other_sizes() -> None:
    small, large = np.array([8.0, 16.0]), np.array([2.0**30, 2.0**31])
    with pytest.raises(InputError, match="sizes around those of the table"):
        beside(made("all_reduce", H100, [1e-5, 1e-5], small), made("all_reduce", H100, [1e-2, 2e-2], large))


def test_windows_are_held_against_what_windows_take() -> None:
    """Registered with -R 2, ordinary times are low at 64 KiB, and the kernels that did not run are named first."""
    sizes, settings = np.array([2.0**14, 2.0**16]), {"local_register": "2", "NCCL_WIN_ENABLE": "0"}
    windows, ordinary = (
        Nccl(symmetric=on).time(ALL_REDUCE, sizes, Layout.first(8), H100.topology).seconds for on in (True, False)
    )
    assert check(made("all_reduce", H100, windows, sizes, library="nccl", settings=settings), H100).verdict == "good"
    found = check(made("all_reduce", H100, ordinary * 1.05, sizes, library="nccl", settings=settings), H100)
    assert found.verdict == "low"
    assert (found.causes[0].cause.name, found.causes[0].evidence) == ("no-windows", "NCCL_WIN_ENABLE=0")
    unregistered = check(made("all_reduce", H100, ordinary, sizes, library="nccl"), H100)
    assert unregistered.verdict == "good"


def test_gpus_of_no_usual_machine_are_named() -> None:
    table = made("all_reduce", H100, by_model("all_reduce", H100))
    found = check(dataclasses.replace(table, system="", accelerators=("NVIDIA GH200 120GB",) * 8))
    assert (found.verdict, found.reasons) == (
        "unknown",
        ("no machine is usual for NVIDIA GH200 120GB: say --system",),
    )


@pytest.mark.parametrize(("device", "doubted"), [("NVIDIA H100 80GB HBM3", 0), ("NVIDIA B200", 1), ("Some GPU", 0)])
def test_gpus_of_another_architecture_are_doubted(device: str, doubted: int) -> None:
    table = made("all_reduce", H100, by_model("all_reduce", H100))
    found = check(dataclasses.replace(table, accelerators=(device,) * 8), H100)
    assert len(found.table.problems) == doubted
    assert all(device in problem and H100.name in problem for problem in found.table.problems)


def test_a_run_that_died_says_of_what() -> None:
    table = made("all_reduce", H100, [], np.array([]))
    with pytest.raises(InputError, match="no rows"):
        check(table, H100)
    with pytest.raises(InputError, match="the run failed: out of memory"):
        check(dataclasses.replace(table, problems=("the run failed: out of memory",)), H100)


def test_rows_that_move_nothing_are_no_rows() -> None:
    """nccl-tests prints sizes of 0 where each rank would get less than an element."""
    table = made("all_gather", H100, by_model("all_gather", H100))
    found = check(dataclasses.replace(table, rows=(Row(0, 0, Timing(1e-5)), *table.rows)), H100)
    assert (found.verdict, len(found.rows)) == ("good", len(table.rows))
