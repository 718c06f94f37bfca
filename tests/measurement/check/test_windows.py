"""Is a run that says it used symmetric windows, and did not, told from one that is merely slow?"""

from __future__ import annotations

import numpy as np
import pytest

import commsim as cs
from commsim.collectives.kinds import ALL_REDUCE, ALL_TO_ALL
from commsim.collectives.layout import Layout
from commsim.libraries.nccl import Nccl
from commsim.measurement.check.judge import check
from tests.measurement.check.tables import made

B200 = cs.load("hgx-b200")
SIZES = np.array([2.0**power for power in range(12, 34)])
WINDOWS, ORDINARY = (
    Nccl(symmetric=on).time(ALL_REDUCE, SIZES, Layout.first(8), B200.topology).seconds for on in (True, False)
)
CLAIMS = {"library": "nccl", "settings": {"local_register": "2"}}


@pytest.mark.parametrize(("share", "rows"), [(1.0, SIZES.size), (0.97, SIZES.size), (1.05, SIZES.size), (1.0, 6)])
def test_ordinary_times_are_named(share: float, rows: int) -> None:
    """They can be within what is right for windows: 77 to 85 % of the bandwidth of large messages."""
    found = check(made("all_reduce", B200, ORDINARY[:rows] / share, SIZES[:rows], **CLAIMS), B200)
    assert ["ordinary buffers" in problem for problem in found.table.problems] == [True]


@pytest.mark.parametrize("share", [1.3, 1.0, 0.9, 0.8])
def test_windows_that_are_slow_are_windows(share: float) -> None:
    assert check(made("all_reduce", B200, WINDOWS / share, SIZES, **CLAIMS), B200).table.problems == ()


def test_nothing_is_said_of_runs_that_claim_nothing() -> None:
    assert check(made("all_reduce", B200, ORDINARY, SIZES, library="nccl"), B200).table.problems == ()


def test_few_rows_tell_nothing() -> None:
    assert check(made("all_reduce", B200, ORDINARY[:2], SIZES[:2], **CLAIMS), B200).table.problems == ()


def test_operations_without_such_kernels_are_alike() -> None:
    seconds = Nccl().time(ALL_TO_ALL, SIZES, Layout.first(8), B200.topology).seconds
    assert check(made("all_to_all", B200, seconds, SIZES, **CLAIMS), B200).table.problems == ()
