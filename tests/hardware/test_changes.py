"""Do the caller's NICs and network end up where they belong?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from commsim.errors import InputError
from commsim.hardware.catalogue import load
from commsim.hardware.routing import nics_of
from commsim.hardware.shelf import names

if TYPE_CHECKING:
    from pathlib import Path

    from commsim.hardware.system import System


def dealt(system: System) -> list[tuple[str, ...]]:
    """The NICs of each GPU used of a node."""
    return [nics_of(system.cell, gpu) for gpu in range(system.gpus_per_node)]


def test_fewer_nics_than_gpus_are_shared() -> None:
    system = load("hgx-h100", nodes=4, nics_per_node=4)
    assert system.nics_per_node == 4
    assert dealt(system) == [(f"nic{gpu // 2}",) for gpu in range(8)]


def test_more_nics_than_gpus_give_each_several() -> None:
    system = load("hgx-h100", nodes=4, nics_per_node=32, nic="100 Gb/s", fabric="efa")
    assert system.nics_per_node == 32
    assert dealt(system) == [tuple(f"nic{4 * gpu + i}" for i in range(4)) for gpu in range(8)]


def test_several_nics_of_a_gpu_share_its_traffic() -> None:
    topology = load("hgx-h100", nodes=2, nics_per_node=16, nic="200 Gb/s").topology
    routes, numbering = topology.route(np.array([0]), np.array([8])), topology.numbering
    edges = np.searchsorted(numbering.offset, routes.links[0], side="right") - 1
    shares = {numbering.name(int(edge)): float(share) for edge, share in zip(edges, routes.share[0]) if share > 0}
    assert (shares["nic0 -> leaf0"], shares["nic1 -> leaf1"]) == (0.5, 0.5)


@pytest.mark.parametrize("used", [1, 2, 4])
def test_nics_up_to_the_gpus_used_serve_them(used: int) -> None:
    """Published runs say `2 GPUs a node, 2 NICs`: each of the two has one, whichever the others of the box have."""
    system = load("hgx-h100", nodes=2, gpus_per_node=used, nics_per_node=used)
    assert system.nics_per_node == used
    assert dealt(system) == [(f"nic{gpu}",) for gpu in range(used)]


def test_gpus_that_are_not_used_keep_their_nics() -> None:
    assert load("hgx-h100", nodes=2, gpus_per_node=4, nics_per_node=8).nics_per_node == 4
    assert load("hgx-h100", gpus=2).nics_per_node == 2


def test_a_box_without_nics_gets_them_where_its_gpus_meet_the_host() -> None:
    system = load("pcie-4090", nodes=2, nics_per_node=2, nic="100 Gb/s", fabric="roce")
    assert system.cell.edges["nic1", "cpu1"]["link"].kind == "pcie4-x16"
    switched = load("pcie-gen6", nodes=2, nics_per_node=4, nic="400 Gb/s")
    assert switched.cell.edges["nic3", "pcie3"]["link"].kind == "pcie6-x16"
    assert load("pcie-4090", nodes=2, nic="100 Gb/s").nics_per_node == 1


def test_fewer_nics_than_processors_stand_on_one_each() -> None:
    one = load("pcie-4090", nodes=2, nic="100 Gb/s").cell
    assert sorted(one["nic0"]) == ["cpu0"]
    assert sorted(load("pcie-3090", nodes=2).cell["nic0"]) == ["cpu1"]  # as in a published cluster
    assert sorted(load("pcie-3090", nodes=2, nics_per_node=2).cell["nic1"]) == ["cpu1"]


def test_more_nics_than_the_drawn_ones_are_dealt_anew() -> None:
    """Each of the dies that have a NIC in Frontier is listed; twice as many NICs go to all of them."""
    system = load("mi250x", nodes=2, nics_per_node=8)
    assert dealt(system) == [(f"nic{gpu}",) for gpu in range(8)]
    assert dealt(load("mi250x", nodes=2, nics_per_node=4))[1] == ("nic0",)


def test_a_network_that_was_not_said_is_an_assumption() -> None:
    assumed = load("pcie-4090", nodes=2, nic="100 Gb/s").assumptions
    assert "the network between nodes was not said: InfiniBand" in assumed
    assert load("pcie-4090", nodes=2, nic="100 Gb/s", fabric="roce").assumptions == load("pcie-4090").assumptions


@pytest.mark.parametrize("name", sorted(names()))
def test_every_system_takes_a_network(name: str) -> None:
    nodes = 2 * load(name).nodes
    system = load(name, nodes=nodes, nic="200 Gb/s", fabric="roce", oversubscription=2.0)
    kinds = {link.kind: link.bandwidth for link in system.topology.kinds}
    assert kinds["roce nic"] == kinds.get("roce switch", 25e9) == 25e9


def test_nic_in_bytes_and_as_text() -> None:
    for nic in (50e9, "400 Gb/s", "50 GB/s"):
        found = load("hgx-a100", nodes=2, nic=nic).scale_out
        assert found is not None
        assert found.nic == 50e9


def test_the_wiring_is_that_of_the_network() -> None:
    assert "leaf7" in load("hgx-h100", nodes=2).topology.cell
    assert "leaf1" not in load("hgx-h100", nodes=2, fabric="slingshot").topology.cell


@pytest.mark.parametrize(
    ("name", "changes", "complaint"),
    [
        ("hgx-h100", {"nics_per_node": 0}, "nics per node: 0"),
        ("hgx-h100", {"nics_per_node": -8}, "nics per node: -8"),
        ("hgx-h100", {"nics_per_node": 3}, "a divisor or a multiple of the GPUs used, 8"),
        ("hgx-h100", {"nics_per_node": 10**9}, "part: count"),
        ("hgx-h100", {"nic": "400"}, "write a number with its unit"),
        ("hgx-h100", {"nic": "400 GB"}, "'GB' is no unit of this quantity"),
        ("hgx-h100", {"nic": float("nan")}, "finite number"),
        ("hgx-h100", {"nic": -1.0}, "not negative"),
        ("hgx-h100", {"nic": 0.0}, "a speed above 0"),
        ("hgx-h100", {"fabric": "infinband"}, "did you mean 'infiniband'"),
        ("hgx-h100", {"node": 2}, "did you mean 'nodes'"),
        ("pcie-4090", {"nics_per_node": 2}, "pcie-4090: nic: nothing; this machine has no NICs"),
        ("pcie-4090", {"fabric": "roce"}, "say how fast one is"),
        ("pcie-4090", {"oversubscription": 2.0}, "say how fast one is"),
        ("hgx-a100", {"accelerator": "a100-sxm4-40"}, "did you mean 'a100-sxm4-40gb'"),
    ],
)
def test_changes_that_do_not_fit_are_refused(name: str, changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError) as refused:
        load(name, **changes)
    assert complaint in str(refused.value)


def test_a_machine_without_a_host_must_say_where_its_nics_are(tmp_path: Path) -> None:
    own = tmp_path / "box.yaml"
    own.write_text(
        "name: box\ntitle: a box\naccelerator: l40s\nnode:\n  parts: {gpu: {count: 2}}\n"
        "  wires: [{ends: [gpu, gpu], link: pcie4-x16, wiring: mesh}]\n",
        encoding="utf-8",
    )
    assert load(own).gpus == 2
    with pytest.raises(InputError, match="without `pcie` or `cpu` the part `nic` belongs here"):
        load(own, nodes=2, nic="100 Gb/s")


def test_another_accelerator() -> None:
    assert load("hgx-a100", accelerator="a100-sxm4-40gb").accelerator.name == "a100-sxm-40gb"
