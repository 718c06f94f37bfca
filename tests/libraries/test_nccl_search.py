"""Does NCCL's channel search come out, from the topology alone?"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Any

import pytest

from commsim.errors import InputError
from commsim.hardware.catalogue import load
from commsim.hardware.nccl_xml import write_xml
from commsim.hardware.nccl_xml.elements import parse
from commsim.libraries.nccl.constants import constants
from commsim.libraries.nccl.form import Node, of_xml, see
from commsim.libraries.nccl.graphs import Path
from commsim.libraries.nccl.knobs import Knobs
from commsim.libraries.nccl.search.bound import Bound
from commsim.libraries.nccl.search.detect import detect
from commsim.libraries.nccl.search.devices import Kind
from commsim.libraries.nccl.search.paths import Paths
from commsim.libraries.nccl.search.room import Room
from tests.libraries.graphs import KINDS, configurations, printed, switches

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path as File

    from commsim.libraries.nccl.graphs import Graph
    from commsim.libraries.nccl.search.devices import Machine

INTEL = 'arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143"'
AMD = 'arch="x86_64" vendor="AuthenticAMD" familyid="25" modelid="17"'


def device(address: str, kind: str, inside: str, rate: str = "32.0 GT/s PCIe", more: str = "") -> str:
    """A PCI device in a slot of 16 lanes."""
    slot = f'link_speed="{rate}" link_width="16"'
    return f'<pci busid="0000:{address}:00.0" class="{kind}" {slot} {more}>{inside}</pci>'


def gpu(number: int, links: str = "", capability: int = 90) -> str:
    """A GPU with what it is joined to by NVLink."""
    inner = f'<gpu dev="{number}" sm="{capability}" rank="{number}" gdr="1">{links}</gpu>'
    return device(f"1{number}", "0x030200", inner)


def nic(number: int, speed: int = 400_000, more: str = "") -> str:
    """A NIC of one port; its speed is Mb/s."""
    net = f'<net name="mlx5_{number}" dev="{number}" speed="{speed}" guid="{number + 1:#x}" gdr="1" {more}/>'
    return device(f"5{number}", "0x020000", f"<nic>{net}</nic>")


def switched(gpus: int, nics: int = 1, count: int = 18, capability: int = 90) -> str:
    """A box whose GPUs hang on NVSwitches, each below a PCIe switch with so many NICs, on two sockets."""
    links = f'<nvlink target="fffffff:ffff:ff" count="{count}" tclass="0x068000"/>'
    below = [
        device(f"8{g}", "0x060400", gpu(g, links, capability) + "".join(nic(g * nics + n) for n in range(nics)))
        for g in range(gpus)
    ]
    half = -(-gpus // 2)
    return box([below[:half], below[half:]])


def box(sockets: Iterable[list[str]], processor: str = INTEL) -> str:
    """A host with what hangs below each socket."""
    cpus = (f'<cpu numaid="{n}" {processor}>{"".join(below)}</cpu>' for n, below in enumerate(sockets) if below)
    return f'<system version="1">{"".join(cpus)}</system>'


def line(found: Graph) -> str:
    """A graph in a line: 8x48/48 NVL/PXN."""
    speeds = f"{found.speed_intra / 1e9:g}/{found.speed_inter / 1e9:g}"
    return f"{found.channels}x{speeds} {found.type_intra.name}/{found.type_inter.name} p{int(found.pattern)}"


@pytest.mark.data
def test_every_configuration(data: File) -> None:
    """NCCL 2.30.7's own search on the same files gave these graphs: NVSwitch machines, racks, and PCIe boxes."""
    for name, said in configurations(data).items():
        machine, nodes, knobs = switches(name)
        comm = of_xml(data / "nccl" / "topologies" / f"{machine}.xml", nodes, knobs=knobs)
        found = {key: printed(comm.graphs.named()[kind]) for key, kind in KINDS.items()}
        assert found == {key: said["graphs"][key] for key in KINDS}, name
        assert (comm.ranks, comm.capability) == (nodes * said["localRanks"], said["cc"]), name
        assert comm.channels == said["graphs"]["nChannels"], name


@pytest.mark.parametrize(
    ("gpus", "nodes", "ring", "tree", "nvls"),
    [
        (8, 1, "12x30/30 NVL/PIX p4", "12x30/30 NVL/PIX p1", "8x40/60 NVL/PIX p5"),
        (8, 2, "8x48/48 NVL/PIX p4", "8x48/48 NVL/PIX p3", "8x40/48 NVL/PIX p5"),
        (4, 2, "8x24/24 NVL/PXN p4", "8x48/24 NVL/PIX p3", "4x48/48 NVL/PIX p5"),
        (2, 2, "4x24/24 NVL/PXN p4", "4x48/24 NVL/PIX p3", "2x48/48 NVL/PIX p5"),
        (1, 2, "2x24/24 LOC/PIX p4", "2x48/24 LOC/PIX p3", "0x0/0 LOC/LOC p5"),
        (2, 1, "12x30/30 NVL/PIX p4", "12x60/60 NVL/PIX p1", "2x60/60 NVL/PIX p5"),
    ],
)
def test_h100_boxes(gpus: int, nodes: int, ring: str, tree: str, nvls: str) -> None:
    """What NCCL 2.30.7 finds on boxes of H100, each with a NIC of 400 Gb/s."""
    found = of_xml(switched(gpus), nodes).graphs
    assert (line(found.ring), line(found.tree), line(found.nvls)) == (ring, tree, nvls)


