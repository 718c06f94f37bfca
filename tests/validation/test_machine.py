"""Is a result put on the machine that it was measured on?"""

from __future__ import annotations

from typing import Any

import pytest

from commsim.validation.machine import machine
from tests.validation.published_rows import result

RACK: dict[str, Any] = {"system": "gb200-nvl72", "gpus_per_node": 4, "scale_up_ranks": 72}


def test_network_as_stated() -> None:
    system, assumed = machine(result(fabric="roce", fabric_gbit_per_s_per_node=400.0, nics_per_node=4))
    assert assumed == []
    assert system.scale_out is not None
    assert (system.scale_out.fabric, float(system.scale_out.nic), system.nics_per_node) == ("roce", 12.5e9, 4)


def test_the_machine_keeps_what_is_not_stated() -> None:
    system, _ = machine(result())
    assert system.scale_out is not None
    assert (system.gpus, system.nics_per_node, float(system.scale_out.nic)) == (16, 8, 50e9)


def test_another_accelerator() -> None:
    system, _ = machine(result(accelerator="h100-sxm-96gb-500w"))
    assert system.accelerator.name == "h100-sxm-96gb-500w"


def test_parts_of_a_host() -> None:
    assert machine(result(n_gpus=2, gpus_per_node=8))[0].nodes == 1
    assert machine(result(n_gpus=8, gpus_per_node=2))[0].nodes == 4


def test_a_board_of_four_has_no_switch() -> None:
    """Six NVLinks lead from a GPU to each of three others: two ranks have a third of what a switch would give them."""
    four, _ = machine(result(n_gpus=8, gpus_per_node=4, system="hgx-h200"))
    assert (four.nodes, four.accelerator.name, four.nics_per_node) == (2, "h200-sxm", 4)
    assert four.topology.meshed
    assert four.scale_out is not None
    assert float(four.scale_out.nic) == 50e9


@pytest.mark.parametrize(("gpus", "domain"), [(128, 64), (256, 64), (144, 72), (2496, 64)])
def test_a_job_on_racks_takes_equal_segments(gpus: int, domain: int) -> None:
    """The largest part of 18 trays of which a whole number makes the job: 624 trays are 39 segments of 16."""
    system, assumed = machine(result(n_gpus=gpus, **RACK))
    assert (system.gpus, system.topology.domain_size) == (gpus, domain)
    assert assumed == [f"{domain} GPUs of each scale-up domain are used: the most whose nodes divide the job"]


def test_a_job_inside_a_rack_is_not_cut() -> None:
    assert machine(result(n_gpus=64, **RACK))[1] == []


def test_what_stands_in_is_said() -> None:
    assert machine(result(fabric="omni-path"))[1] == ["omni-path is taken for infiniband of the same rate"]
