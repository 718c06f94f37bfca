"""Do dispatch and combine take as long as links, multiprocessors and calls say, and do the laws hold?"""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import commsim as cs
from commsim.collectives.moe.routing import MEASURED_SKEW, Routing
from commsim.errors import InputError
from commsim.figures import Figure
from commsim.libraries.calibration import Case
from commsim.libraries.moe import exchange, moe_times
from commsim.libraries.moe.kernels import kernels
from commsim.libraries.moe.payload import PRECISIONS, Load, token_bytes
from commsim.libraries.moe.timing import Where
from commsim.reading import load_yaml
from commsim.shipped import folder
from commsim.validation.constants import constants

HIDDEN = 7168
BF16, FP8 = token_bytes(HIDDEN, "bf16"), token_bytes(HIDDEN, "fp8")
MODES = ("nccl", *kernels().kernels)
V3 = Routing(256, 8, groups=4)
MACHINES = {nodes: cs.load("hgx-h100", nodes=nodes).topology for nodes in (1, 2, 4, 8)}


def on(nodes: int, ranks: int = 0, case: Case | None = None) -> Where:
    """Return the first ranks (all) of so many H100 nodes."""
    layout = cs.Layout.first(ranks or 8 * nodes)
    return Where(layout, MACHINES[nodes], case or Case())


def seconds(
    op: str = "dispatch", load: Load | None = None, routing: Routing = V3, nodes: int = 4, **how: object
) -> float:
    return exchange(op, load or Load(4096, FP8), routing, on(nodes), **how).seconds  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("nodes", "op", "published"), [(4, "dispatch", 58e9), (4, "combine", 57e9), (8, "dispatch", 51e9)]
)
def test_deepep_on_h800(nodes: int, op: str, published: float) -> None:
    """DeepEP's table of normal kernels (docs/legacy.md): 4,096 tokens, logical bandwidth, its own node counted."""
    topology = cs.load("hgx-h800", nodes=nodes).topology
    load = Load(4096, FP8 if op == "dispatch" else BF16)
    found = exchange(op, load, V3, Where(cs.Layout.first(8 * nodes), topology))  # type: ignore[arg-type]
    assert found.counts == "token_node_pairs_incl_own"
    assert found.algbw == pytest.approx(published, rel=0.07)
    assert found.busbw == pytest.approx(found.algbw * (nodes - 1) / nodes)
    assert "nic" in found.bottleneck


@pytest.mark.parametrize(("nodes", "published"), [(1, 77e-6), (2, 118e-6), (4, 155e-6), (8, 173e-6), (32, 194e-6)])
def test_deepep_at_low_latency(nodes: int, published: float) -> None:
    """DeepEP's table of low-latency kernels: 128 tokens in fp8 on 8 to 256 H800."""
    where = Where(cs.Layout.first(8 * nodes), cs.load("hgx-h800", nodes=nodes).topology)
    found = exchange("dispatch", Load(128, FP8), Routing(256, 8), where, mode="low_latency")
    assert found.seconds == pytest.approx(published, rel=0.08)


@pytest.mark.parametrize(
    ("nodes", "op", "published"), [(2, "dispatch", 1141e-6), (3, "dispatch", 1637e-6), (2, "combine", 1965e-6)]
)
def test_one_peer_does_not_fill_an_efa(nodes: int, op: str, published: float) -> None:
    """UCCL-EP on nodes of 8 B200 with a 400 Gb/s EFA each: two nodes use 25 to 30 of 50 GB/s, three 35 to 39."""
    where = Where(cs.Layout.first(8 * nodes), cs.load("hgx-b200", nodes=nodes, fabric="efa").topology)
    found = exchange(op, Load(4096, FP8 if op == "dispatch" else BF16), V3, where)  # type: ignore[arg-type]
    assert found.seconds == pytest.approx(published, rel=0.12)


@pytest.mark.parametrize(("machine", "nodes", "published"), [("mi300x", 4, 224e-6), ("hgx-b200", 4, 406e-6)])
def test_messages_that_the_host_sends(machine: str, nodes: int, published: float) -> None:
    """UCCL-EP at low latency, where a thread of the host rings the NIC's bell: 128 tokens in fp8."""
    fabric = "infiniband" if machine == "mi300x" else "efa"
    where = Where(cs.Layout.first(8 * nodes), cs.load(machine, nodes=nodes, fabric=fabric).topology)
    found = exchange("dispatch", Load(128, FP8), Routing(256, 8), where, mode="low_latency")
    assert found.seconds == pytest.approx(published, rel=0.12)


