"""Are caps what people worked out by hand, and does no algorithm beat them?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import commsim as cs
from commsim.collectives.kinds import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, COLLECTIVES, Collective
from commsim.collectives.layout import Layout
from commsim.hardware import shelf
from commsim.libraries.ideal import Ideal
from commsim.libraries.nccl import Nccl
from commsim.measurement.check.caps import least_time_per_byte, moved

if TYPE_CHECKING:
    from commsim.hardware.system import System
    from commsim.libraries.library import Library

NIC = 50e9
MOST = 640
"""GPUs: larger machines take long to price."""


def most_busbw(op: Collective, name: str, **changes: int) -> float:
    system = cs.load(name, **changes)
    return op.factor(system.gpus) / least_time_per_byte(op, system.gpus, system.topology)


@pytest.mark.parametrize(("nodes", "gpus"), [(2, 1), (2, 2), (2, 4), (2, 8), (10, 1), (10, 2), (10, 4), (10, 8)])
def test_all_to_all_between_nodes(nodes: int, gpus: int) -> None:
    """NVIDIA/nccl-tests#130: at most B (n - 1) / (n - g) a GPU with one NIC of B a GPU."""
    ranks = nodes * gpus
    found = most_busbw(ALL_TO_ALL, "hgx-h100", nodes=nodes, gpus_per_node=gpus)
    assert found == pytest.approx(NIC * (ranks - 1) / (ranks - gpus))


def test_two_nodes_may_exceed_the_line() -> None:
    """NVIDIA/nccl-tests#251: over two nodes a tree reaches 2 (n - 1) / n of the NICs; 41.55 of 43.75 GB/s were seen."""
    found = most_busbw(ALL_REDUCE, "hgx-h100", nodes=2, gpus_per_node=4)
    assert found == pytest.approx(4 * NIC * 2 * 7 / 8)
    assert moved(ALL_REDUCE, 4, 8) == 1.0
    assert pytest.approx(43.75) == 25 * 2 * 7 / 8


def test_without_reducing_switches_the_line_holds_from_three_nodes_on() -> None:
    assert moved(ALL_REDUCE, 8, 24) == pytest.approx(2 * 2 / 3)
    assert moved(ALL_REDUCE, 8, 24, reduced=True) == 1.0


def test_a_gpu_may_use_every_link() -> None:
    assert most_busbw(ALL_GATHER, "hgx-a100") == pytest.approx(12 * 25e9 + 31.5e9)


@given(
    st.sampled_from(sorted(shelf.names())),
    st.sampled_from(sorted(COLLECTIVES)),
    st.sampled_from([Ideal(), Nccl()]),
    st.sampled_from([{}, {"gpus": 2}, {"gpus": 3}, {"domains": 2}, {"domains": 3}, {"nodes": 2, "gpus_per_node": 1}]),
    st.sampled_from([2.0**20, 2.0**30, 2.0**40]),
)
def test_no_library_beats_them(name: str, op: str, library: Library, part: dict[str, int], size: float) -> None:
    """Neither the wire alone nor NCCL, on any machine of the catalogue, on one scale-up domain or several."""
    system = some_of(name, **part)
    assume(system is not None and system.gpus <= MOST)
    assert system is not None
    kind, ranks = COLLECTIVES[op], system.gpus
    seconds = library.time(kind, np.array([size]), Layout.first(ranks), system.topology).seconds
    assert seconds[0] >= size * least_time_per_byte(kind, ranks, system.topology) * (1 - 1e-9)


def some_of(name: str, *, domains: int = 0, **part: int) -> System | None:
    """A machine, a part of it, or several of its scale-up domains; None where there is no such part."""
    whole = cs.load(name)
    if (domains or "nodes" in part) and whole.scale_out is None:
        return None
    if part.get("gpus", 0) > whole.gpus:
        return None
    return cs.load(name, **(part or {"nodes": whole.nodes * max(domains, 1)}))


def test_racks_that_are_wired_to_each_other() -> None:
    """Each rack of Rubin Ultra NVL576 has 720 links to each of the seven others, of up to 25 GB/s."""
    assert most_busbw(ALL_TO_ALL, "rubin-ultra-nvl576") == pytest.approx(720 * 7 * 25e9 / 72 * 575 / (576 - 72))


def test_racks_are_cut_too() -> None:
    alone, joined = (most_busbw(ALL_TO_ALL, "gb200-nvl72", nodes=nodes) for nodes in (18, 36))
    assert joined < alone / 4
    assert joined == pytest.approx(NIC * 143 / 72)
