"""Does NCCL's own choice come out, number by number?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.errors import InputError
from commsim.libraries.nccl.communicator import Communicator, Cpu
from commsim.libraries.nccl.constants import OPS as COLLECTIVES
from commsim.libraries.nccl.graphs import Graph, Graphs, Pattern
from commsim.libraries.nccl.tuner import Entry, Table, tune
from tests.libraries.graphs import BOXES, LONE, ONE_BOX, OPS, SHARP, communicator, configurations, read, switches

if TYPE_CHECKING:
    from pathlib import Path as File

KIB, MIB, GIB = 2**10, 2**20, 2**30
ALL_REDUCE, ALL_GATHER = "all_reduce", "all_gather"


def entry(table: Table, op: str, name: str) -> tuple[float, float]:
    """Latency in us and bandwidth in GB/s."""
    found = table.entries[op][name]
    return found.latency * 1e6, found.algbw / 1e9


def picked(table: Table, op: str, size: float) -> tuple[str, float]:
    """What is taken for a size, and the time in us."""
    found = table.picks(op, [size])
    return found.names[found.chosen[0]], float(found.seconds[0] * 1e6)


@pytest.mark.parametrize(
    ("name", "latency", "bandwidth"),
    [
        ("Ring/Simple", 8.4 + 14 * 3.4, 360 * 8 / 14),
        ("Ring/LL", 6.6 + 14 * 0.6, 141 * 8 / 14),
        ("Ring/LL128", 14 + 14 * 1.9, 0.92 * 360 * 8 / 14),
        ("Tree/LL", 6.8 + 2 * 7 * 0.6, 0.92 * 360 / 3.8 / 2),
        ("NVLS/Simple", 25.0, 8 * 40 * 0.85),
    ],
)
def test_one_box_by_hand(name: str, latency: float, bandwidth: float) -> None:
    assert entry(tune(communicator(ONE_BOX, 1)), ALL_REDUCE, name) == pytest.approx((latency, bandwidth))


def test_sixteen_boxes_by_hand() -> None:
    table = tune(communicator(BOXES, 16))
    assert entry(table, ALL_REDUCE, "NVLSTree/Simple") == pytest.approx((25 + 2 * 4 * 20.9, 8 * 45.5 * 128 / 254))
    assert entry(table, ALL_REDUCE, "Ring/Simple") == pytest.approx((8.4 + 224 * 3.4 + 30 * 14, 384 * 128 / 254))


PICKS: dict[
    tuple[int, str], dict[int, tuple[str, float]]
] = {  # (graphs, nodes): of the table of worked numbers for NCCL 2.30.7, in us
    (1, ALL_REDUCE): {KIB: ("Ring/LL", 15.0), MIB: ("Ring/LL", 28.0), 64 * MIB: ("NVLS/Simple", 271.7)},
    (1, ALL_GATHER): {KIB: ("Ring/LL", 10.8), MIB: ("Ring/LL", 17.3), 8 * GIB: ("Ring/Simple", 20910.5)},
    (2, ALL_REDUCE): {KIB: ("Tree/LL", 25.3), MIB: ("Tree/LL128", 62.5), GIB: ("NVLSTree/Simple", 4428.3)},
    (2, ALL_GATHER): {MIB: ("Ring/LL128", 47.9), 64 * MIB: ("Ring/Simple", 233.8)},
    (16, ALL_REDUCE): {KIB: ("Tree/LL", 55.3), GIB: ("NVLSTree/Simple", 6045.8), 8 * GIB: ("Ring/Simple", 46055.7)},
    (16, ALL_GATHER): {MIB: ("Ring/LL", 210.1), 64 * MIB: ("Ring/LL128", 513.6), GIB: ("Ring/Simple", 3373.6)},
    (1, "broadcast"): {KIB: ("Ring/LL", 7.2), MIB: ("Ring/LL", 14.6), 8 * GIB: ("Ring/Simple", 23872.7)},
}


@pytest.mark.parametrize(("nodes", "op"), PICKS)
def test_picks_of_h100(nodes: int, op: str) -> None:
    table = tune(communicator(ONE_BOX if nodes == 1 else BOXES, nodes))
    for size, (name, time) in PICKS[nodes, op].items():
        assert picked(table, op, size)[0] == name
        assert picked(table, op, size)[1] == pytest.approx(time, abs=0.05)


def test_picks_with_sharp() -> None:
    table = tune(communicator(SHARP, 16, collnet_enable=1))
    expected = {KIB: ("NVLS/Simple", 43.0), MIB: ("CollNetDirect/Simple", 47.0), 8 * GIB: ("Ring/Simple", 22794.1)}
    for size, (name, time) in expected.items():
        assert picked(table, ALL_GATHER, size)[0] == name
        assert picked(table, ALL_GATHER, size)[1] == pytest.approx(time, abs=0.05)


OWN: dict[
    str, dict[str, tuple[float, float]]
] = {  # NCCL's own src/graph/tuning.cc of each version, compiled and run: latency in us, bandwidth in GB/s
    "2.18": {"box": (23, 266.667), "tree": (593, 143.36), "ring": (315, 10.2803), "simple": (168, 122.4)},
    "2.19": {"box": (23, 266.667), "tree": (135, 160), "ring": (315, 10.2803), "simple": (616, 122.4)},
    "2.21": {"box": (25, 266.667), "tree": (137, 160), "ring": (315, 10.2803), "simple": (616, 122.4)},
    "2.23": {"box": (25, 266.667), "tree": (137, 160), "ring": (311.6, 10.2803), "simple": (176.4, 122.4)},
    "2.27": {"box": (25, 266.667), "tree": (137, 160), "ring": (311.6, 10.2803), "simple": (176.4, 122.4)},
    "2.28": {"box": (25, 272), "tree": (192.2, 183.433), "ring": (311.6, 10.2803), "simple": (176.4, 122.4)},
    "2.30": {"box": (25, 272), "tree": (192.2, 183.433), "ring": (311.6, 10.2803), "simple": (176.4, 122.4)},
}


@pytest.mark.parametrize("version", OWN)
def test_versions_of_all_reduce(version: str) -> None:
    box, boxes = (tune(communicator(one, nodes, version=version)) for one, nodes in ((ONE_BOX, 1), (BOXES, 16)))
    found = {
        "box": entry(box, ALL_REDUCE, "NVLS/Simple"),
        "tree": entry(boxes, ALL_REDUCE, "NVLSTree/Simple"),
        "ring": entry(boxes, ALL_REDUCE, "Ring/LL"),
        "simple": entry(boxes, ALL_REDUCE, "Tree/Simple"),
    }
    assert found == {name: pytest.approx(numbers, rel=1e-5) for name, numbers in OWN[version].items()}


GATHERS = {  # as above, for all-gather: NVLS in a box; NVLS and CollNetDirect of 16 boxes with SHARP and AMD CPUs
    "2.18": (None, None, None),
    "2.19": ((23, 266.667), (41, 266.667), None),
    "2.20": ((23, 266.667), (41, 266.667), (44, 326.4)),
    "2.23": ((25, 320), (43, 320), (44, 326.4)),
    "2.27": ((25, 280), (43, 280), (44, 345.6)),
    "2.30": ((25, 208.25), (43, 208.25), (44, 345.6)),
}


@pytest.mark.parametrize("version", GATHERS)
def test_versions_of_all_gather(version: str) -> None:
    box = tune(communicator(ONE_BOX, 1, version=version))
    boxes = tune(communicator(SHARP, 16, cpu="amd", version=version, collnet_enable=1))
    places = ((box, "NVLS/Simple"), (boxes, "NVLS/Simple"), (boxes, "CollNetDirect/Simple"))
    for (table, name), expected in zip(places, GATHERS[version]):
        assert (name in table.entries[ALL_GATHER]) == (expected is not None)
        if expected:
            assert entry(table, ALL_GATHER, name) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    ("version", "ring", "pat"),
    [("2.20", (26.2, 8), None), ("2.22", (26.2, 13.6), None), ("2.23", (36.6, 13.6), 40.8), ("2.24", (36.6, 13.6), 36)],
)
def test_lone_ranks(version: str, ring: tuple[float, float], pat: float | None) -> None:
    """As above, for four nodes of one rank: each hop is exposed from 2.23 on, and PAT is there."""
    table = tune(communicator(LONE, 4, 1, version=version))
    assert entry(table, ALL_REDUCE, "Ring/LL") == pytest.approx(ring, rel=1e-5)
    found = table.entries[ALL_GATHER].get("PAT/Simple")
    assert (found and found.algbw / 1e9) == (pat and pytest.approx(pat))


def test_effect_seen_in_logs_of_2_27() -> None:
    """NCCL 2.27.5 on H100: NVLSTree of 2 nodes 53.0 us/266.7 GB/s, of 16 nodes 137.0/160.0."""
    for nodes, expected in ((2, (53.0, 266.667)), (16, (137.0, 160.0))):
        table = tune(communicator(BOXES, nodes, version="2.27.5"))
        assert entry(table, ALL_REDUCE, "NVLSTree/Simple") == pytest.approx(expected, rel=1e-5)


def test_model_line_of_a_debug_log() -> None:
    """NCCL issue 1453: `128 Bytes -> Algo 0 proto 0 time 25.214764`, Tree with LL of two boxes of eight GPUs."""
    latency, bandwidth = entry(tune(communicator(BOXES, 2)), ALL_REDUCE, "Tree/LL")
    assert latency == pytest.approx(25.2)
    assert 25.2 < latency + 128 / (bandwidth * 1e3) < 25.214764


@pytest.mark.data
def test_every_configuration(data: File) -> None:
    """What NCCL 2.30.7's own code gave from these graphs, to the digits that were printed."""
    for name, said in configurations(data).items():
        machine, nodes, knobs = switches(name)
        ranks = nodes * said["localRanks"]
        comm = Communicator(ranks, nodes, said["cc"], read(said["graphs"]), cpu_of(machine), knobs=knobs)
        table = tune(comm)
        assert comm.channels == said["graphs"]["nChannels"], name
        for op, expected in said["table"].items():
            found = {pair: entry(table, OPS[op], pair) for pair in table.entries[OPS[op]]}
            assert found == {pair: pytest.approx(numbers, rel=1e-6, abs=1e-4) for pair, numbers in expected.items()}
        for op, times in said["times"].items():
            picks = table.picks(OPS[op], [float(size) for size in times])
            taken = [(picks.names[index], time * 1e6) for index, time in zip(picks.chosen, picks.seconds)]
            expected = [
                (pair, pytest.approx(time, rel=1e-6, abs=6e-4)) for pair, time in times.values() if pair != "-/-"
            ]
            assert taken == expected, (name, op)


