"""Do the machines of the catalogue form the communicators that NCCL makes of them?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from commsim.errors import InputError
from commsim.hardware.catalogue import load
from commsim.libraries.nccl.form import least, newest, of_system
from commsim.libraries.nccl.graphs import Path
from commsim.libraries.nccl.knobs import Knobs
from commsim.libraries.nccl.tuner import tune
from tests.libraries.graphs import BOXES, ONE_BOX, communicator

if TYPE_CHECKING:
    from commsim.libraries.nccl.communicator import Communicator

KIB, MIB, GIB = 2**10, 2**20, 2**30
WORKED = {  # NCCL 2.30.7's constants on its own search results: (system, hosts): {size: choice, us}
    ("hgx-h100", 1): {KIB: ("Ring/LL", 15.0), 64 * MIB: ("NVLS/Simple", 271.7), 8 * GIB: ("NVLS/Simple", 31605.6)},
    ("hgx-h100", 16): {MIB: ("Tree/LL128", 117.2), GIB: ("NVLSTree/Simple", 6045.8), 8 * GIB: ("Ring/Simple", 46055.7)},
    ("hgx-a100", 1): {MIB: ("Ring/LL", 35.9), 64 * MIB: ("Ring/Simple", 545.3), 8 * GIB: ("Ring/Simple", 62690.9)},
    ("hgx-b200", 2): {MIB: ("Tree/LL128", 64.7), 64 * MIB: ("NVLSTree/Simple", 383.1)},
    ("hgx-b300", 16): {KIB: ("Tree/LL", 55.3), MIB: ("Tree/LL128", 112.4), 8 * GIB: ("Ring/Simple", 23860.9)},
    ("gb200-nvl72", 18): {KIB: ("NVLS/Simple", 25.0), 8 * GIB: ("NVLS/Simple", 18487.6)},
    ("gb200-nvl72", 36): {KIB: ("NVLSTree/Simple", 66.8), 8 * GIB: ("NVLSTree/Simple", 18659.4)},
    ("gb200-nvl72", 144): {KIB: ("Tree/LL", 122.1), MIB: ("NVLSTree/Simple", 152.7)},
}


@pytest.mark.parametrize(("name", "hosts"), WORKED)
def test_worked_numbers(name: str, hosts: int) -> None:
    table = tune(of_system(load(name, nodes=hosts)))
    for size, (pair, time) in WORKED[name, hosts].items():
        picks = table.picks("all_reduce", [size])
        assert (picks.names[picks.chosen[0]], picks.seconds[0] * 1e6) == (pair, pytest.approx(time, abs=0.06))


def test_a_rack_is_one_node_from_2_20_on() -> None:
    rack = load("gb200-nvl72")
    assert [of_system(rack, version=version).nodes for version in ("2.19", "2.20", "2.30")] == [18, 1, 1]
    assert of_system(rack.sized(nodes=36)).nodes == 2
    assert of_system(rack, knobs=Knobs(mnnvl_enable=0)).nodes == 18


def test_the_last_domain_may_be_smaller() -> None:
    whole, part = of_system(load("gb200-nvl72", nodes=36)), of_system(load("gb200-nvl72", nodes=20))
    assert (part.nodes, part.ranks) == (2, 80)
    assert part.graphs.ring.channels < whole.graphs.ring.channels
    assert part.graphs.ring.speed_intra == whole.graphs.ring.speed_intra


def test_members_of_each_node() -> None:
    boxes = load("hgx-h100", nodes=4)
    lone = of_system(boxes, members=(3,))
    assert (lone.ranks, lone.nodes, lone.graphs.nvls.channels) == (4, 4, 0)
    assert lone.graphs.ring.type_intra == Path.LOC


def test_another_vendor_runs_something_else() -> None:
    with pytest.raises(InputError, match="mi300x: accelerator: 'mi300x'; NCCL runs on NVIDIA's GPUs"):
        of_system(load("mi300x"))


def test_nodes_do_what_the_least_of_them_can() -> None:
    found = least([ONE_BOX, BOXES])
    assert (found.ring.channels, found.ring.speed_intra, found.ring.same_channels) == (8, 30e9, False)
    assert found.tree.pattern == BOXES.tree.pattern
    assert found.nvls.speed_inter == 48e9


def form(version: str) -> Communicator:
    """Boxes of H100 with a version of NCCL, told to use what 2.24 no longer falls back from."""
    return communicator(BOXES, 2, version=version, algo="Tree")


def test_the_newest_version_that_may_have_done_so() -> None:
    assert newest(form, "all_reduce").constants.version == "2.30"
    assert newest(form, "all_gather", "Ring").constants.version == "2.23"
    with pytest.raises(InputError, match="nccl: all_reduce: 'NVLS/LL'; no version of NCCL takes it here"):
        newest(form, "all_reduce", "NVLS", "LL")


def test_settings_change_the_graphs() -> None:
    boxes = load("hgx-h100", nodes=2)
    assert of_system(boxes, knobs=Knobs(nvls_enable=0)).graphs.nvls.channels == 0
    assert of_system(boxes, knobs=Knobs(cross_nic=0)).graphs.ring != of_system(boxes).graphs.ring
