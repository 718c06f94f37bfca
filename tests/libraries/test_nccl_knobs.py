"""Do settings rule out what they rule out in NCCL, and are mistakes in them one line?"""

from __future__ import annotations

from typing import Any

import pytest

from commsim.errors import InputError
from commsim.libraries.nccl.allowed import allowed
from commsim.libraries.nccl.communicator import Communicator
from commsim.libraries.nccl.constants import ALGORITHMS, OPS, PROTOCOLS
from commsim.libraries.nccl.graphs import Graphs, Path
from commsim.libraries.nccl.knobs import Knobs
from commsim.libraries.nccl.tuner import tune
from tests.libraries.graphs import BOXES, LONE, ONE_BOX, SHARP, communicator, graph


def pairs(graphs: Graphs, nodes: int, op: str = "all_reduce", **more: Any) -> set[str]:  # noqa: ANN401
    """What a communicator may take."""
    return {f"{algorithm}/{protocol}" for algorithm, protocol in allowed(communicator(graphs, nodes, **more), op)}


RINGS, TREES = ({f"{name}/{protocol}" for protocol in PROTOCOLS} for name in ("Ring", "Tree"))


@pytest.mark.parametrize(
    ("graphs", "nodes", "op", "expected"),
    [
        (ONE_BOX, 1, "all_reduce", RINGS | TREES | {"NVLS/Simple"}),
        (ONE_BOX, 1, "all_gather", RINGS | {"NVLS/Simple"}),
        (ONE_BOX, 1, "broadcast", RINGS),
        (BOXES, 2, "all_reduce", RINGS | TREES | {"NVLSTree/Simple"}),
        (BOXES, 2, "reduce_scatter", RINGS),
        (SHARP, 2, "all_reduce", RINGS | TREES | {"NVLSTree/Simple"}),
    ],
)
def test_what_may_run_by_itself(graphs: Graphs, nodes: int, op: str, expected: set[str]) -> None:
    assert pairs(graphs, nodes, op) == expected


def test_collnet_when_asked_for() -> None:
    simple = {f"{name}/Simple" for name in ("CollNetDirect", "CollNetChain", "NVLS", "NVLSTree")}
    assert pairs(SHARP, 2, collnet_enable=1) == RINGS | TREES | simple
    assert pairs(SHARP, 2, "all_gather", collnet_enable=1) == RINGS | {"CollNetDirect/Simple", "NVLS/Simple"}
    assert pairs(SHARP, 2, collnet_enable=1, collnet_node_threshold=3) == RINGS | TREES | {"NVLSTree/Simple"}


def test_collnet_serves_eight_ranks_a_node_at_most() -> None:
    names = {name.split("/")[0] for name in pairs(SHARP, 2, local=16, collnet_enable=1)}
    assert names == {"Ring", "Tree", "NVLS", "NVLSTree"}


def test_gathering_in_the_network_needs_a_nic_for_each_rank() -> None:
    few = Graphs(SHARP.ring, SHARP.tree, SHARP.collnet_chain, SHARP.collnet_direct, graph(5, 4, 48, 48, "NVL/PIX"))
    assert pairs(few, 2, "all_gather", collnet_enable=1) == RINGS
    assert "NVLS/Simple" in pairs(few, 2, "all_reduce", collnet_enable=1)


def test_a_rack_gathers_without_nvls() -> None:
    assert "NVLS/Simple" not in pairs(ONE_BOX, 1, "all_gather", local=36)
    assert "NVLS/Simple" in pairs(ONE_BOX, 1, "all_reduce", local=36)


def test_pat_is_for_lone_ranks_unless_forced() -> None:
    assert "PAT/Simple" in pairs(LONE, 4, "all_gather", local=1)
    assert "PAT/Simple" not in pairs(LONE, 4, "all_gather", local=1, pat_enable=0)
    assert "PAT/Simple" not in pairs(BOXES, 4, "all_gather")
    assert "PAT/Simple" in pairs(BOXES, 4, "all_gather", pat_enable=1)