def cpu_of(machine: str) -> Cpu:
    """The processors of a configuration, by its name."""
    if machine.startswith("a100") or any(word in machine for word in ("amd", "l40s", "rtx6000")):
        return "amd"
    return "arm" if machine.startswith(("gb", "rubin")) else "intel"


def test_no_graph_no_picks() -> None:
    table = tune(communicator(Graphs(), 2))
    assert all(not entries for entries in table.entries.values())
    picks = table.picks(ALL_REDUCE, [KIB, MIB])
    assert (picks.names, len(picks.chosen), len(picks.seconds), picks.algorithms) == ((), 0, 0, [])


def test_one_rank_copies() -> None:
    assert all(not entries for entries in tune(communicator(LONE, 1, 1)).entries.values())


SIZES = st.lists(st.floats(0, 2**40), min_size=1, max_size=6)
MACHINES = st.sampled_from([(ONE_BOX, 1), (BOXES, 2), (BOXES, 16), (SHARP, 4)])


@given(MACHINES, st.sampled_from(COLLECTIVES), SIZES, st.sampled_from(["2.18", "2.23", "2.30"]))
def test_the_quickest_is_taken(machine: tuple[Graphs, int], op: str, sizes: list[float], version: str) -> None:
    table = tune(communicator(*machine, version=version, collnet_enable=1))
    picks, all_seconds = table.picks(op, sizes), table.seconds(op, sizes)
    assert (picks.seconds <= all_seconds.min(axis=0) * (1 + 1e-6)).all()
    assert len(picks.algorithms) == len(picks.protocols) == len(sizes)


