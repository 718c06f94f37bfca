"""Does the matrix of `nvidia-smi topo -m` become a machine in which every pair is as near as it says?"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.errors import InputError
from commsim.hardware.fabrics import members
from commsim.hardware.nccl_xml import read_xml, write_xml
from commsim.hardware.topo_matrix import read_matrix
from tests.hardware.boxes import nvlink_bandwidth, parts, wires

if TYPE_CHECKING:
    from pathlib import Path

    from commsim.hardware.system import System

LEGEND = """
Legend:

  X    = Self
  SYS  = traverses the link between sockets
  NV#  = traverses # NVLinks

NIC Legend:

  NIC0: rocep1s0
"""


def printed(names: list[str], codes: dict[tuple[str, str], str], columns: str = "", cells: str = "") -> str:
    """Return a matrix as the tool prints it; `codes` gives each pair once, `columns` and `cells` what stands beside."""

    def code(a: str, b: str) -> str:
        return " X " if a == b else codes.get((a, b)) or codes[b, a]

    rows = [[name, *(code(name, other) for other in names), cells if "GPU" in name else ""] for name in names]
    return "\n".join("\t".join(row) for row in [["", *names, columns], *rows]) + "\n"


def same(names: list[str], code: str) -> dict[tuple[str, str], str]:
    """Return the same code for every pair."""
    return dict.fromkeys(itertools.combinations(names, 2), code)


def gpus(count: int) -> list[str]:
    """Return the names of so many GPUs."""
    return [f"GPU{number}" for number in range(count)]


RAILS = ["GPU0", "GPU1", "NIC0", "NIC1"]
RAIL_CODES = same(RAILS, "SYS") | {("GPU0", "GPU1"): "NV18", ("GPU0", "NIC0"): "PIX", ("GPU1", "NIC1"): "PIX"}
RAIL_TEXT = printed(RAILS, RAIL_CODES, "CPU Affinity\tNUMA Affinity\tGPU NUMA ID", "0-31\t0\t\tN/A") + LEGEND


def near(system: System, a: str, b: str) -> str:
    """Return how near two devices are in the graph, in the words of the matrix (PHB also for NODE)."""
    ways = []
    for name in (a, b):
        way = [name]
        while not way[-1].startswith("cpu"):
            way.append(next(above for above in system.cell[way[-1]] if above.startswith(("pcie", "cpu"))))
        ways.append(way[1:])
    switches = {name for name in {*ways[0]} & {*ways[1]} if name.startswith("pcie")}
    if switches:
        return "PIX" if ways[0][0] == ways[1][0] else "PXB"
    return "PHB" if ways[0][-1] == ways[1][-1] else "SYS"


def vertex(names: list[str], name: str) -> str:
    """Return the vertex that draws a device of the matrix."""
    alike = [other for other in names if other.startswith(name[:3])]
    return f"{name[:3].lower()}{alike.index(name)}"


def test_a_box_of_two_rails() -> None:
    system = read_matrix(RAIL_TEXT, "h100-sxm")
    assert (system.gpus, parts(system)) == (2, {"cpu": 2, "gpu": 2, "nic": 2, "nvswitch": 1, "pcie": 2})
    assert nvlink_bandwidth(system) == pytest.approx(450e9)
    assert wires(system)["gpu0", "pcie0"] == wires(system)["nic0", "pcie0"] == ("pcie5-x16", 1)
    assert system.cell.nodes["nic0"]["xml"]["name"] == "rocep1s0"
    assert system.scale_out is not None
    assert (system.scale_out.fabric, system.scale_out.nic) == ("roce", 50e9)
    assert ["no speeds" in line for line in system.assumptions] == [True, True]


def test_a_file_is_read_and_nodes_of_it_are_joined(tmp_path: Path) -> None:
    path = tmp_path / "our-box.txt"
    path.write_text(RAIL_TEXT, encoding="utf-8")
    system = read_matrix(path, "h100-sxm").sized(nodes=4)
    assert system.name == "our-box"
    routes = system.topology.route(np.array([0]), np.array([7]))
    assert routes.hops[0].sum() > 2


@pytest.mark.parametrize(
    "text",
    [
        RAIL_TEXT.replace("\t", "   "),
        "\x1b[4m" + RAIL_TEXT,
        RAIL_TEXT.replace("\tGPU0\tGPU1", "\t\x1b[4mGPU0\tGPU1", 1).replace("GPU NUMA ID", "GPU NUMA ID\x1b[0m"),
        RAIL_TEXT.replace("\tGPU0\tGPU1", "\t[4mGPU0\tGPU1", 1),
        "".join(f"# {line}\n" for line in RAIL_TEXT.splitlines()),
        "".join(f"> {line}\n" for line in RAIL_TEXT.splitlines()),
        RAIL_TEXT.replace("GPU0\tGPU1\tNIC0\t", "GPU0\nGPU1\tNIC0\n", 1),
        RAIL_TEXT.replace("CPU Affinity\tNUMA Affinity", "CPU\nAffinity\tNUMA Affinity", 1),
        RAIL_TEXT.replace("SYS\tSYS", "SYSSYS"),
        RAIL_TEXT.replace("NV18\tPIX", "NV18PIX"),
        RAIL_TEXT.replace("GPU0\tGPU1\tNIC0\tNIC1", "GPU0\tGPU1\tNIC0NIC1", 1),
        RAIL_TEXT.replace("SYS\t0-31", "SYS\n\t0-31"),
        RAIL_TEXT.replace("\n", "\r\n"),
        "$ nvidia-smi topo -m\n" + RAIL_TEXT,
        "\n\n" + RAIL_TEXT,
        RAIL_TEXT.replace("NIC0", "mlx5_0").replace("NIC1", "mlx5_bond_1"),
        RAIL_TEXT.replace("NIC0", "ibp12s0").replace("NIC1", "hca-7"),
        RAIL_TEXT.partition("\nLegend")[0],
        "\n".join(line for line in RAIL_TEXT.splitlines() if not line.startswith("NIC")),
    ],
)
def test_however_it_was_pasted(text: str) -> None:
    assert wires(read_matrix(text + "\n", "h100-sxm")) == wires(read_matrix(RAIL_TEXT, "h100-sxm"))


@pytest.mark.parametrize(
    ("columns", "cells"),
    [
        ("", ""),
        ("CPU Affinity", "0,2,4,6,8,10"),
        ("CPU Affinity\tNUMA Affinity", "N/A\tN/A"),
        ("CPU Affinity\tNUMA Affinity\tGPU NUMA ID", "0-47,96-143\t0-1\t\tN/A"),
    ],
)
def test_gpus_that_nvlink_hides_share_a_domain_unless_something_parts_them(columns: str, cells: str) -> None:
    text = printed(gpus(4), same(gpus(4), "NV18"), columns, cells)
    assert parts(read_matrix(text, "h200-sxm"))["cpu"] == 1


def test_affinity_parts_gpus_that_nvlink_hides() -> None:
    text = printed(gpus(4), same(gpus(4), "NV12"), "CPU Affinity\tNUMA Affinity", "0-23\tHERE")
    for number in range(4):
        text = text.replace("HERE", str(number // 2), 1)
    system = read_matrix(text, "a100-sxm-40gb")
    assert [min(system.cell[f"gpu{n}"]) for n in range(4)] == ["cpu0", "cpu0", "cpu1", "cpu1"]


def test_nics_part_gpus_without_affinity() -> None:
    names = ["GPU0", "GPU1", "mlx5_0", "mlx5_1"]
    codes = same(names, "SYS") | {("GPU0", "GPU1"): "NV6", ("GPU0", "mlx5_0"): "NODE", ("GPU1", "mlx5_1"): "PHB"}
    system = read_matrix(printed(names, codes, "CPU Affinity", "N/A"), "v100-sxm2-32gb")
    assert parts(system) == {"cpu": 2, "gpu": 2, "nic": 2, "nvswitch": 1}


@pytest.mark.parametrize(
    ("accelerator", "count", "code", "switched"),
    [
        ("h100-sxm", 8, "NV18", True),
        ("h100-sxm", 4, "NV6", False),  # three bundles of 6: the mesh of four
        ("h100-sxm", 2, "NV18", True),  # two of a box of eight
        ("h100-pcie", 2, "NV18", False),  # a bridge: never sold with switches
        ("a100-sxm-80gb", 4, "NV4", False),
        ("a800-sxm-80gb", 8, "NV8", True),  # 56 links would be needed, a GPU has 8
        ("rtx-a6000", 2, "NV4", False),
        ("gb200", 4, "NV18", True),
    ],
)
def test_switches_are_told_from_direct_links(accelerator: str, count: int, code: str, *, switched: bool) -> None:
    system = read_matrix(printed(gpus(count), same(gpus(count), code)), accelerator)
    assert bool(members(system.cell, "nvswitch")) == switched
    assert wires(system)["gpu0", "nvswitch0" if switched else "gpu1"][1] == int(code[2:])


def test_a_cube_mesh_passes_on() -> None:
    near_pairs = [(0, 1, 1), (0, 2, 1), (0, 3, 2), (0, 4, 2), (1, 2, 2), (1, 3, 1), (1, 5, 2), (2, 3, 2), (2, 6, 1)]
    near_pairs += [(3, 7, 1), (4, 5, 1), (4, 6, 1), (4, 7, 2), (5, 6, 2), (5, 7, 1), (6, 7, 2)]
    codes = same(gpus(8), "PHB") | {(f"GPU{a}", f"GPU{b}"): f"NV{n}" for a, b, n in near_pairs}
    system = read_matrix(printed(gpus(8), codes, "CPU Affinity", "0-63"), "v100-sxm2-16gb")
    assert {nvlink_bandwidth(system, f"gpu{n}") for n in range(8)} == {150e9}  # V100: 300 GB/s both ways
    hops = system.topology.route(np.array([0]), np.array([5])).hops[0]
    assert {link.kind: int(n) for link, n in zip(system.topology.kinds, hops) if n} == {"nvlink2": 2}


def test_a_dead_gpu_on_a_switch_has_no_nvlinks() -> None:
    codes = same(gpus(4), "NV18") | {("GPU2", other): "NODE" for other in ("GPU3",)}
    codes |= {(other, "GPU2"): "NODE" for other in ("GPU0", "GPU1")}
    system = read_matrix(printed(gpus(4), codes), "h100-sxm")
    assert [nvlink_bandwidth(system, f"gpu{n}") / 25e9 for n in range(4)] == [18, 18, 0, 18]


def test_a_dead_gpu_is_named() -> None:
    """vllm-project/vllm#16336: GPU2 of a B200 box shows NODE and SYS instead of NV18."""
    codes = same(gpus(8), "NV18") | {pair: "SYS" for pair in same(gpus(8), "") if "GPU2" in pair}
    found = read_matrix(printed(gpus(8), codes), "b200").assumptions
    assert found[0] == "GPU2 is off NVLink, while 7 others are on it: what they say goes over PCIe"
    whole = read_matrix(printed(gpus(8), same(gpus(8), "NV18")), "b200").assumptions
    assert not [one for one in whole if "off NVLink" in one]


