"""Is the wire alone the physical limit?"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.collectives.algorithms import serving_on
from commsim.collectives.kinds import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, COLLECTIVES, REDUCE_SCATTER, Collective
from commsim.collectives.layout import Layout
from commsim.hardware.catalogue import load
from commsim.libraries.calibration import Case
from commsim.libraries.ideal import Ideal
from commsim.libraries.nccl import Nccl
from tests.machines import LINKS, mesh, pods, switch

OPS = st.sampled_from(list(COLLECTIVES.values()))
LARGE = 1e12
"""Bytes of which latency takes no visible share."""


def seconds(op: Collective, size: float, layout: Layout, machine: object) -> float:
    """The time of the wire alone."""
    return float(Ideal().time(op, np.array([size]), layout, machine).seconds[0])  # type: ignore[arg-type]


@pytest.mark.parametrize(("op", "share"), [(ALL_GATHER, 3 / 4), (REDUCE_SCATTER, 3 / 4), (ALL_TO_ALL, 3 / 4)])
def test_one_switch_carries_what_the_textbook_says(op: Collective, share: float) -> None:
    """(n - 1)/n of the size leaves, or reaches, each rank (Thakur, Rabenseifner and Gropp 2005, section 4)."""
    found = seconds(op, LARGE, Layout.first(4), switch(4))
    assert found == pytest.approx(share * LARGE / LINKS["nvlink"].bandwidth, rel=1e-3)


def test_switches_that_reduce_halve_an_all_reduce() -> None:
    """S (1 + 1/n) on each link with them, 2 S (n - 1)/n without (a mesh has no switch; its n - 1 links share)."""
    rate = LINKS["nvlink"].bandwidth
    assert seconds(ALL_REDUCE, LARGE, Layout.first(8), switch(8)) == pytest.approx(LARGE * (1 + 1 / 8) / rate, rel=1e-3)
    assert seconds(ALL_REDUCE, LARGE, Layout.first(4), mesh(4)) == pytest.approx(LARGE * 2 / 4 / rate, rel=1e-3)


def test_alone_a_rank_waits_for_nothing() -> None:
    assert seconds(ALL_REDUCE, 1e9, Layout.first(1), switch(4)) == 0.0


@given(OPS, st.sampled_from([2, 4, 8]), st.floats(1, 1e11))
def test_it_is_the_cheapest_schedule(op: Collective, ranks: int, size: float) -> None:
    machine = pods(2)
    found = Ideal().time(op, np.array([size]), Layout.first(ranks), machine)
    assert found.seconds[0] == min(one.seconds[0] for one in found.candidates)
    assert {one.algorithm for one in found.candidates} == {
        one.name for one in serving_on(op, Layout.first(ranks), machine)
    }


@pytest.mark.parametrize("nodes", [2, 3, 5, 6, 7, 8])
def test_the_limit_does_not_ask_for_a_power_of_two(nodes: int) -> None:
    """What a GPU receives through its own NIC, (m - 1)/m of 1/8 of the size, or over NVLink: whichever takes longer."""
    machine, link = load("hgx-h100", nodes=nodes).topology, 25e9 * 18
    found = seconds(ALL_GATHER, LARGE, Layout.first(8 * nodes), machine)
    network = LARGE * (nodes - 1) / nodes / 8 / 50e9
    assert found == pytest.approx(max(network, LARGE * 7 / 8 / link), rel=1e-3)


@given(OPS, st.sampled_from([2, 8, 16, 64]), st.floats(1, 1e11))
def test_no_software_is_quicker(op: Collective, ranks: int, size: float) -> None:
    topology, layout, sizes = load("hgx-h100", nodes=8).topology, Layout.first(ranks), np.array([size])
    wire, real = (library.time(op, sizes, layout, topology).seconds[0] for library in (Ideal(), Nccl(collnet=True)))
    assert wire <= real


@given(OPS, st.sampled_from([4, 8]), st.floats(1, 1e11), st.sampled_from(["nvlink", "nic", "fibre", "*"]))
def test_a_faster_link_never_costs_more(op: Collective, ranks: int, size: float, kind: str) -> None:
    machine, layout, sizes = pods(2), Layout.first(ranks), np.array([size])
    usual, faster = (
        Ideal().time(op, sizes, layout, machine, case=case).seconds[0] for case in (Case(), Case(faster=((kind, 2.0),)))
    )
    assert faster <= usual
