"""Does NCCL's topology XML become the machine that it describes, or one clear line?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from commsim.hardware.fabrics import members
from commsim.hardware.nccl_xml import read_xml
from tests.hardware.boxes import (
    A100,
    GEN4,
    GEN5,
    H100,
    INTEL,
    V100,
    amd,
    box,
    cpu,
    gpu,
    nvlink_bandwidth,
    pair,
    parts,
    pci,
    rack,
    tag,
    to_gpu,
    to_switch,
    wires,
)
from tests.hardware.refusals import refused

if TYPE_CHECKING:
    from pathlib import Path


def test_a_box_of_two_sockets() -> None:
    system = read_xml(pair(links=to_switch()))
    assert (system.accelerator.name, system.gpus, system.nodes) == ("h100-sxm", 2, 1)
    assert parts(system) == {"cpu": 2, "gpu": 2, "nic": 2, "nvswitch": 1, "pcie": 2}
    up = {ends: wire for ends, wire in wires(system).items() if ends[0] < ends[1] or ends[0].startswith("pcie")}
    assert up["gpu0", "nvswitch0"] == ("nvlink4", 18)
    assert up["gpu1", "pcie1"] == up["nic1", "pcie1"] == up["pcie1", "cpu1"] == ("pcie5-x16", 1)
    assert up["cpu0", "cpu1"] == ("upi-sapphire-rapids", 1)
    assert nvlink_bandwidth(system) == pytest.approx(450e9)  # H100: 900 GB/s both ways
    assert system.assumptions == ()


def test_a_file_is_named_by_its_path(tmp_path: Path) -> None:
    path = tmp_path / "our-box.xml"
    path.write_text(pair(links=to_switch()), encoding="utf-8")
    system = read_xml(path)
    assert system.name == "our-box"
    assert "our-box.xml" in system.title


def test_nodes_of_such_boxes_are_joined_by_their_nics() -> None:
    system = read_xml(pair(links=to_switch())).sized(nodes=4)
    assert system.scale_out is not None
    assert (system.scale_out.fabric, system.scale_out.nic) == ("infiniband", 50e9)
    routes = system.topology.route(np.array([0]), np.array([7]))
    kinds = [link.kind for link in system.topology.kinds]
    assert "infiniband nic" in [kinds[number] for number in np.flatnonzero(routes.hops[0])]


def test_ranks_order_the_gpus() -> None:
    inside = [gpu("0000:11:00.0", 2), gpu("0000:12:00.0", 0), gpu("0000:13:00.0", 1)]
    cell = read_xml(box(cpu(0, *inside))).cell
    assert [cell.nodes[name]["xml"]["busid"] for name in members(cell, "gpu")] == [
        "0000:12:00.0",
        "0000:13:00.0",
        "0000:11:00.0",
    ]


def test_ranks_of_a_later_node_need_not_begin_at_zero() -> None:
    assert read_xml(box(cpu(0, gpu("0000:11:00.0", 9), gpu("0000:12:00.0", 8)))).gpus == 2


def test_without_ranks_addresses_order_the_gpus() -> None:
    inside = [tag("pci", busid=f"000{n}:00:00.0", **{"class": "0x030200"}) for n in (3, 1, 2)]
    cell = read_xml(box(cpu(0, *inside)), "l40s").cell
    assert [cell.nodes[name]["xml"]["busid"][3] for name in members(cell, "gpu")] == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("speed", "width", "bandwidth"),
    [  # PCI-SIG: GT/s x lanes / 8, after 8b/10b (generations 1, 2), 128b/130b (3 to 5), 242 of 256 bytes (6)
        ("2.5 GT/s PCIe", 1, 0.25e9),
        ("5 GT/s", 8, 4e9),
        ("8 GT/s", 16, 15.75e9),
        ("16.0 GT/s PCIe", 8, 15.75e9),
        ("16.0 GT/s PCIe", 2, 3.94e9),
        ("32.0 GT/s PCIe", 16, 63e9),
        ("32.0 GT/s PCIe", 0, 63e9),
        ("64.0 GT/s PCIe", 16, 121e9),
    ],
)
def test_slots(speed: str, width: int, bandwidth: float) -> None:
    system = read_xml(box(cpu(0, gpu("0000:11:00.0", 0, link_speed=speed, link_width=width))))
    assert system.cell.edges["gpu0", "cpu0"]["link"].bandwidth == pytest.approx(bandwidth, rel=5e-3)


def test_a_slot_without_speed_is_of_the_gpus_generation_and_said_so() -> None:
    system = read_xml(box(cpu(0, gpu("0000:11:00.0", 0, sm=80, device=A100, link_speed="", link_width=0))))
    assert system.cell.edges["gpu0", "cpu0"]["link"].kind == "pcie4-x16"
    assert [line for line in system.assumptions if "PCIe 4" in line and "NCCL takes PCIe 3" in line]


@pytest.mark.parametrize(
    ("sm", "accelerator", "one"),
    [
        (70, "v100-sxm2-32gb", 25e9),
        (80, "a100-sxm-80gb", 25e9),
        (86, "rtx-a6000", 14.0625e9),
        (90, "h100-sxm", 25e9),
        (100, "b200-sxm", 50e9),
        (103, "b300-sxm", 50e9),
        (107, "rubin", 50e9),
    ],
)
def test_nvlinks_are_physical(sm: int, accelerator: str, one: float) -> None:
    system = read_xml(box(cpu(0, gpu("0000:11:00.0", 0, to_switch(4), sm=sm, device=None))), accelerator)
    assert nvlink_bandwidth(system) == pytest.approx(4 * one)
    assert system.cell.nodes["nvswitch0"]["multicasts"] == system.cell.nodes["nvswitch0"]["reduces"] == (sm >= 90)


@pytest.mark.parametrize(
    ("processors", "kind"),
    [
        (INTEL.replace("143", "85"), "upi-skylake"),
        (INTEL.replace("143", "79"), "upi-broadwell"),
        (INTEL.replace("143", "106"), "upi-icelake"),
        (INTEL, "upi-sapphire-rapids"),
        (INTEL.replace("143", "173"), "upi-granite-rapids"),
        (INTEL.replace("143", "207"), "upi-emerald-rapids"),
        ('arch="x86_64" vendor="AuthenticAMD" familyid="23" modelid="49"', "xgmi-epyc"),
        ('arch="x86_64" vendor="AuthenticAMD" familyid="175" modelid="1"', "xgmi-epyc"),  # 15 + 10 = 25: Milan
        ('arch="x86_64" vendor="AuthenticAMD" familyid="25" modelid="17"', "xgmi-epyc-genoa"),
        ('arch="x86_64" vendor="AuthenticAMD" familyid="26" modelid="2"', "xgmi-epyc-genoa"),
        ('arch="arm64"', "socket-arm"),
        ('arch="ppc64"', "socket-power9"),
    ],
)
def test_sockets(processors: str, kind: str) -> None:
    xml = box(*(cpu(n, gpu(f"0000:{n}1:00.0", n), processors=processors) for n in (0, 1)))
    assert wires(read_xml(xml))["cpu0", "cpu1"] == (kind, 1)


@pytest.mark.parametrize("processors", ["", 'arch="x86_64" vendor="Nobody"', 'arch="x86_64" vendor="GenuineIntel"'])
def test_unknown_processors_are_assumed_and_said_so(processors: str) -> None:
    system = read_xml(box(*(cpu(n, gpu(f"0000:{n}1:00.0", n), processors=processors) for n in (0, 1))))
    assert wires(system)["cpu0", "cpu1"] == ("upi-sapphire-rapids", 1)
    assert ["processors" in line for line in system.assumptions] == [True]


def test_numa_domains_of_a_host_are_joined_every_two() -> None:
    kinds = wires(read_xml(box(*(cpu(n, gpu(f"0000:{n}1:00.0", n)) for n in range(4)))))
    assert len([ends for ends in kinds if all(end.startswith("cpu") for end in ends)]) == 4 * 3


def test_named_switch_chips_are_one_vertex() -> None:
    links = "".join(to_switch(count, f"0000:0{chip}:00.0") for chip, count in enumerate((5, 5, 4, 4)))
    system = read_xml(pair(links=links))
    assert wires(system)["gpu0", "nvswitch0"] == ("nvlink4", 18)
    assert system.cell.nodes["nvswitch0"]["stands_for"] == 4


def test_direct_nvlinks_and_a_mesh_with_gaps_passes_on() -> None:
    ring = {0: (1, 3), 1: (0, 2), 2: (1, 3), 3: (2, 0)}
    inside = [
        gpu(f"0000:{n}1:00.0", n, *(to_gpu(f"0000:{m}1:00.0", 3) for m in near), sm=70, device=V100)
        for n, near in ring.items()
    ]
    system = read_xml(box(cpu(0, *inside)))
    assert wires(system)["gpu0", "gpu3"] == ("nvlink2", 3)
    assert ("gpu0", "gpu2") not in wires(system)
    hops = system.topology.route(np.array([0]), np.array([2])).hops[0]
    assert [link.kind for link, crossed in zip(system.topology.kinds, hops) if crossed] == ["nvlink2"]


def test_a_full_mesh_passes_nothing_on() -> None:
    inside = [gpu(f"0000:{n}1:00.0", n, to_gpu(f"0000:{1 - n}1:00.0", 6)) for n in (0, 1)]
    assert "forwards" not in read_xml(box(cpu(0, *inside))).cell.nodes["gpu0"]


def test_links_that_lead_nowhere_are_left_out_and_said_so() -> None:
    system = read_xml(box(cpu(0, gpu("0000:11:00.0", 0, to_gpu("0000:11:00.0"), to_gpu("0000:99:00.0")))))
    assert nvlink_bandwidth(system) == 0
    assert ["itself" in system.assumptions[0], "no such GPU" in system.assumptions[1]] == [True, True]


def test_coherent_gpus_hang_on_their_cpu_by_c2c_alone() -> None:
    c2c = tag("c2c", bw=44712, count=10)
    inside = gpu("0000:11:00.0", 0, to_switch(), c2c, sm=100, device="0x2941")
    system = read_xml(box(cpu(0, inside, processors='arch="arm64"')))
    assert wires(system)["gpu0", "cpu0"] == ("c2c-gb200", 1)
    assert system.cell.nodes["gpu0"]["c2c"] == (44712, 10)  # NCCL's own figure stays beside the physical one


def test_a_c2c_link_of_another_speed_is_a_kind_of_its_own() -> None:
    c2c = tag("c2c", bw=50000, count=4)
    system = read_xml(box(cpu(0, gpu("0000:11:00.0", 0, c2c, sm=100, device="0x2941"))))
    assert system.cell.edges["gpu0", "cpu0"]["link"].bandwidth == 200e9


def test_a_gpu_in_a_switch_keeps_its_slot_beside_c2c() -> None:
    inside = gpu("0000:11:00.0", 0, tag("c2c", bw=45000, count=10), sm=100, device="0x2941")
    kinds = wires(read_xml(box(cpu(0, pci("0000:10:00.0", inside)))))
    assert (kinds["gpu0", "pcie0"][0], kinds["gpu0", "cpu0"][0]) == ("pcie5-x16", "c2c-gb200")


def test_a_link_to_the_processor() -> None:
    link = tag("nvlink", target="0004:04:00.0", count=3, tclass="0x068001")
    system = read_xml(box(cpu(0, pci("0000:10:00.0", gpu("0000:11:00.0", 0, link, sm=70, device=V100)))))
    assert wires(system)["gpu0", "cpu0"] == ("nvlink2", 3)


def test_hosts_of_an_nvlink_domain_are_nodes_of_a_rack() -> None:
    system = read_xml(rack(3))
    assert (system.nodes, system.nodes_per_domain, system.gpus) == (3, 3, 6)
    assert system.topology.domain_size == 6
    assert parts(system) == {"cpu": 1, "gpu": 2, "nic": 1, "nvswitch": 1}
    assert nvlink_bandwidth(system) == pytest.approx(900e9)  # GB200: 1.8 TB/s both ways
    switch = system.topology.cell.nodes["nvswitch0"]
    assert (switch["tier"], switch["reduces"], switch["multicasts"]) == (1, True, True)
    routes = system.topology.route(np.array([0]), np.array([5]))
    assert routes.hops[0].sum() == 2  # up to the switch and down
    assert system.sized(nodes=6).topology.size == 12


def test_hosts_that_differ_are_one_node_and_it_says_so() -> None:
    whole, last = rack(2), rack(3).replace(GEN5, GEN4)
    xml = whole.removesuffix("</system>") + last[last.index('<cpu numaid="0" host_hash="0x3"') :]
    system = read_xml(xml)
    assert (system.nodes, system.gpus, parts(system)["cpu"]) == (1, 6, 3)
    assert ["differ" in line for line in system.assumptions] == [True]
    assert not [ends for ends in wires(system) if all(end.startswith("cpu") for end in ends)]


def test_the_order_of_the_cpus_does_not_matter_when_ranks_are_in_order() -> None:
    first, second = rack(2).removeprefix('<system version="1">').removesuffix("</system>").split("</cpu>")[:2]
    assert read_xml(box(f"{second}</cpu>", f"{first}</cpu>")).nodes == 2


def skeleton(*, vendor: str | None = "0x10de", device: str | None = H100) -> str:
    """Return a vendor's file of 8 GPUs and 8 adapters, told by their classes alone."""
    console = pci("0000:01:00.0", kind="0x030000", vendor="0x1a03", device="0x2000")
    pairs = [
        pci(
            f"ffff:ff:0{n}.0",
            pci(f"000{n}:00:00.0", kind="0x030200", vendor=vendor, device=device),
            pci(f"010{n}:00:00.0", kind="0x020700"),
        )
        for n in range(1, 9)
    ]
    return box(cpu(0, console, *pairs[:4], host=None), cpu(1, *pairs[4:], host=None))