def test_a_gpu_that_lost_links_on_a_switch() -> None:
    codes = same(gpus(4), "NV18") | {pair: "NV16" for pair in same(gpus(4), "") if "GPU2" in pair}
    system = read_matrix(printed(gpus(4), codes), "h100-sxm")
    assert [nvlink_bandwidth(system, f"gpu{n}") / 25e9 for n in range(4)] == [18, 18, 16, 18]


def test_two_switched_islands() -> None:
    codes = same(gpus(8), "SYS") | same(gpus(8)[:4], "NV18") | same(gpus(8)[4:], "NV18")
    assert parts(read_matrix(printed(gpus(8), codes), "h100-sxm"))["nvswitch"] == 2


def test_coherent_gpus_hang_on_their_cpu_and_nics_are_dealt_out() -> None:
    names = [*gpus(2), "NIC0", "NIC1", "NIC2", "NIC3"]
    codes = same(names, "SYS") | {("GPU0", "GPU1"): "NV18", ("NIC2", "NIC3"): "PIX"}
    text = printed(names, codes, "CPU Affinity\tNUMA Affinity\tGPU NUMA ID", "HERE")
    for beside in ("0-71\t0,3-9,11-17\t\t2", "72-143\t1,19-25,27-33\t\t10"):
        text = text.replace("HERE", beside, 1)
    system = read_matrix(text, "gb200")
    kinds = wires(system)
    assert kinds["gpu0", "cpu0"] == kinds["gpu1", "cpu1"] == ("c2c-gb200", 1)
    assert kinds["cpu0", "cpu1"][0] == "socket-arm"
    assert [{"cpu0": 0, "cpu1": 1, "pcie0": 2}[next(iter(system.cell[f"nic{n}"]))] for n in range(4)] == [0, 0, 2, 2]
    assert kinds["pcie0", "cpu1"][0] == "pcie5-x16"
    assert ["dealt out" in line for line in system.assumptions].count(True) == 1


