"""Does NCCL pick among its own ways, as it is told, and are its times in order?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.collectives.kinds import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    BROADCAST,
    COLLECTIVES,
    REDUCE_SCATTER,
    SEND_RECV,
    Collective,
)
from commsim.collectives.layout import Layout
from commsim.errors import InputError
from commsim.hardware.catalogue import load
from commsim.libraries.calibration import Case
from commsim.libraries.nccl import Nccl

if TYPE_CHECKING:
    from commsim.libraries.library import Timing

OPS = st.sampled_from(list(COLLECTIVES.values()))
BOXES = load("hgx-h100", nodes=4).topology
SIZES = np.array([1024.0, 2.0**20, 2.0**30])


def timed(op: Collective, ranks: int = 8, **settings: Any) -> Timing:  # noqa: ANN401 - the fields of Nccl
    """NCCL's times of three sizes among the first ranks of four boxes."""
    return Nccl(**settings).time(op, SIZES, Layout.first(ranks), BOXES)


def ways(found: Timing) -> set[str]:
    """The algorithms that it could take."""
    return {one.algorithm for one in found.candidates}


@given(OPS, st.sampled_from([2, 4, 8, 16, 32]), st.lists(st.floats(1, 1e11), min_size=2, max_size=5))
def test_more_bytes_never_take_less(op: Collective, ranks: int, sizes: list[float]) -> None:
    found = Nccl().time(op, np.sort(sizes), Layout.first(ranks), BOXES)
    assert (np.diff(found.seconds) >= -1e-12 * found.seconds[1:]).all()
    assert found.seconds.min() > 0


@given(OPS, st.sampled_from([2, 8, 32]), st.floats(1, 1e11), st.sampled_from(["nvlink*", "* nic", "*"]))
def test_a_faster_link_never_costs_more(op: Collective, ranks: int, size: float, kind: str) -> None:
    layout, sizes = Layout.first(ranks), np.array([size])
    usual, faster = (
        Nccl().time(op, sizes, layout, BOXES, case=case).seconds[0] for case in (Case(), Case(faster=((kind, 2.0),)))
    )
    assert faster <= usual


@given(OPS, st.sampled_from([2, 8, 32]))
def test_the_quickest_way_is_taken(op: Collective, ranks: int) -> None:
    found = timed(op, ranks)
    assert found.seconds.tolist() == np.min([one.seconds for one in found.candidates], axis=0).tolist()


def test_what_nccl_has() -> None:
    """As of NCCL 2.30: rings for all of the rooted five, trees and switches for all-reduce, peers for the rest."""
    assert ways(timed(ALL_REDUCE)) == {"Ring", "Tree", "NVLS"}
    assert ways(timed(ALL_REDUCE, 32)) == {"Ring", "Tree", "NVLSTree"}
    for op in (ALL_GATHER, REDUCE_SCATTER, BROADCAST):
        assert "Ring" in ways(timed(op, 32))
    assert ways(timed(ALL_TO_ALL, 32)) == ways(timed(SEND_RECV)) == {"SendRecv"}


def test_switches_reduce_unless_told_not_to() -> None:
    assert timed(ALL_REDUCE).choice(2).algorithm == "NVLS"
    assert "NVLS" not in ways(timed(ALL_REDUCE, nvls=False))
    assert not {"NVLS", "NVLSTree"} & ways(timed(ALL_REDUCE, 32, nvls=False))


def test_the_network_reduces_only_when_told_to() -> None:
    assert "CollNetDirect" not in ways(timed(ALL_REDUCE, 32))
    assert "CollNetDirect" in ways(timed(ALL_REDUCE, 32, collnet=True))


def test_small_messages_take_ll_and_large_ones_simple() -> None:
    found = timed(ALL_REDUCE, nvls=False)
    assert (found.choice(0).protocol, found.choice(2).protocol) == ("LL", "Simple")


def test_as_it_is_told() -> None:
    found = timed(ALL_REDUCE, 32, algorithm="tree", protocol="ll128")
    assert {(one.algorithm, one.protocol) for one in found.candidates} == {("Tree", "LL128")}


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"algorithm": "Rings"}, r"algorithm: 'Rings'; .*did you mean 'Ring'"),
        ({"protocol": "LL12"}, r"protocol: 'LL12'; .*did you mean 'LL128'"),
        ({"algorithm": "SendRecv"}, "nccl: all_reduce of 8 ranks: .*; NCCL has no such way of doing it"),
        ({"algorithm": "NVLS", "protocol": "LL"}, "nccl: all_reduce of 8 ranks: 'algorithm NVLS, protocol LL'"),
    ],
)
def test_mistakes(settings: dict[str, Any], line: str) -> None:
    with pytest.raises(InputError, match=line):
        timed(ALL_REDUCE, **settings)


def test_settings_are_values() -> None:
    assert Nccl() == Nccl()
    assert Nccl(nvls=False) != Nccl()