def test_a_skeleton_is_told_by_classes_and_has_the_nvlinks_that_such_machines_have() -> None:
    system = read_xml(skeleton())
    assert parts(system) == {"cpu": 2, "gpu": 8, "nic": 8, "nvswitch": 1, "pcie": 8}
    assert nvlink_bandwidth(system) == pytest.approx(450e9)
    assert system.scale_out is not None
    assert (system.scale_out.fabric, system.scale_out.nic) == ("infiniband", 50e9)
    assert ["hgx-h100" in system.assumptions[0], "400 Gb/s" in system.assumptions[1]] == [True, True]


def test_a_skeleton_without_device_ids_asks_for_the_accelerator() -> None:
    bare = skeleton(vendor=None, device=None)
    assert "name it" in refused(bare)
    assert nvlink_bandwidth(read_xml(bare, "a100-sxm-40gb")) == pytest.approx(300e9)  # A100: 600 GB/s both ways


def test_a_skeleton_of_gpus_that_are_sold_otherwise_says_that_it_has_no_nvlinks() -> None:
    system = read_xml(box(cpu(0, *(pci(f"0000:0{n}:00.0", kind="0x030200") for n in range(3)))), "h100-sxm")
    assert nvlink_bandwidth(system) == 0
    assert "none are drawn" in system.assumptions[0]


