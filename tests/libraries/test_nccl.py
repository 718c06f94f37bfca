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
    collective,
)
from commsim.collectives.layout import Layout
from commsim.errors import InputError
from commsim.hardware.catalogue import load
from commsim.libraries.calibration import Case
from commsim.libraries.nccl import Nccl
from commsim.libraries.nccl.form import of_system
from commsim.libraries.nccl.tuner import tune

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
    """By one way; where NCCL's tuner changes from one to another it may lose time, or gain it late."""
    found = Nccl().time(op, np.sort(sizes), Layout.first(ranks), BOXES)
    for one in found.candidates:
        assert (np.diff(one.seconds) >= -1e-12 * one.seconds[1:]).all()
        assert one.seconds.min() > 0


@given(OPS, st.sampled_from([2, 8, 32]), st.floats(1, 1e11), st.sampled_from(["nvlink*", "* nic", "*"]))
def test_a_faster_link_never_costs_more(op: Collective, ranks: int, size: float, kind: str) -> None:
    layout, sizes = Layout.first(ranks), np.array([size])
    usual, faster = (
        Nccl().time(op, sizes, layout, BOXES, case=case).seconds[0] for case in (Case(), Case(faster=((kind, 2.0),)))
    )
    assert faster <= usual


@pytest.mark.parametrize("op", ["all_reduce", "all_gather", "reduce_scatter", "broadcast"])
@pytest.mark.parametrize("ranks", [2, 8, 32])
def test_the_tuner_picks(op: str, ranks: int) -> None:
    """What runs is what NCCL's own tuner says, however long it takes."""
    comm = of_system(load("hgx-h100", gpus=ranks))
    sizes = np.geomspace(64, 2**34, 40)
    picks = tune(comm).picks(op, sizes)
    found = Nccl().time(collective(op), sizes, Layout.first(ranks), BOXES)
    taken = [(found.choice(i).algorithm, found.choice(i).protocol) for i in range(len(sizes))]
    assert taken == list(zip(picks.algorithms, picks.protocols))


def test_without_a_tuner_the_quickest_way_is_taken() -> None:
    """On GPUs that NCCL does not know, in groups that sit unevenly, and where the network's plugin has a tuner."""
    boxes = [(load("mi300x").topology, Layout.first(8)), (load("aws-p5", nodes=2).topology, Layout.first(16))]
    for topology, layout in [*boxes, (BOXES, Layout.of([0, 1, 2, 8, 9, 30]))]:
        found = Nccl().time(ALL_REDUCE, SIZES, layout, topology)
        assert found.seconds.tolist() == np.min([one.seconds for one in found.candidates], axis=0).tolist()


def test_versions_are_told_apart() -> None:
    """One box of B200: 2.21 does not know Blackwell's LL128 yet, 2.30 does."""
    box, sizes = load("hgx-b200").topology, np.geomspace(2**20, 2**28, 20)
    found = {
        version: Nccl(version=version).time(ALL_GATHER, sizes, Layout.first(8), box) for version in ("2.21", "2.30")
    }
    taken = {version: {one.choice(i).protocol for i in range(20)} for version, one in found.items()}
    assert taken == {"2.21": {"LL", "Simple"}, "2.30": {"LL", "LL128", "Simple"}}


def test_old_versions_start_channel_by_channel() -> None:
    """Before 2.14 each of 24 channels costs 1.3 us at each call; large calls differ by no more than that."""
    old, new = (timed(ALL_GATHER, version=version).seconds for version in ("2.12", "2.18"))
    assert old[1] - new[1] == pytest.approx(24 * 1.27e-6, rel=0.3)


def test_sends_of_a_pair_have_few_channels() -> None:
    """Eight H100 shift 64 MiB: four channels of 20 GB/s each; 1 GiB goes over so many that the links count."""
    found = Nccl().time(SEND_RECV, np.array([2.0**26, 2.0**30]), Layout.first(8), BOXES)
    assert found.busbw[0] == pytest.approx(82e9, rel=0.05)
    assert found.busbw[1] == pytest.approx(361e9, rel=0.05)
    assert [found.choice(i).limit(i).split(" ")[0] for i in (0, 1)] == ["channels", "nvlink4"]


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


@pytest.mark.parametrize("ranks", [16, 72])
def test_a_rack_waits_for_its_switches_as_a_box_does(ranks: int) -> None:
    """NCCL's own model has 25 us for NVLS of however many ranks; small sizes are published for boxes of eight alone."""
    machine = load("gb200-nvl72", gpus=72)
    few, many = (
        Nccl().time(ALL_REDUCE, np.array([1024.0]), Layout.first(count), machine.topology) for count in (8, ranks)
    )
    of_few, of_many = (
        next(one.seconds[0] for one in each.candidates if one.algorithm == "NVLS") for each in (few, many)
    )
    assert of_few * 0.999 < of_many < of_few + 10e-6


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
