"""Is a sweep one collective over sizes, between its limit and its range?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import commsim as cs
from commsim.collectives.kinds import COLLECTIVES
from commsim.errors import InputError
from commsim.libraries.calibration import Case
from commsim.libraries.ideal import Ideal
from commsim.libraries.sweep import LARGEST, sweep

MACHINES = {name: cs.load(name) for name in ("hgx-h100", "vr-nvl72", "pcie-4090")}
"""Where GPUs are wired to each other NCCL's search finds rings that no schedule of the table is."""


@given(st.sampled_from(sorted(MACHINES)), st.sampled_from(sorted(COLLECTIVES)), st.integers(1, 2**40))
def test_nothing_beats_the_wire(name: str, op: str, size: int) -> None:
    swept = sweep(op, MACHINES[name], [size])
    assert 0 < swept.limit.seconds[0] <= swept.timing.seconds[0]


@given(st.sampled_from(sorted(COLLECTIVES)), st.integers(1, 2**40))
def test_the_ends_enclose_the_nominal_time(op: str, size: int) -> None:
    swept = sweep(op, MACHINES["vr-nvl72"], [size])
    assert swept.ends is not None
    fast, slow = swept.ends
    assert fast.seconds[0] <= swept.timing.seconds[0] <= slow.seconds[0]


def test_certain_machines_have_no_range() -> None:
    assert sweep("all_reduce", MACHINES["hgx-h100"], "1M").ends is None


def test_the_library_is_kept() -> None:
    swept = sweep("all_gather", MACHINES["hgx-h100"], "1K..1M", library=Ideal())
    assert swept.timing.seconds.tolist() == swept.limit.seconds.tolist()
    assert swept.at(Case(faster=(("*", 2.0),))).seconds[-1] < swept.timing.seconds[-1]


def test_sizes_are_written_or_counted() -> None:
    assert sweep("reduce", MACHINES["hgx-h100"], "1K,4K").sizes.tolist() == [1024.0, 4096.0]
    assert sweep("reduce", MACHINES["hgx-h100"], (8, 16)).timing.ranks == 8


@pytest.mark.parametrize("size", [0, -1, float("nan"), float("inf"), LARGEST * 2])
def test_sizes_that_are_none(size: float) -> None:
    with pytest.raises(InputError, match="1 B to 1 EiB"):
        sweep("all_reduce", MACHINES["hgx-h100"], [size])


def test_no_size_at_all() -> None:
    with pytest.raises(InputError, match="at least one size"):
        sweep("all_reduce", MACHINES["hgx-h100"], [])
