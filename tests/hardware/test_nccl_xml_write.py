"""Does a machine survive being written as NCCL's XML and read again?"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.errors import InputError
from commsim.hardware import catalogue, shelf
from commsim.hardware.nccl_xml import read_xml, write_xml
from commsim.hardware.topology import Link
from tests.hardware.boxes import box, cpu, gpu, net, nic, pair, parts, pci, tag, to_gpu, to_switch, wires

if TYPE_CHECKING:
    from collections.abc import Callable

    from commsim.hardware.system import System

Carried = Counter[tuple[float, float, float]]
NO_WORDS = {"dgx-2", "feynman-nvl1152", "groq3-lpx", "rubin-ultra-nvl144", "rubin-ultra-nvl288", "rubin-ultra-nvl576"}
"""Shipped systems that NCCL's format cannot hold: joined NVSwitches, LPUs, a compute capability that nobody knows."""


def carried(system: System) -> list[Carried]:
    """Return for each route from the first node's GPUs what its links carry: bandwidth, latency and share."""
    topology = system.topology
    sources, targets = np.meshgrid(np.arange(topology.gpus_per_node), np.arange(topology.size), indexing="ij")
    routes = topology.route(sources.ravel(), targets.ravel())
    edge = np.searchsorted(topology.numbering.offset, np.arange(topology.numbering.total), side="right") - 1
    kinds = [topology.kinds[kind] for kind in topology.numbering.kind_index[edge]]
    count = topology.numbering.count[edge]
    return [
        Counter(
            (float(kinds[link].bandwidth), float(kinds[link].latency), round(share / count[link], 9))
            for link, share in zip(links, shares)
            if share
        )
        for links, shares in zip(routes.links, routes.share)
    ]


def again(system: System) -> System:
    """Return the system read from what is written of it."""
    return read_xml(write_xml(system), system.accelerator.name)


@pytest.mark.parametrize("name", sorted(set(shelf.names()) - NO_WORDS))
def test_shipped_systems_carry_the_same_on_the_same_routes(name: str) -> None:
    system = catalogue.load(name)
    copy = again(system)
    assert (copy.gpus, copy.nodes) == (system.gpus, system.nodes)
    assert carried(copy) == carried(system)
    assert write_xml(copy) == write_xml(system)


@pytest.mark.parametrize("name", sorted(NO_WORDS))
def test_what_has_no_words_is_refused_in_one_line(name: str) -> None:
    with pytest.raises(InputError) as caught:
        write_xml(catalogue.load(name))
    assert "\n" not in str(caught.value)


def rewired(system: System, ends: tuple[str, str], link: Link | None) -> System:
    """Return the system with another link, or none, between two vertices."""
    cell = system.cell.copy()
    both = (ends, ends[::-1])
    cell.remove_edges_from(both)
    cell.add_edges_from(both if link else (), link=link, count=1)
    return replace(system, cell=cell)


ODD = Link("odd", 17e9, 1e-6)


@pytest.mark.parametrize(
    ("name", "ends", "link", "words"),
    [
        ("hgx-h100", ("cpu0", "cpu1"), ODD, "sockets by the processors"),
        ("hgx-h100", ("gpu0", "pcie0"), ODD, "a slot of PCI Express"),
        ("hgx-h100", ("gpu0", "nvswitch0"), ODD, "whole links of nvlink4"),
        ("hgx-h100", ("gpu0", "pcie0"), None, "hangs below a CPU"),
        ("hgx-h100", ("pcie0", "pcie1"), ODD, "a tree under each CPU"),
        ("hgx-h100", ("pcie0", "cpu0"), None, "a tree under each CPU"),
    ],
)
def test_wires_that_nccl_does_not_know_are_refused(
    name: str, ends: tuple[str, str], link: Link | None, words: str
) -> None:
    with pytest.raises(InputError, match=words) as caught:
        write_xml(rewired(catalogue.load(name), ends, link))
    assert "\n" not in str(caught.value)


def test_an_amd_gpu_needs_its_architecture_and_a_nic_its_speed() -> None:
    system = catalogue.load("mi300x")
    with pytest.raises(InputError, match="gfx architecture"):
        write_xml(replace(system, accelerator=replace(system.accelerator, name="mi300a")))
    with pytest.raises(InputError, match="scale_out"):
        write_xml(replace(system, scale_out=None))


def test_nodes_joined_by_a_network_are_refused() -> None:
    with pytest.raises(InputError, match="one node or one NVLink domain"):
        write_xml(catalogue.load("hgx-h100", nodes=2))


def test_the_file_names_the_gpu_and_the_chips() -> None:
    xml = write_xml(catalogue.load("hgx-h100"))
    assert 'device="0x2330"' in xml
    assert read_xml(xml).accelerator.name == "h100-sxm"
    assert sorted(count for count in (4, 5) for _ in range(xml.count(f'count="{count}"'))) == [4] * 16 + [5] * 16


def test_unused_gpus_are_not_written() -> None:
    assert again(catalogue.load("hgx-h100", gpus=4)).gpus == 4