@pytest.mark.parametrize(
    ("capability", "paths", "version", "on"),
    [
        (90, "NVL/PIX", "2.30", True),
        (90, "SYS/PIX", "2.30", False),
        (90, "NVL/PXN", "2.30", True),
        (80, "NVL/PXN", "2.30", False),
        (90, "NVL/PHB", "2.30", False),
        (86, "NVL/PIX", "2.30", True),
        (86, "NVL/PIX", "2.26", False),
        (100, "NVL/PIX", "2.24", False),
        (100, "NVL/PIX", "2.25", True),
        (61, "NVL/PIX", "2.30", False),
    ],
)
def test_ll128_by_itself(capability: int, paths: str, version: str, *, on: bool) -> None:
    graphs = Graphs(graph(4, 8, 24, 24, paths), graph(1, 8, 24, 24, paths))
    comm = communicator(graphs, 2, version=version)
    comm = Communicator(16, 2, capability, graphs, constants=comm.constants)
    assert (("Ring", "LL128") in allowed(comm, "all_reduce")) == on
    forced = Communicator(16, 2, capability, graphs, constants=comm.constants, knobs=Knobs(proto="LL128"))
    assert allowed(forced, "all_reduce") == [("Tree", "LL128"), ("Ring", "LL128")]


def test_ll128_between_gpus_of_two_kinds() -> None:
    for version, on in (("2.29", False), ("2.30", True)):
        one = communicator(BOXES, 2, version=version)
        mixed = Communicator(16, 2, 90, BOXES, highest_capability=100, constants=one.constants)
        assert (("Ring", "LL128") in allowed(mixed, "all_reduce")) == on


def test_ll128_without_c2c_stays_near() -> None:
    far = Graphs(graph(4, 8, 24, 24, "NVL/PXN"), graph(1, 8, 24, 24, "NVL/PIX"))
    assert pairs(far, 2, ll128_c2c=0) & {"Ring/LL128", "Tree/LL128"} == {"Tree/LL128"}


@pytest.mark.parametrize(
    ("algo", "op", "left"),
    [
        ("Ring", "all_reduce", {"Ring"}),
        ("^ring,TREE", "all_reduce", {"NVLS"}),
        ("ring,collnetdirect;allreduce:tree,collnetdirect;broadcast:ring", "all_reduce", {"Tree"}),
        ("ring,collnetdirect;allreduce:tree,collnetdirect;broadcast:ring", "all_gather", {"Ring"}),
        ("allreduce:^nvls", "all_reduce", {"Tree", "Ring"}),
        ("allreduce:^nvls", "all_gather", {"Ring", "NVLS"}),
        ("tree", "all_gather", set()),
    ],
)
def test_algorithms_by_setting(algo: str, op: str, left: set[str]) -> None:
    """The examples of NCCL's own comment on the syntax, and what follows."""
    assert {name for name, _ in allowed(communicator(ONE_BOX, 1, algo=algo), op)} == left


@pytest.mark.parametrize(
    ("proto", "op", "left"),
    [
        ("LL,Simple;allreduce:^LL", "all_gather", {"LL", "Simple"}),
        ("LL,Simple;allreduce:^LL", "all_reduce", {"LL128", "Simple"}),
        ("^LL128;allreduce:LL128", "all_reduce", {"LL128"}),
        ("^LL128;allreduce:LL128", "broadcast", {"LL", "Simple"}),
    ],
)
def test_protocols_by_setting(proto: str, op: str, left: set[str]) -> None:
    found = allowed(communicator(BOXES, 2, proto=proto, nvls_enable=0), op)
    assert {protocol for _, protocol in found} == left


def test_older_versions_fall_back_to_rings() -> None:
    """2.18 never rules rings out but for all-reduce; 2.19 to 2.23 take them when nothing is left; later ones fail."""
    for version, left in (("2.18", RINGS), ("2.19", RINGS), ("2.23", RINGS), ("2.24", set())):
        assert pairs(BOXES, 2, "all_gather", version=version, algo="Tree") == left
    for version, left in (("2.18", set()), ("2.19", RINGS), ("2.24", set())):
        assert pairs(BOXES, 2, version=version, algo="CollNetChain") == left