@given(MACHINES, st.sampled_from(COLLECTIVES), SIZES)
def test_more_bytes_take_longer_where_the_model_is_smooth(
    machine: tuple[Graphs, int], op: str, sizes: list[float]
) -> None:
    """Of each algorithm; the tree's table of corrections has steps, so it is left out."""
    table, rising = tune(communicator(*machine)), np.sort(sizes)
    smooth = [not name.startswith("Tree") for name in table.entries[op]]
    assert (np.diff(table.seconds(op, rising)[smooth], axis=1) >= 0).all()


def test_of_equal_times_the_earlier_is_taken() -> None:
    same = Entry(1e-5, 1e10)
    table = Table(communicator(ONE_BOX, 1), {ALL_GATHER: {"Ring/LL": same, "Ring/Simple": same, "NVLS/Simple": same}})
    assert picked(table, ALL_GATHER, MIB)[0] == "Ring/LL"
    nearly = {"Ring/Simple": same, "NVLS/Simple": Entry(1e-5 * (1 - 1e-9), 1e10)}
    assert picked(replace(table, entries={ALL_GATHER: nearly}), ALL_GATHER, MIB)[0] == "Ring/Simple"


def test_a_tree_is_corrected_by_its_size() -> None:
    table = tune(communicator(BOXES, 2))
    names = list(table.entries[ALL_REDUCE])
    latency, bandwidth = entry(table, ALL_REDUCE, "Tree/LL")
    for size, share in ((63, 1), (64, 1), (1024, 0.9), (2047, 0.9), (2048, 0.8), (64 * 2**12, 0.4), (64 * 2**23, 1)):
        time = table.seconds(ALL_REDUCE, [size])[names.index("Tree/LL"), 0]
        assert time * 1e6 == pytest.approx(latency + size / (bandwidth * share * 1e3))