def test_adapters_beside_gpus_stand_with_them_under_a_switch() -> None:
    copy = again(catalogue.load("gb300-nvl72"))
    assert copy.nics_per_node == 4
    kinds = wires(copy)
    assert [kinds[f"gpu{n}", f"pcie{n}"][0] for n in range(4)] == ["pcie6-x16"] * 4
    assert [kinds[f"nic{n}", f"pcie{n}"][0] for n in range(4)] == ["pcie6-x16"] * 4


def test_the_network_is_read_back() -> None:
    system = read_xml(pair(links=to_switch()))
    assert again(system).scale_out == system.scale_out


def test_addresses_are_made_up_in_order_and_guids_are_not_kept() -> None:
    xml = write_xml(read_xml(pair()))
    addresses = [piece.split('"')[0] for piece in xml.split('busid="')[1:]]
    assert addresses == [f"0000:0{n}:00.0" for n in range(1, 7)]
    assert "0x77" not in xml


def test_text_is_written_so_that_it_can_be_read() -> None:
    xml = box(cpu(0, gpu("0000:11:00.0", 0), nic("0000:12:00.0", net(0, name="a&lt;b&amp;&quot;c"))))
    cell = again(read_xml(xml)).cell
    assert cell.nodes["nic0"]["xml"]["name"] == 'a<b&"c'


PPC, ARM = 'arch="ppc64"', 'arch="arm64"'
STRANGE: dict[str, Callable[[], str]] = {
    "two ports": lambda: box(cpu(0, gpu("0000:11:00.0", 0), nic("0000:12:00.0", net(0), net(1, speed=25_000)))),
    "socket": lambda: box(cpu(0, gpu("0000:11:00.0", 0), tag("nic", [net(0, name="eth0")]))),
    "two ways": lambda: box(
        cpu(0, pci("0000:10:00.0", gpu("0000:11:00.0", 0), nic("0000:12:00.0", net(0, guid="0x5")))),
        cpu(1, nic("0000:22:00.0", net(1, guid="0x5"))),
    ),
    "halves": lambda: box(
        cpu(
            0,
            pci("0000:10:00.0", tag("pcilink", target="0000:20:00.0"), gpu("0000:11:00.0", 0)),
            pci("0000:20:00.0", gpu("0000:21:00.0", 1)),
        )
    ),
    "power": lambda: box(
        *(
            cpu(n, gpu(f"000{n}:11:00.0", n, tag("nvlink", target="f", count=3, tclass="0x068001")), processors=PPC)
            for n in (0, 1)
        )
    ),
    "coherent": lambda: box(
        *(cpu(n, gpu(f"000{n}:11:00.0", n, tag("c2c", bw=44712, count=10)), processors=ARM) for n in (0, 1))
    ),
}


@pytest.mark.parametrize("name", STRANGE)
def test_everything_that_is_read_can_be_written(name: str) -> None:
    system = read_xml(STRANGE[name]())
    copy = again(system)
    assert Counter(wires(copy).values()) == Counter(wires(system).values())
    assert parts(copy) == parts(system)
    assert carried(copy) == carried(system)
    assert write_xml(copy) == write_xml(system)


@st.composite
def machines(draw: st.DrawFn) -> str:
    """Return the file of a small machine: sockets, nested switches, GPUs with or without NVLink, adapters."""
    ranks = iter(draw(st.permutations(range(12))))
    address = iter(f"0000:{n:02x}:00.0" for n in range(1, 255))
    joined = draw(st.sampled_from(["", "switch", "pairs"]))
    speeds = st.sampled_from(["8.0 GT/s PCIe", "16.0 GT/s PCIe", "32.0 GT/s PCIe", "64.0 GT/s PCIe"])
    busids: list[str] = []

    def device(depth: int) -> str:
        slot: dict[str, Any] = {"link_speed": draw(speeds), "link_width": draw(st.sampled_from([0, 4, 8, 16]))}
        what = draw(st.sampled_from(["gpu", "nic", *["bridge"] * (depth < 2)]))
        here = next(address)
        if what == "bridge":
            return pci(here, *(device(depth + 1) for _ in range(draw(st.integers(1, 2)))), **slot)
        if what == "nic" or len(busids) == 12:
            return nic(here, net(int(here[5:7], 16), draw(st.sampled_from([100_000, 400_000]))), **slot)
        busids.append(here)
        return gpu(here, next(ranks), "LINKS" + here, **slot)

    cpus = [cpu(n, *(device(0) for _ in range(draw(st.integers(1, 3))))) for n in range(draw(st.integers(1, 3)))]
    xml = box(*cpus, cpu(9, gpu(last := next(address), 99, "LINKS" + last)))
    for number, here in enumerate([*busids, last]):
        peer = [*busids, last][number ^ 1 : (number ^ 1) + 1]
        links = {"": "", "switch": to_switch(), "pairs": "".join(to_gpu(other, 6) for other in peer)}[joined]
        xml = xml.replace("LINKS" + here, links)
    return xml


@given(machines())
def test_reading_what_is_written_changes_nothing(xml: str) -> None:
    system = read_xml(xml)
    copy = again(system)
    assert parts(copy) == parts(system)
    assert Counter(wires(copy).values()) == Counter(wires(system).values())
    assert carried(copy) == carried(system)
    assert write_xml(copy) == write_xml(system)