def test_nothing_left_gives_no_picks() -> None:
    assert tune(communicator(BOXES, 2, algo="CollNetChain")).picks("all_reduce", [1024]).names == ()


def test_overhead_of_posting() -> None:
    """A ring steps no faster than messages are posted: in 2 us on AMD, in 1 us elsewhere, thrice that with Simple."""
    steps = {"Ring/LL": 28, "Ring/Simple": 28}  # of 30 steps two go between nodes

    def slower(name: str, **more: Any) -> float:  # noqa: ANN401
        usual, changed = (tune(communicator(BOXES, 2, **given)).entries["all_reduce"][name] for given in ({}, more))
        return (changed.latency - usual.latency) / steps[name] * 1e6

    assert slower("Ring/LL", cpu="amd") == pytest.approx(1)
    assert slower("Ring/Simple", cpu="amd") == pytest.approx(6 - 3.4)
    assert slower("Ring/LL", net_overhead=5000) == pytest.approx(4)
    assert slower("Ring/LL", cpu="arm") == pytest.approx(0)


def test_environment() -> None:
    given = {
        "NCCL_ALGO": "ring",
        "NCCL_NVLS_ENABLE": "0",
        "NCCL_P2P_LEVEL": "PXB",
        "NCCL_NET_GDR_LEVEL": "3",
        "NCCL_MAX_NCHANNELS": "0x10",
        "NCCL_DEBUG": "INFO",
        "HOME": "/",
    }
    knobs = Knobs.of(given)
    assert (knobs.algo, knobs.nvls_enable, knobs.p2p_level) == ("ring", 0, Path.PXB)
    assert (knobs.net_gdr_level, knobs.max_nchannels) == (Path.PHB, 16)
    assert Knobs.unread(given) == ["NCCL_DEBUG"]
    assert Knobs.of({}) == Knobs()


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"NCCL_ALGO": "rnig"}, "NCCL_ALGO: 'rnig'; NCCL has no such; did you mean 'Ring'?"),
        ({"NCCL_ALGO": "^"}, "NCCL_ALGO: '\\^'; NCCL has no such"),
        (
            {"NCCL_ALGO": "allredcue:ring"},
            "NCCL_ALGO: 'allredcue'; no collective of NCCL's tuner; did you mean 'allreduce'?",
        ),
        ({"NCCL_ALGO": "ring;tree"}, "NCCL_ALGO: 'ring;tree'; only the first list may stand without a collective"),
        ({"NCCL_PROTO": "ll256"}, "NCCL_PROTO: 'll256'; NCCL has no such"),
        ({"NCCL_NVLS_ENABLE": "yes"}, "NCCL_NVLS_ENABLE: 'yes'; a whole number belongs here"),
        ({"NCCL_P2P_LEVEL": "PCI"}, "NCCL_P2P_LEVEL: 'PCI'; a kind of path belongs here"),
    ],
)
def test_mistakes_are_one_line(setting: dict[str, str], said: str) -> None:
    with pytest.raises(InputError, match=said) as refused:
        pairs(BOXES, 2, **vars(Knobs.of(setting)))
    assert "\n" not in str(refused.value)


def test_settings_by_collective_are_new() -> None:
    with pytest.raises(InputError, match=r"NCCL_ALGO: 'allreduce:ring'; .* known from NCCL 2.24 on"):
        pairs(BOXES, 2, version="2.23", algo="allreduce:ring")


def test_every_algorithm_can_be_had() -> None:
    forced = {
        name
        for name in ALGORITHMS
        for op in OPS
        for graphs, local in ((SHARP, 8), (LONE, 1))
        if any(name == found for found, _ in allowed(communicator(graphs, 2, local, algo=name, collnet_enable=1), op))
    }
    assert forced == set(ALGORITHMS)
