"""Does `load` take a machine's own dump, and the changes that a caller makes to it or to a rack?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from commsim.errors import InputError
from commsim.hardware.catalogue import load
from commsim.hardware.nccl_xml import write_xml

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    path = tmp_path / "box.xml"
    path.write_text(write_xml(load("hgx-h100")), encoding="utf-8")
    return path


def test_a_dump_is_a_system_of_any_number_of_nodes(dump: Path) -> None:
    assert load(dump).gpus == 8
    assert load(dump, nodes=32).topology.size == 256


def test_a_dump_takes_another_network(dump: Path) -> None:
    system = load(dump, nodes=2, nic="800 Gb/s", fabric="infiniband", oversubscription=2)
    assert system.scale_out is not None
    assert (system.scale_out.nic, system.scale_out.fabric, system.scale_out.oversubscription) == (
        100e9,
        "infiniband",
        2,
    )


def test_the_number_of_nics_is_what_the_dump_says(dump: Path) -> None:
    with pytest.raises(InputError, match="change it there"):
        load(dump, nics_per_node=4)


def test_what_is_no_dump_is_one_line(tmp_path: Path) -> None:
    for name, content in {"a.xml": "<system", "b.txt": "hello", "c.xml": "<html/>"}.items():
        path = tmp_path / name
        path.write_text(content, encoding="utf-8")
        with pytest.raises(InputError) as caught:
            load(path)
        assert "\n" not in str(caught.value)


def test_fewer_gpus_of_each_domain_are_used() -> None:
    system = load("gb200-nvl72", gpus=1024, gpus_per_domain=64)
    assert (system.topology.domain_size, system.nodes, system.topology.size) == (64, 256, 1024)


@pytest.mark.parametrize("gpus", [0, 3, 66, 76, -4])
def test_the_gpus_of_a_domain_are_whole_nodes_of_it(gpus: int) -> None:
    with pytest.raises(InputError, match="gpus per domain"):
        load("gb200-nvl72", gpus_per_domain=gpus)


def test_a_link_is_changed_by_what_differs(tmp_path: Path) -> None:
    path = tmp_path / "tired.yaml"
    path.write_text("like: hgx-h100\nlinks: {nvlink4: {bandwidth: 20 GB/s}}\n", encoding="utf-8")
    tired, sound = (
        {link.kind: link for link in load(system).topology.kinds}["nvlink4"] for system in (path, "hgx-h100")
    )
    assert (tired.bandwidth, tired.latency) == (20e9, sound.latency)


def test_what_is_like_another_machine_does_not_call_itself_that(tmp_path: Path) -> None:
    path = tmp_path / "ours.yaml"
    path.write_text("like: hgx-h100\nscale_out: {nic: 200 Gb/s}\n", encoding="utf-8")
    system = load(path)
    assert (system.name, system.title, system.summary) == ("ours", "ours, like hgx-h100", "")
    assert repr(system) == "<ours: 1 nodes, 8 GPUs (h100-sxm)>"


@pytest.mark.parametrize("name", [3, None, ["hgx-h100"]])
def test_what_is_no_name_is_refused(name: object) -> None:
    with pytest.raises(InputError, match="the name of a system"):
        load(name)  # type: ignore[arg-type]