@pytest.mark.parametrize("inter", [False, True])
@pytest.mark.parametrize(
    ("name", "hosts", "members"),
    [
        ("hgx-h100", 1, (0, 2)),
        ("hgx-b200", 1, ()),
        ("gcp-a3-mega", 1, (0, 4)),
        ("pcie-a100", 1, (0, 1, 2)),
        ("gb200-nvl72", 2, ()),
        ("gb200-nvl72", 4, (0, 4, 8, 12)),
        ("gb300-nvl72", 3, (0, 4, 8)),
    ],
)
def test_what_is_not_searched_for_would_not_be_found(
    monkeypatch: pytest.MonkeyPatch, name: str, hosts: int, members: tuple[int, ...], *, inter: bool
) -> None:
    """The same graphs without the bounds, as NCCL searches: it tries what cannot fit."""
    node = Node(write_xml(replace(load(name), nodes=hosts)), members)
    quick = see.__wrapped__(node, Knobs(), "", inter=inter)
    monkeypatch.setattr(Bound, "most", lambda _, __: inf)
    assert see.__wrapped__(node, Knobs(), "", inter=inter) == quick


def test_collnet_only_when_asked_for_and_supported() -> None:
    text, knobs = switched(8), Knobs(collnet_enable=1)
    assert of_xml(text, 2).graphs.collnet_chain.channels == 0
    assert of_xml(text, 2, knobs=knobs).graphs.collnet_chain.channels == 0
    able = of_xml(text.replace("<net ", '<net coll="1" '), 2, knobs=knobs)
    assert line(able.graphs.collnet_chain) == "8x48/48 NVL/PIX p3"
    assert line(able.graphs.collnet_direct) == "8x48/48 NVL/PIX p6"
    assert able.collnet


def test_older_versions_count_links_otherwise() -> None:
    """NVLink 4 counts 20 GB/s until 2.19, 20.6 GB/s from 2.20 on: 360 and 370.8 GB/s a GPU."""
    for version, nvls in (("2.19", "8x40/60"), ("2.20", "8x40/60"), ("2.30", "8x40/60")):
        assert line(of_xml(switched(8), version=version).graphs.nvls).startswith(nvls)
    machine = detect(parse(switched(2), "box"), constants("2.19").links)
    assert Paths.of(machine, Knobs()).widest[Kind.GPU] == 360_000


def test_a_nic_that_gpus_share_is_the_limit() -> None:
    one = box([[device("80", "0x060400", gpu(0) + gpu(1) + nic(0, 100_000))]], AMD)
    assert line(of_xml(one, 2).graphs.ring) == "1x12/12 PIX/PIX p4"


def test_without_a_port_nodes_do_not_meet() -> None:
    alone = box([[gpu(0), gpu(1)]])
    found = of_xml(alone, 2)
    assert (found.graphs.ring.channels, found.channels) == (0, 0)
    assert of_xml(alone, 1).graphs.ring.channels > 0


def test_what_fits_nowhere_is_one_slow_channel() -> None:
    """Blackwell's list ends at 18 GB/s on one node; AMD's sockets count 16."""
    apart = box([[gpu(0, capability=120)], [gpu(1, capability=120)]], AMD)
    assert line(of_xml(apart, knobs=Knobs(p2p_disable=1)).graphs.ring) == "1x0.1/0 SYS/DIS p4"


def ways(text: str, **knobs: Any) -> tuple[Machine, Paths]:  # noqa: ANN401 - the fields of Knobs
    """The machine and its paths."""
    machine = detect(parse(text, "box"), constants().links)
    return machine, Paths.of(machine, Knobs(**knobs))


def test_a_nic_is_reached_over_the_gpu_beside_it() -> None:
    machine, paths = ways(switched(4))
    near, far = machine.gpus[0], machine.gpus[3]
    assert [paths.way(gpu, machine.nets[0]).path for gpu in (near, far)] == [Path.PIX, Path.PXN]
    machine, paths = ways(switched(4), pxn_disable=1)
    assert paths.way(machine.gpus[1], machine.nets[0]).path == Path.PHB
    assert paths.way(machine.gpus[3], machine.nets[0]).path == Path.SYS


