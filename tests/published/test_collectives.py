"""Do collectives of large messages take what public tables of nccl-tests say?

The first model of NCCL is held only where it claims to be right: large messages inside NVLink domains and between boxes
on rails. What is small or on PCIe is a later matter.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from commsim.collectives.kinds import collective
from commsim.collectives.layout import Layout
from commsim.hardware.catalogue import load
from commsim.libraries.nccl import Nccl

GIB = 2.0**30
LARGE = [
    ("hgx-h100", 8, "all_reduce", 8 * GIB, 476, 0.03),  # a maintainer's expectation (nccl-tests issues)
    ("hgx-h200", 8, "all_reduce", 8 * GIB, 473, 0.03),  # stas00/ml-engineering, NVLS on
    ("hgx-b200", 8, "all_reduce", 8 * GIB, 838, 0.03),  # stas00/ml-engineering, NVLS on
    ("gb200-nvl72", 72, "all_reduce", 8 * GIB, 841, 0.03),  # coreweave/nccl-tests, 835 to 847
    ("hgx-a100", 8, "all_reduce", 8 * GIB, 235, 0.08),  # NVIDIA GTC 2025 session S72583
    ("mi300x", 8, "all_reduce", 4 * GIB, 336, 0.10),  # 48 of 64 GB/s a link (ROCm/rccl issue 1210)
    ("mi300x", 16, "all_reduce", 16 * GIB, 358, 0.06),  # two nodes, RoCE of 400 Gb/s (oracle-quickstart/oci-hpc-oke)
    ("hgx-h100", 32, "all_reduce", 8 * GIB, 370, 0.08),  # four DGX H100 on 400 Gb/s, ring (NVIDIA GTC 2025 S72583)
]
"""System, GPUs, operation, size, bus bandwidth in GB/s, how near."""


@pytest.mark.parametrize(("system", "gpus", "op", "size", "busbw", "near"), LARGE)
def test_large_messages(system: str, gpus: int, op: str, size: float, busbw: float, near: float) -> None:  # noqa: PLR0917
    machine = load(system, gpus=gpus)
    done = Nccl().time(collective(op), np.array([size]), Layout.first(gpus), machine.topology)
    assert done.busbw[0] / 1e9 == pytest.approx(busbw, rel=near)


@pytest.mark.parametrize(("system", "low", "high"), [("hgx-h200", 1.25, 1.37), ("hgx-b200", 1.17, 1.29)])
def test_what_nvls_buys_at_eight_gpus(system: str, low: float, high: float) -> None:
    """Measured with NVLS on and off, 8 to 16 GiB: 1.31 on H200, 1.23 on B200 (stas00/ml-engineering)."""
    machine = load(system)
    on, off = (
        Nccl(nvls=nvls)
        .time(collective("all_reduce"), np.array([8 * GIB]), Layout.first(8), machine.topology)
        .seconds[0]
        for nvls in (True, False)
    )
    assert low < off / on < high


RACKS = [
    (72, {}, {0.5: 586, 1: 681, 2: 758, 4: 839, 8: 835}),
    (144, {}, {0.5: 494, 1: 596, 2: 680, 4: 743, 8: 793, 16: 810}),
    (1440, {"nvls": False}, {2: 287, 4: 346, 8: 381, 16: 406}),
    (1440, {"algorithm": "Tree", "protocol": "Simple"}, {0.5: 151, 1: 219, 2: 287, 4: 346, 8: 381, 16: 406}),
]
"""GPUs of GB200 NVL72, settings, bus bandwidth in GB/s by size in GiB (coreweave/nccl-tests README, NCCL 2.26.2)."""


@pytest.mark.parametrize(("gpus", "settings", "busbw"), RACKS)
def test_racks(gpus: int, settings: dict[str, Any], busbw: dict[float, float]) -> None:
    """One rack, two, and twenty: at half, as a tree of copying GPUs does it.

    The sample job of that time turns NVLS off (NCCL_NVLS_ENABLE=0), which no figure above 690 GB/s can have been
    measured with: one rack and two reach them by NVLS, twenty do not. NCCL's tuner then takes Tree/Simple, whose ranks
    with three children copy twice as much, and whose slots go through 72 GPUs up and down before the pipeline is full.
    """
    topology, sizes = load("gb200-nvl72", gpus=gpus).topology, np.array([*busbw]) * GIB
    done = Nccl(version="2.26", **settings).time(collective("all_reduce"), sizes, Layout.first(gpus), topology)
    assert done.busbw / 1e9 == pytest.approx([*busbw.values()], rel=0.15)
