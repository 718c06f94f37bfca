"""Are verdicts those of people who know the machine?"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import commsim as cs
from commsim.errors import InputError
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


def test_a_dip_is_low() -> None:
    seconds = by_model("all_reduce", H100)
    seconds[3:6] *= 5
    found = check(made("all_reduce", H100, seconds), H100)
    assert found.verdict == "low"
    assert "from 4 MiB to 64 MiB" in found.reasons[0]


def test_impossible() -> None:
    """NVIDIA/nccl#2408: 87.6 GB/s over one NIC of 50 GB/s; the data were wrong."""
    two = cs.load("hgx-h100", nodes=2, gpus_per_node=1)
    found = check(busbw("all_reduce", two, 2.0**20, 87.6), two)
    assert found.verdict == "impossible"
    assert "1.75 times what the links can carry" in found.reasons[0]


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
    assert "93% of the expected bandwidth at 64 MiB and above" in found.reasons[0]


def test_sizes_between_those_of_the_baseline() -> None:
    then = made("all_reduce", H100, SIZES / 1e11, SIZES)
    now = made("all_reduce", H100, SIZES[:-1] * 1.5 / 1e11, SIZES[:-1] * 1.5)
    assert beside(now, then).rows[0].expected == pytest.approx(1.75 * 1e11, rel=1e-6)


@pytest.mark.parametrize("op", ["all_gather", "reduce_scatter"])
def test_another_operation_is_no_baseline(op: str) -> None:
    with pytest.raises(InputError, match="all_reduce belongs here"):
        beside(made("all_reduce", H100, by_model("all_reduce", H100)), made(op, H100, by_model(op, H100)))


def test_a_baseline_of_other_sizes() -> None:
    small, large = np.array([8.0, 16.0]), np.array([2.0**30, 2.0**31])
    with pytest.raises(InputError, match="sizes around those of the table"):
        beside(made("all_reduce", H100, [1e-5, 1e-5], small), made("all_reduce", H100, [1e-2, 2e-2], large))
