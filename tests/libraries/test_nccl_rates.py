"""Do messages cost what a calibration says of them?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from commsim.collectives.kinds import ALL_GATHER, ALL_REDUCE
from commsim.collectives.layout import Layout
from commsim.hardware.catalogue import load
from commsim.libraries.calibration import calibration
from commsim.libraries.nccl import Nccl

if TYPE_CHECKING:
    from commsim.collectives.kinds import Collective

SHIPPED = calibration("nccl")
BOXES = load("hgx-h100", nodes=2).topology
KIB = 1024.0


def waits(op: Collective, algorithm: str, ranks: int = 16, size: float = KIB, **fitted: Any) -> float:  # noqa: ANN401
    """How long LL takes among the first ranks of two boxes, with other constants than those shipped."""
    by = Nccl(algorithm=algorithm, protocol="LL", fitted=replace(SHIPPED, **fitted))
    return float(by.time(op, np.array([size]), Layout.first(ranks), BOXES).seconds[0])


def test_rings_between_nodes_step_as_hosts_send() -> None:
    """An all-gather of 2 x 8 ranks takes 15 steps; 13.125 of them, in the mean, stay inside a node."""
    hosts = [waits(ALL_GATHER, "Ring", posting=posting) for posting in (5e-6, 10e-6)]
    assert hosts[1] - hosts[0] == pytest.approx(13.125 * 5e-6)


@pytest.mark.parametrize(("op", "algorithm", "ranks"), [(ALL_REDUCE, "Tree", 16), (ALL_GATHER, "Ring", 8)])
def test_trees_and_boxes_do_not_wait_for_hosts(op: Collective, algorithm: str, ranks: int) -> None:
    assert waits(op, algorithm, ranks, posting=5e-6) == waits(op, algorithm, ranks, posting=10e-6)


def test_hosts_are_not_waited_for_where_messages_are_slower() -> None:
    assert waits(ALL_GATHER, "Ring", posting=1e-9) == waits(ALL_GATHER, "Ring", posting=0.0)


def test_messages_through_the_network_are_later_with_more_channels() -> None:
    """A tree of LL has a channel for 4 KiB: eight for 32 KiB. Of two nodes' messages one goes up, one down."""
    usual, more = (
        [waits(ALL_REDUCE, "Tree", size=size, later=later) for size in (KIB, 32 * KIB)] for later in (0.2, 0.3)
    )
    assert more[0] == usual[0], "of one channel the last is the first"
    message = float(SHIPPED.links["infiniband nic"].hop["LL"])
    assert more[1] - usual[1] == pytest.approx(0.1 * 3 * 2 * message)


def test_hops_of_a_ring_that_are_partly_staged() -> None:
    """Eight GPUs, two below each PCIe switch: half of the hops go through the host's memory, at their own cost."""
    pcie = SHIPPED.links["pcie*"]
    times = []
    for staged, direct in ((5e-6, 5e-6), (9e-6, 5e-6), (9e-6, 9e-6)):
        use = replace(pcie, hop={**pcie.hop, "Simple": direct}, staged_hop={**pcie.staged_hop, "Simple": staged})
        by = Nccl(algorithm="Ring", protocol="Simple", fitted=replace(SHIPPED, links={**SHIPPED.links, "pcie*": use}))
        box = load("pcie-a100").topology
        times.append(float(by.time(ALL_GATHER, np.array([KIB]), Layout.first(8), box).seconds[0]))
    assert np.diff(times).tolist() == pytest.approx([7 * 2e-6, 7 * 2e-6])


SMALL = [
    ("hgx-h100", 2, "infiniband", ALL_REDUCE, {1: 29.8, 4: 30.2, 16: 32.7, 64: 33.8}, 0.1),  # NVIDIA/nccl-tests 309
    ("hgx-h100", 4, "infiniband", ALL_REDUCE, {1: 39.8, 4: 42.2, 16: 48.5, 64: 50.8}, 0.12),  # NVIDIA/nccl-tests 309
    ("hgx-h200", 2, "roce", ALL_GATHER, {1: 54.1, 16: 57.1, 256: 63.9}, 0.1),  # Google Cloud, A3 Ultra
    ("hgx-a100", 2, "roce", ALL_REDUCE, {1: 42.0, 16: 49.4, 64: 51.7}, 0.1),  # Oracle Cloud, vendor's manifest of 2023
]
"""System, nodes, fabric, operation, microseconds by KiB, how near."""


@pytest.mark.parametrize(("system", "nodes", "fabric", "op", "measured", "near"), SMALL)
def test_small_messages_between_boxes(  # noqa: PLR0917
    system: str, nodes: int, fabric: str, op: Collective, measured: dict[int, float], near: float
) -> None:
    machine = load(system, nodes=nodes, fabric=fabric)
    sizes = np.array(list(measured)) * KIB
    found = Nccl().time(op, sizes, Layout.first(machine.gpus), machine.topology).seconds * 1e6
    assert found.tolist() == pytest.approx(list(measured.values()), rel=near)
