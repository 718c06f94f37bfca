"""Does NCCL answer for every machine that can be described, and does every what-if act?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from commsim.collectives.kinds import COLLECTIVES, Collective
from commsim.collectives.layout import Layout
from commsim.errors import InputError
from commsim.hardware.catalogue import load
from commsim.hardware.shelf import names
from commsim.libraries.calibration import Case
from commsim.libraries.nccl import Nccl

if TYPE_CHECKING:
    from pathlib import Path

    from commsim.hardware.system import System

SIZES = np.array([8.0, 2.0**20, 2.0**30])
RING_BOX = """
name: ring-box
title: Eight GPUs in a ring, no NIC and no processor
accelerator: h100-sxm
node:
  parts:
    gpu: {count: 8, forwards: true}
  wires:
    - {ends: [gpu, gpu], link: our-cable, wiring: ring, count: 2}
links:
  our-cable:
    bandwidth: {value: 100 GB/s, status: measured, source: our lab}
    latency: 1 us
"""


def machine(name: str | Path, nodes: int) -> System:
    """So many nodes of a system, or one where no NIC joins more."""
    try:
        return load(name, nodes=nodes)
    except InputError as error:
        assert "no NIC joins more than 1 node" in str(error)  # noqa: PT017 - no other is expected
        return load(name, nodes=1)


def check(system: System, layout: Layout, op: Collective) -> None:
    """Times are there for all sizes, and are none only for one rank; no link that is faster or sooner costs more."""
    usual = Nccl().time(op, SIZES, layout, system.topology).seconds
    assert np.isfinite(usual).all()
    assert (usual > 0).all() or layout.size == 1
    for what_if in (Case(faster=(("*", 2.0),)), Case(sooner=(("*", 2.0),)), Case(corner="high")):
        assert (Nccl().time(op, SIZES, layout, system.topology, case=what_if).seconds <= usual * (1 + 1e-12)).all()
    assert (
        Nccl().time(op, SIZES, layout, system.topology, case=Case(corner="low")).seconds >= usual * (1 - 1e-12)
    ).all()


@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize("name", [*names()])
def test_every_machine_of_the_catalogue_has_times(name: str, nodes: int) -> None:
    system = machine(name, nodes)
    for layout in (Layout.first(count) for count in sorted({1, min(3, system.gpus), system.gpus})):
        for op in COLLECTIVES.values():
            check(system, layout, op)


@pytest.mark.parametrize("ranks", [1, 2, 5, 8])
def test_a_box_of_ones_own(ranks: int, tmp_path: Path) -> None:
    path = tmp_path / "ring-box.yaml"
    path.write_text(RING_BOX, encoding="utf-8")
    for op in COLLECTIVES.values():
        check(load(path), Layout.first(ranks), op)


@pytest.mark.parametrize("name", [*names()])
def test_what_ifs_act(name: str) -> None:
    """Slower links everywhere take longer, whatever is done: no way forgets which links it goes over."""
    system = load(name, gpus=2)
    layout, large = Layout.first(2), np.array([2.0**33])
    for op in COLLECTIVES.values():
        usual, slower, later = (
            Nccl().time(op, large, layout, system.topology, case=case).seconds[0]
            for case in (Case(), Case(faster=(("*", 0.1),)), Case(sooner=(("*", 1e-4),)))
        )
        assert slower > 1.5 * usual
        assert later > usual