def test_codes_that_contradict_each_other_are_said() -> None:
    names = ["GPU0", "NIC0", "NIC1"]
    codes = {("GPU0", "NIC0"): "PIX", ("NIC0", "NIC1"): "PIX", ("GPU0", "NIC1"): "NODE"}
    system = read_matrix(printed(names, codes), "l40s")
    assert ["GPU0-NIC1" in line for line in system.assumptions].count(True) == 1


def test_fabrics_by_the_names_of_the_nics() -> None:
    for name, fabric in (("mlx5_0", "infiniband"), ("rocep1s0", "roce"), ("rdmap16s27", "efa")):
        system = read_matrix(printed(["GPU0", name], {("GPU0", name): "PIX"}), "h100-sxm")
        assert system.scale_out is not None
        assert system.scale_out.fabric == fabric


GPU_PAIR = printed(gpus(2), same(gpus(2), "PHB"))


@pytest.mark.parametrize(
    ("text", "accelerator", "words"),
    [
        (RAIL_TEXT, None, "name the accelerator"),
        (RAIL_TEXT, "h1oo-sxm", "did you mean"),
        (RAIL_TEXT, "mi300x", "NVIDIA"),
        ("/sys/devices/system/node/node0/cpulist:0-23\n", "l4", "no matrix"),
        ("GPU0 GPU1\n", "l4", "no matrix"),
        (GPU_PAIR.replace("PHB", "GNS"), "l4", "topo -p2p"),
        (GPU_PAIR.replace("PHB", "PH8"), "l4", "row GPU0"),
        (GPU_PAIR.replace("PHB", "SYS", 1), "l4", "GPU1-GPU0"),
        (GPU_PAIR.replace(" X ", "PIX", 1), "l4", "X on the diagonal"),
        (GPU_PAIR.replace("PHB\t\nGPU1", "\nGPU1"), "l4", "1 codes"),
        (GPU_PAIR.partition("GPU1\tPHB")[0], "l4", "none of GPU1"),
        (GPU_PAIR.partition("\n")[2], "l4", "header"),
        (GPU_PAIR + GPU_PAIR, "l4", "stands twice"),
        (GPU_PAIR.replace("GPU1", "GPU0", 1), "l4", "header"),
        (printed(gpus(2), same(gpus(2), "NV24")).replace("NV24", "NV0"), "", "name the accelerator"),
        (printed(gpus(3), same(gpus(3), "NV2") | {("GPU0", "GPU1"): "NV5"}), "rtx-a6000", "has 4"),
        ("GPU0 X\n" * 200_000, "l4", "characters"),
    ],
)
def test_mistakes_are_told_in_one_line(text: str, accelerator: str | None, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        read_matrix(text, accelerator)
    assert "\n" not in str(caught.value)


WORDS = [
    "GPU0",
    "GPU1",
    "NIC0",
    "mlx5_0",
    "X",
    "SYS",
    "PIX",
    "PXB",
    "NV4",
    "NV18",
    "GNS",
    "N/A",
    "0-3",
    "CPU",
    "Affinity",
]
WORDS += ["NUMA", "Legend:", "NIC0:", "\n", "\n", "\t", "#", "\x1b[4m", "SYSSYS"]


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """Return the text of a box with some of its cells replaced."""
    cells = RAIL_TEXT.split("\t")
    for place in draw(st.lists(st.integers(0, len(cells) - 1), min_size=1, max_size=4)):
        cells[place] = draw(st.sampled_from(WORDS))
    return "\t".join(cells)


@given(st.one_of(st.text(), st.lists(st.sampled_from(WORDS), max_size=60).map(" ".join), damaged()))
def test_noise_is_a_machine_or_one_line(text: str) -> None:
    try:
        assert read_matrix(text + "\n", "h100-sxm").gpus > 0
    except InputError as error:
        assert "\n" not in str(error)  # noqa: PT017 - either way is right, a traceback is not


@st.composite
def places(draw: st.DrawFn) -> list[list[list[list[str]]]]:
    """Return devices by NUMA domain, PCIe tree and switch, with at least one GPU."""
    devices = [*gpus(draw(st.integers(1, 6))), *(f"NIC{n}" for n in range(draw(st.integers(0, 4))))]
    shuffled = draw(st.permutations(devices))
    where = [(draw(st.integers(0, 1)), draw(st.integers(0, 1)), draw(st.integers(0, 1))) for _ in shuffled]
    spots = sorted(set(where))
    by_spot = {spot: [name for name, place in zip(shuffled, where) if place == spot] for spot in spots}
    trees = {spot[:2]: [by_spot[other] for other in spots if other[:2] == spot[:2]] for spot in spots}
    return [[tree for (at, _), tree in trees.items() if at == domain] for domain in dict.fromkeys(s[0] for s in spots)]


def test_a_matrix_can_be_written_as_xml() -> None:
    system = read_matrix(RAIL_TEXT, "h100-sxm")
    assert wires(read_xml(write_xml(system))) == wires(system)


@given(places(), st.sampled_from(["PHB", "NODE"]), st.booleans())
def test_every_pair_is_as_near_as_the_matrix_says(
    domains: list[list[list[list[str]]]],
    apart: str,
    nvlink: bool,  # noqa: FBT001 - drawn
) -> None:
    spot = {
        name: (d, t, s)
        for d, domain in enumerate(domains)
        for t, tree in enumerate(domain)
        for s, switch in enumerate(tree)
        for name in switch
    }
    names = sorted(spot)
    words = ["SYS", apart, "PXB", "PIX"]
    codes = {}
    for a, b in itertools.combinations(names, 2):
        alike = sum(spot[a][:depth] == spot[b][:depth] for depth in (1, 2, 3))
        codes[a, b] = "NV18" if nvlink and a[:3] == b[:3] == "GPU" else words[alike]
    text = printed(names, codes, "CPU Affinity\tNUMA Affinity", "HERE")
    for name in (name for name in names if name.startswith("GPU")):
        text = text.replace("HERE", f"0-3\t{spot[name][0]}", 1)
    system = read_matrix(text, "h100-sxm")
    for (a, b), code in codes.items():
        if code != "NV18":
            assert near(system, vertex(names, a), vertex(names, b)) == code.replace("NODE", "PHB")