def test_peers_behind_a_host_bridge_go_over_memory() -> None:
    machine, paths = ways(box([[gpu(0), gpu(1), gpu(2)]]))
    way = paths.way(machine.gpus[0], machine.gpus[1])
    assert (way.path, [link.target.kind for link in way.links]) == (Path.PHB, [Kind.CPU, Kind.GPU])
    assert paths.hops(machine.gpus[0], machine.gpus[1]) == 4


def test_gpus_that_write_through_an_intel_bridge_cost_its_links_more() -> None:
    """Six fifths, whoever they write to; a NIC's own writes do not. What is left is whole MB/s: 48,000 - 1,441.2."""
    machine, paths = ways(box([[gpu(0), gpu(1), nic(0)]]))
    (first, second), port, room = machine.gpus, machine.nets[0], Room(paths)
    assert [one.factor for one in room.leg(first, second).charges] == [1.2, 1.2]
    assert [one.factor for one in room.leg(first, port).charges] == [1.2, 1.2, 1.0]
    assert [one.factor for one in room.leg(port, first).charges] == [1.0, 1.0, 1.0]
    there = room.leg(first, second).charges
    assert room.take(there, 1201.0)
    assert [room.left[one.link] for one in there] == [46_559, 46_559]
    room.give(there, 1201.0)
    assert room.left == room.empty


def test_gpus_wired_to_each_other_pass_on() -> None:
    def to(peer: int) -> str:
        return f'<nvlink target="0000:1{peer}:00.0" count="4" tclass="0x030200"/>'

    chain = box([[gpu(0, to(1)), gpu(1, to(0) + to(2)), gpu(2, to(1))]])
    machine, paths = ways(chain)
    assert [paths.way(machine.gpus[0], gpu).path for gpu in machine.gpus] == [Path.LOC, Path.NVL, Path.NVB]
    machine, paths = ways(chain, nvb_disable=1)
    assert paths.way(machine.gpus[0], machine.gpus[2]).path == Path.PHB


def test_a_nic_without_gpudirect_goes_over_the_cpu() -> None:
    machine, paths = ways(switched(2).replace('gdr="1" ', 'gdr="0" '))
    assert paths.way(machine.gpus[0], machine.nets[0]).path == Path.PHB


def test_a_switch_of_two_levels_is_one() -> None:
    """Broadcom's PEX of the fifth generation shows itself as a switch below a switch."""
    said = 'vendor="0x1000" device="0xc030" subsystem_vendor="0x1000" subsystem_device="{}"'
    lower = device("81", "0x060400", gpu(0), more=said.format("0x1000"))
    upper = device("80", "0x060400", lower + nic(0), more=said.format("0x0000"))
    machine, paths = ways(box([[upper]]))
    assert len(machine.devices[Kind.PCI]) == 1
    assert paths.way(machine.gpus[0], machine.nets[0]).path == Path.PIX
    machine, paths = ways(box([[upper.replace("0xc030", "0xc031")]]))
    assert paths.way(machine.gpus[0], machine.nets[0]).path == Path.PXB


def test_only_members_take_part() -> None:
    whole = of_xml(switched(8), 4)
    pair = of_xml(switched(8), 4, members=(0, 4))
    assert (whole.ranks, pair.ranks, line(pair.graphs.nvls)) == (32, 8, "2x48/48 NVL/PIX p5")
    assert line(pair.graphs.ring) == line(of_xml(switched(2), 4).graphs.ring)


def test_the_same_question_is_searched_once() -> None:
    assert of_xml(switched(8), 2).graphs is of_xml(switched(8), 16).graphs


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('<system version="1"/>', "topology: 'no <cpu>'; NCCL hangs every device below a <cpu>"),
        (box([[nic(0)]]), "topology: 'no GPU with a rank'; NCCL leaves out"),
        (
            box([[gpu(0)]], 'arch="x86_64" vendor="GenuineIntle"'),
            "vendor: 'GenuineIntle'; a processor .* 'GenuineIntel'",
        ),
        (box([[gpu(0)]]).replace('sm="90"', 'sm="hopper"'), "gpu 0: sm: 'hopper'; a whole number"),
        (box([[gpu(0)]]).replace("<gpu ", '<gpu gcn="gfx942" '), "'gfx942'; NCCL runs on NVIDIA's GPUs"),
        ("<system", "topology: .*well-formed XML belongs here"),
    ],
)
def test_mistakes_are_one_line(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said) as refused:
        of_xml(text)
    assert "\n" not in str(refused.value)


def test_members_must_be_there() -> None:
    for members in ((0, 8), (1, 1)):
        with pytest.raises(InputError, match=r"GPUs of a node: .*; numbers from 0 to 7, each once, belong here"):
            of_xml(switched(8), members=members)


def test_nvls_is_searched_apart() -> None:
    """Without it rings and trees are the same."""
    quiet, usual = (of_xml(switched(8), 2, knobs=Knobs(nvls_enable=switch)).graphs for switch in (0, 2))
    assert (quiet.nvls.channels, usual.nvls.channels) == (0, 8)
    assert (quiet.ring, quiet.tree) == (usual.ring, usual.tree)