def test_adding_up_takes_longer_than_telling_where_to() -> None:
    there, back = (seconds(op, nodes=1, multiprocessors=4) for op in ("dispatch", "combine"))
    kernel = kernels().kernel("normal")
    assert back - there == pytest.approx(4096 * (kernel.sum - kernel.token) / 4)


def test_what_limits_it() -> None:
    found = {
        "nic": exchange("dispatch", Load(4096, FP8), V3, on(4)),
        "multiprocessors": exchange("dispatch", Load(4096, FP8), V3, on(1), multiprocessors=4),
        "nvlink4": exchange("dispatch", Load(4096, FP8), V3, on(1), multiprocessors=64),
        "latency": exchange("dispatch", Load(1, FP8), V3, on(4)),
    }
    assert {name: name in one.bottleneck for name, one in found.items()} == dict.fromkeys(found, True)


def test_multiprocessors_share_the_copies() -> None:
    few, twice = (seconds(nodes=1, multiprocessors=count) for count in (2, 4))
    launch = kernels().kernel("normal").launch
    assert few - launch == pytest.approx(2 * (twice - launch))


@pytest.mark.parametrize("mode", MODES)
def test_one_rank_moves_nothing(mode: str) -> None:
    assert exchange("dispatch", Load(4096, BF16), Routing(8, 2), on(1, 1), mode=mode).seconds == 0.0


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("op", ["dispatch", "combine"])
@pytest.mark.parametrize("nodes", [1, 4])
def test_fewer_bytes_fewer_experts_no_skew_are_never_slower(mode: str, op: str, nodes: int) -> None:
    for routing in (V3, replace(V3, groups=None)):
        plain = seconds(op, Load(4096, BF16), routing, nodes, mode=mode)
        assert seconds(op, Load(4096, FP8), routing, nodes, mode=mode) < plain
        assert seconds(op, Load(2048, BF16), routing, nodes, mode=mode) < plain
        assert seconds(op, Load(4096, BF16), replace(routing, top_k=6), nodes, mode=mode) <= plain
        skewed = [
            seconds(op, Load(4096, BF16), replace(routing, skew=skew), nodes, mode=mode) for skew in (0.3, 0.7, 1.07, 2)
        ]
        assert [plain, *skewed] == sorted([plain, *skewed])


@given(st.integers(1, 8192), st.integers(1, 16), st.sampled_from([1, 2, 4]), st.sampled_from(["hybrid", "normal"]))
def test_deduplication_is_never_slower(tokens: int, top_k: int, nodes: int, mode: str) -> None:
    """A copy for each node and rank loads NICs no more than a copy for each expert."""
    load, routing = Load(tokens, BF16), Routing(64, top_k)
    once = exchange("dispatch", load, routing, on(nodes), mode=mode, multiprocessors=0)
    every = exchange("dispatch", load, routing, on(nodes), mode="low_latency")
    waiting = kernels().kernel(mode).launch + kernels().kernel(mode).network
    assert once.seconds - waiting <= every.seconds + 1e-12


@given(st.integers(1, 100_000), st.sampled_from(MODES), st.integers(1, 16))
def test_more_tokens_take_longer(tokens: int, mode: str, top_k: int) -> None:
    routing = Routing(64, top_k)
    assert seconds("combine", Load(tokens, BF16), routing, 2, mode=mode) <= seconds(
        "combine", Load(tokens + 1, BF16), routing, 2, mode=mode
    )


def test_limiting_the_nodes_saves_time() -> None:
    assert seconds(nodes=8) < seconds(nodes=8, routing=replace(V3, groups=None))


def test_the_fullest_rank_is_waited_for() -> None:
    """NCCL moves what the fullest rank gets: at the measured skew 2.56 times the mean, on 32 ranks."""
    even, skewed = (
        seconds(load=Load(65_536, BF16), routing=Routing(256, 8, skew=skew), mode="nccl")
        for skew in (0.0, MEASURED_SKEW)
    )
    assert skewed / even == pytest.approx(2.5, rel=0.05)