def test_ports_may_be_told_by_classes_where_gpus_are_not() -> None:
    system = read_xml(box(cpu(0, gpu("0000:11:00.0", 0, to_switch()), pci("0000:12:00.0", kind="0x020000"))))
    assert system.scale_out is not None
    assert (system.scale_out.fabric, system.scale_out.nic) == ("roce", 50e9)
    assert ["no speed of network ports" in line for line in system.assumptions] == [True]


def test_rccl_writes_version_two_and_xgmi() -> None:
    inside = [amd(f"0000:0{n}:00.0", n, *(f"0000:0{m}:00.0" for m in range(4) if m != n)) for n in range(4)]
    system = read_xml(box(cpu(0, *inside), version=2))
    assert (system.accelerator.name, system.gpus) == ("mi300x", 4)
    assert nvlink_bandwidth(system) == pytest.approx(3 * 64e9)


def test_an_amd_gpu_without_device_id_is_told_by_its_architecture() -> None:
    system = read_xml(box(cpu(0, amd("0000:01:00.0", 0, gcn="910", device=None)), version=2))
    assert system.accelerator.name == "mi250x"
    assert ["gfx90a" in line for line in system.assumptions] == [True]


def test_an_accelerator_may_be_a_file(tmp_path: Path) -> None:
    (tmp_path / "mi50.yaml").write_text("like: mi250x\nname: mi50\ntitle: AMD Instinct MI50\n", encoding="utf-8")
    pairs = [("0000:01:00.0", 0, "0000:02:00.0"), ("0000:02:00.0", 1, "0000:01:00.0")]
    inside = [amd(busid, rank, target, gcn="906", device=None) for busid, rank, target in pairs]
    system = read_xml(box(cpu(0, *inside), version=2), str(tmp_path / "mi50.yaml"))
    assert system.accelerator.title == "AMD Instinct MI50"
    assert nvlink_bandwidth(system) == pytest.approx(46e9)


