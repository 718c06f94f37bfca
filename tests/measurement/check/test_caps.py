"""Are caps what people worked out by hand, and does no algorithm beat them?"""

from __future__ import annotations

import numpy as np
import pytest

import commsim as cs
from commsim.collectives.kinds import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, COLLECTIVES, Collective
from commsim.collectives.layout import Layout
from commsim.libraries.ideal import Ideal
from commsim.measurement.check.caps import least_time_per_byte, moved

NIC = 50e9


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


@pytest.mark.parametrize("name", ["hgx-h100", "hgx-a100", "dgx-1v", "gb200-nvl72", "pcie-l40s", "mi300x"])
@pytest.mark.parametrize("op", COLLECTIVES.values(), ids=COLLECTIVES)
@pytest.mark.parametrize("nodes", [1, 3])
def test_no_algorithm_beats_them(name: str, op: Collective, nodes: int) -> None:
    system = cs.load(name, nodes=nodes) if nodes == 1 or cs.load(name).scale_out else cs.load(name)
    size = np.array([2.0**40])
    wire = Ideal().time(op, size, Layout.first(system.gpus), system.topology).seconds
    assert wire[0] >= size[0] * least_time_per_byte(op, system.gpus, system.topology) * (1 - 1e-9)


def test_racks_are_cut_too() -> None:
    alone, joined = (most_busbw(ALL_TO_ALL, "gb200-nvl72", nodes=nodes) for nodes in (18, 36))
    assert joined < alone / 4
    assert joined == pytest.approx(NIC * 143 / 72)