def test_slow_end_of_the_figures() -> None:
    layout, topology = cs.Layout.first(72), cs.load("vr-nvl72").topology
    low, high = (
        exchange(
            "dispatch",
            Load(8192, BF16),
            Routing(288, 8),
            Where(layout, topology, Case(end)),
            mode="hybrid",
            multiprocessors=0,
        )
        for end in ("low", "high")
    )
    assert low.seconds > high.seconds


@pytest.mark.parametrize(("machine", "ranks"), [("gb200-nvl72", 64), ("vr-nvl72", 72), ("rubin-ultra-nvl576", 576)])
def test_large_domains(machine: str, ranks: int) -> None:
    where = Where(cs.Layout.first(ranks), cs.load(machine).topology)
    found = exchange("dispatch", Load(4096, FP8), Routing(576, 8), where, mode="hybrid")
    assert 1e-5 < found.seconds < 2e-3


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("ranks", [1, 32])
def test_many_numbers_of_tokens_at_once(mode: str, ranks: int) -> None:
    tokens = np.array([[1.0, 128.0], [4096.0, 65536.0]])
    both = moe_times(tokens, (FP8, BF16), V3, on(4, ranks), mode=mode)
    for (place, count), token in itertools.product(np.ndenumerate(tokens), (FP8, BF16)):
        op, found = ("dispatch", both.dispatch) if token == FP8 else ("combine", both.combine)
        alone = exchange(op, Load(float(count), token), V3, on(4, ranks), mode=mode)  # type: ignore[arg-type]
        assert found[place] == pytest.approx(alone.seconds)


def test_among_the_gpus_of_a_machine() -> None:
    """As many groups as there are act at once; on a machine that is not oversubscribed that changes nothing."""
    machine = cs.load("hgx-h100", nodes=4)
    found = cs.dispatch(machine, V3, tokens=4096, hidden=HIDDEN, precision="fp8")
    assert (found.ranks, found.seconds) == (32, seconds())
    inside = cs.combine(machine, V3, tokens=4096, hidden=HIDDEN, ep=8)
    assert inside.seconds == pytest.approx(seconds("combine", Load(4096, BF16), nodes=1))
    (row,) = cs.to_frame(found).to_dict("records")
    assert (row["time_s"], row["algorithm"]) == (found.seconds, "normal")


def test_every_group_is_waited_for() -> None:
    """Of nine groups of 16 on two racks of 72 one straddles them, and all wait for it."""
    found = cs.dispatch(cs.load("gb200-nvl72", nodes=36), Routing(64, 8), tokens=4096, hidden=HIDDEN, ep=16)
    assert (found.counts, "nic" in found.bottleneck) == ("token_node_pairs_incl_own", True)


def test_bytes_of_a_token() -> None:
    assert FP8 == HIDDEN + HIDDEN // 128 * 4
    assert token_bytes(4096, "nvfp4") == 4096 * 9 / 16
    assert list(PRECISIONS.values()) == sorted(PRECISIONS.values(), reverse=True)


@pytest.mark.parametrize(
    ("message", "call"),
    [
        ("mode: 'norml'.*did you mean 'normal'", lambda: seconds(mode="norml")),
        ("operation: 'dispach'.*did you mean 'dispatch'", lambda: seconds("dispach")),
        ("precision: 'int3'", lambda: token_bytes(HIDDEN, "int3")),
        ("hidden: 0", lambda: token_bytes(0, "bf16")),
        ("tokens: 0", lambda: Load(0, BF16)),
        ("tokens: -1", lambda: moe_times([1.0, -1.0], (FP8, BF16), V3, on(1))),
        ("tokens: inf", lambda: moe_times([1.0, float("inf")], (FP8, BF16), V3, on(1))),
        ("token: bytes: nan", lambda: Load(1, float("nan"))),
        ("multiprocessors: -1", lambda: seconds(multiprocessors=-1)),
        ("kind", lambda: replace(kernels(), links={}).reach("nvlink4")),
    ],
)
def test_mistakes(message: str, call: object) -> None:
    with pytest.raises(InputError, match=message):
        call()  # type: ignore[operator]


def test_few_constants_each_with_its_source() -> None:
    every, _ = constants(kernels())
    assert every <= 30
    listed = load_yaml(folder("topologies") / "sources.yaml")
    figures = [
        one for entry in (*kernels().kernels.values(), *kernels().links.values()) for one in vars(entry).values()
    ]
    cited = [source for one in figures if isinstance(one, Figure) for source in one.source]
    assert cited
    assert not set(cited) - set(listed)
