"""How long does it take to price collectives on machines of real size?

The aims stand beside each: with the schedule built each time, on a machine whose ways are known. `cold` starts from a
machine that nothing was asked of before, as a command does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from commsim.collectives.algorithms import ALGORITHMS, Group
from commsim.collectives.kinds import ALL_REDUCE, ALL_TO_ALL
from commsim.collectives.layout import Layout
from commsim.collectives.price import price, priced
from commsim.hardware.catalogue import load
from commsim.libraries.nccl import Nccl

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

    from commsim.collectives.kinds import Collective
    from commsim.collectives.price import Cost
    from commsim.hardware.topology import Topology


def _built_and_priced(name: str, op: Collective, layout: Layout, machine: Topology) -> Cost:
    """Return the price of a schedule that is built anew: nothing of it is remembered."""
    schedule = ALGORITHMS[name].schedule(op, Group.of(layout, machine))
    return price([(schedule, layout)], machine)


def test_eight_rings_on_16384_gpus(benchmark: BenchmarkFixture) -> None:
    """Aim: 10 ms."""
    machine, layout = load("hgx-h100", nodes=2048).topology, Layout(((2048, 8),), ((8, 1),))
    cost = benchmark(_built_and_priced, "ring", ALL_REDUCE, layout, machine)
    assert cost.load.sum() > 0


@pytest.mark.parametrize("name", ["two_level", "ring", "nvls_tree", "nvls_sharp", "sharp"])
def test_hierarchical_all_reduce_on_100000_gpus(benchmark: BenchmarkFixture, name: str) -> None:
    """Aim for `two_level`: 100 ms."""
    machine, layout = load("hgx-h100", nodes=12_500).topology, Layout.first(100_000)
    cost = benchmark(_built_and_priced, name, ALL_REDUCE, layout, machine)
    assert cost.load.sum() > 0


def test_all_to_all_of_1024_ranks(benchmark: BenchmarkFixture) -> None:
    """Aim: 10 ms."""
    machine, layout = load("hgx-h100", nodes=128).topology, Layout.first(1024)
    cost = benchmark(_built_and_priced, "direct", ALL_TO_ALL, layout, machine)
    assert cost.load.sum() > 0


def test_a_remembered_price(benchmark: BenchmarkFixture) -> None:
    """Aim: a look into a dictionary, some microseconds."""
    machine, layout = load("hgx-h100", nodes=128).topology, Layout(((128, 8),), ((8, 1),))
    assert benchmark(priced, "ring", ALL_REDUCE, layout, machine) is priced("ring", ALL_REDUCE, layout, machine)


@pytest.mark.parametrize("system", ["hgx-h100", "gb200-nvl72"])
def test_cold_all_to_all(benchmark: BenchmarkFixture, system: str) -> None:
    """From the catalogue to the price: what one answer of the command line waits for."""

    def cold() -> Cost:
        machine = load(system, nodes=72).topology
        return priced("direct", ALL_TO_ALL, Layout.first(machine.size), machine)

    assert benchmark(cold).load.sum() > 0


@pytest.mark.parametrize("sizes", [1, 1000])
@pytest.mark.parametrize("op", [ALL_REDUCE, ALL_TO_ALL], ids=lambda op: op.name)
def test_nccl_times_a_priced_layout(benchmark: BenchmarkFixture, op: Collective, sizes: int) -> None:
    """Aim: 100 us for one size, NCCL's pick and all its ways; 1,000 sizes are one expression."""
    machine, asked = load("hgx-h100", nodes=4).topology, np.geomspace(1e3, 1e10, sizes)
    nccl, layout = Nccl(), Layout.first(32)
    assert benchmark(nccl.time, op, asked, layout, machine).seconds.min() > 0