def test_the_only_accelerator_of_a_capability_is_taken_and_said_so() -> None:
    system = read_xml(box(cpu(0, gpu("0000:11:00.0", 0, sm=107, device=None))))
    assert system.accelerator.name == "rubin"
    assert ["does not name the GPU" in line for line in system.assumptions] == [True]


def test_halves_of_a_switch_are_joined_and_may_name_each_other() -> None:
    ends = ("0000:10:00.0", "0000:20:00.0")
    inside = [
        pci(ends[n], tag("pcilink", target=ends[1 - n]), gpu(f"0000:{n}1:00.0", n), gpu(f"0000:{n}2:00.0", n + 2))
        for n in (0, 1)
    ]
    system = read_xml(box(cpu(0, *inside)))
    assert wires(system)["pcie0", "pcie1"] == ("inside a pcie switch", 1)
    hops = system.topology.route(np.array([0]), np.array([1])).hops[0]
    assert {link.kind: int(n) for link, n in zip(system.topology.kinds, hops) if n} == {
        "pcie5-x16": 2,
        "inside a pcie switch": 1,
    }


def test_empty_bridges_and_unknown_elements_are_no_parts() -> None:
    xml = box(cpu(0, pci("0000:10:00.0"), "<future odd='1'/>", gpu("0000:11:00.0", 0)))
    assert parts(read_xml(xml)) == {"cpu": 1, "gpu": 1}
