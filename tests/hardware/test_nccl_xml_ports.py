"""Do the ports of NCCL's topology XML become the NICs and the network that they are?"""

from __future__ import annotations

import pytest

from commsim.hardware.nccl_xml import read_xml
from tests.hardware.boxes import (
    GEN3,
    box,
    cpu,
    gpu,
    net,
    nic,
    parts,
    pci,
    tag,
    wires,
)


def test_ports_that_share_an_adapter_share_its_slot() -> None:
    xml = box(cpu(0, gpu("0000:11:00.0", 0), nic("0000:12:00.0", net(0, guid="0x5"), net(1, guid="0x5", port=2))))
    kinds = wires(read_xml(xml))
    assert kinds["nic0", "adapter0"] == kinds["nic1", "adapter0"] == ("port of 400 Gb/s", 1)
    assert kinds["adapter0", "cpu0"] == ("pcie5-x16", 1)


def test_the_same_guid_and_port_in_two_places_is_one_port() -> None:
    shared = [nic(f"000{n}:12:00.0", net(n, guid="0x5")) for n in (0, 1)]
    system = read_xml(box(cpu(0, pci("0000:10:00.0", gpu("0000:11:00.0", 0), shared[0]), shared[1])))
    assert parts(system)["nic"] == 1
    assert {end for ends in wires(system) for end in ends if "nic0" in ends} == {"nic0", "pcie0", "cpu0"}


def test_slower_ports_carry_no_collectives_and_it_says_so() -> None:
    xml = box(cpu(0, gpu("0000:11:00.0", 0), nic("0000:12:00.0", net(0)), nic("0000:13:00.0", net(1, speed=25_000))))
    system = read_xml(xml)
    assert (system.nics_per_node, parts(system)["slow-nic"]) == (1, 1)
    assert system.scale_out is not None
    assert system.scale_out.nic == 50e9
    assert ["slower" in line for line in system.assumptions] == [True]


@pytest.mark.parametrize(
    ("adapter", "fabric"),
    [
        (nic("0000:12:00.0", net(0)), "infiniband"),
        (nic("0000:12:00.0", net(0), kind="0x020000"), "roce"),
        (nic("0000:12:00.0", net(0, coll=1), kind="0x020000"), "infiniband"),
        (nic("0000:12:00.0", net(0, name="rdmap16s27", speed=100_000), kind="0x020000"), "efa"),
        (nic("0000:12:00.0", net(0), kind="0x020000", vendor="0x1d0f", device="0xefa1"), "efa"),
        (nic("0000:12:00.0", net(0, speed=200_000), kind="0x020000", vendor="0x17db", device="0x0501"), "slingshot"),
        (tag("nic", [net(0, name="eth0", speed=100_000)]), "tcp"),
    ],
)
def test_fabrics(adapter: str, fabric: str) -> None:
    system = read_xml(box(cpu(0, gpu("0000:11:00.0", 0), adapter)))
    assert system.scale_out is not None
    assert system.scale_out.fabric == fabric
    assert system.sized(nodes=2).topology.size == 2


@pytest.mark.parametrize(
    ("adapter", "speed", "why"),
    [
        (nic("0000:12:00.0", net(0, speed=None)), 50e9, "the fastest it was made with"),  # ConnectX-7
        (nic("0000:12:00.0", net(0, speed=-1), device=None), 50e9, "what their slots keep busy"),
        (nic("0000:12:00.0", net(0, speed=0), device=None, link_speed=GEN3), 12.5e9, "what their slots keep busy"),
        (tag("nic", [net(0, speed=0)]), 1.25e9, "10 Gb/s is taken, as NCCL does"),
    ],
)
def test_ports_without_speed(adapter: str, speed: float, why: str) -> None:
    system = read_xml(box(cpu(0, gpu("0000:11:00.0", 0), adapter)))
    assert system.scale_out is not None
    assert system.scale_out.nic == pytest.approx(speed)
    assert [why in line for line in system.assumptions] == [True]


@pytest.mark.parametrize("unused", [net(None), net(3, net=0)])
def test_ports_that_nccl_leaves_out_are_left_out(unused: str) -> None:
    system = read_xml(box(cpu(0, gpu("0000:11:00.0", 0), nic("0000:12:00.0", unused))))
    assert system.scale_out is None
    assert ["left out" in line for line in system.assumptions] == [True]