def test_nvls_tree_is_corrected_on_blackwell_beside_x86_from_2_29_on() -> None:
    boxes = Communicator(16, 2, 100, BOXES)
    name = "NVLSTree/Simple"

    def share(comm: Communicator) -> float:
        table = tune(comm)
        place = list(table.entries[ALL_REDUCE]).index(name)
        found = table.entries[ALL_REDUCE][name]
        return float(MIB / (table.seconds(ALL_REDUCE, [MIB])[place, 0] - found.latency) / found.algbw)

    assert share(boxes) == pytest.approx(0.5)
    assert share(replace(boxes, cpu="arm")) == pytest.approx(1)
    assert share(communicator(BOXES, 2)) == pytest.approx(1)


def test_a_large_ring_between_nodes_starts_later() -> None:
    table = tune(communicator(BOXES, 2))
    place = list(table.entries[ALL_REDUCE]).index("Ring/Simple")
    found = table.entries[ALL_REDUCE]["Ring/Simple"]
    step = 64 * 16 * table.communicator.channels
    for size, factor in ((step - 1, 1), (step, 1.4)):
        time = table.seconds(ALL_REDUCE, [size])[place, 0]
        assert time == pytest.approx(found.latency * factor + size / found.algbw)


def test_grouped_collectives_share_the_latency_of_all_but_rings() -> None:
    table = tune(communicator(BOXES, 2))
    names = list(table.entries[ALL_REDUCE])
    alone, grouped = table.seconds(ALL_REDUCE, [0]), table.seconds(ALL_REDUCE, [0], pipelined=8)
    assert (grouped / alone)[:, 0].tolist() == [8 if name.startswith("Ring") else 1 for name in names]


def test_deep_rings_are_avoided_for_fp8() -> None:
    table = tune(communicator(BOXES, 2))
    assert picked(table, ALL_REDUCE, 8 * GIB)[0] == "NVLSTree/Simple"
    ring_only = tune(communicator(BOXES, 16))
    assert ring_only.picks(ALL_REDUCE, [8 * GIB]).algorithms == ["Ring"]
    assert ring_only.picks(ALL_REDUCE, [8 * GIB], fp8=True).algorithms == ["NVLSTree"]


def test_a_thousand_sizes_at_once() -> None:
    sizes = np.geomspace(8, 2**33, 1000)
    table = tune(communicator(BOXES, 16))
    picks = table.picks(ALL_REDUCE, sizes)
    one_by_one = [table.picks(ALL_REDUCE, [size]).seconds[0] for size in sizes[::100]]
    assert picks.seconds[::100].tolist() == one_by_one


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        (lambda: Communicator(8, 0, 90, BOXES), "nodes: 0; a whole number of 1 or more belongs here"),
        (lambda: Communicator(1, 2, 90, BOXES), "ranks: 1; at least 2 belong here"),
        (lambda: Communicator(8, 1, 90, BOXES, "sparc"), "cpu: 'sparc'; NCCL tells no such processors apart"),  # type: ignore[arg-type]
        (lambda: tune(communicator(BOXES, 2)).picks("all_to_all", [1]), "collective: 'all_to_all'; NCCL's tuner"),
        (lambda: tune(communicator(BOXES, 2)).picks(ALL_REDUCE, [-1]), "sizes: .*finite sizes that are not negative"),
        (lambda: tune(communicator(BOXES, 2)).picks(ALL_REDUCE, [float("nan")]), "sizes: .*finite sizes"),
        (lambda: Graph(Pattern.RING, 2, float("inf")), "graph of pattern RING: .*finite and not negative"),
        (lambda: Graph(Pattern.RING, -1), "graph of pattern RING: .*finite and not negative"),
    ],
)
def test_mistakes_are_one_line(mistake: object, said: str) -> None:
    assert callable(mistake)
    with pytest.raises(InputError, match=said) as refused:
        mistake()
    assert "\n" not in str(refused.value)
