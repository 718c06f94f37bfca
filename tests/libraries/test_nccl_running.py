"""How many channels and threads run, and do settings limit them?"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.libraries.nccl.communicator import Communicator
from commsim.libraries.nccl.graphs import Graphs
from commsim.libraries.nccl.running import Launch, launch
from tests.libraries.graphs import BOXES, LONE, ONE_BOX, SHARP, communicator, graph


@pytest.mark.parametrize(
    ("graphs", "nodes", "more", "channels"),
    [
        (ONE_BOX, 1, {}, 24),
        (BOXES, 2, {}, 16),
        (LONE, 2, {"local": 1}, 4),
        (BOXES, 2, {"max_nchannels": 8}, 8),
        (BOXES, 2, {"max_ctas": 4, "min_nchannels": 12}, 12),
        (BOXES, 2, {"min_ctas": 100}, 64),
        (ONE_BOX, 1, {"version": "2.24"}, 24),
    ],
)
def test_channels(graphs: Graphs, nodes: int, more: dict[str, Any], channels: int) -> None:
    assert communicator(graphs, nodes, **more).channels == channels


def test_faster_channels_between_gpus_than_to_the_network_get_more_with_collnet() -> None:
    chain = graph(3, 8, 96, 48, "NVL/PIX")
    wide = Graphs(SHARP.ring, SHARP.tree, chain, SHARP.collnet_direct, SHARP.nvls)
    assert communicator(wide, 2, collnet_enable=1).channels == 24
    assert communicator(wide, 2).channels == 16


def test_rings_ran_as_many_channels_as_nvls_from_2_20_to_2_27() -> None:
    few = Graphs(graph(4, 4, 30, 30, "NVL/PIX"), graph(1, 4, 30, 30, "NVL/PIX"), nvls=ONE_BOX.nvls)
    counts = [communicator(few, 1, version=version).channels for version in ("2.18", "2.20", "2.27", "2.28")]
    assert counts == [8, 16, 16, 8]


def test_nvls_channels() -> None:
    blackwell = [Communicator(8 * nodes, nodes, 100, BOXES) for nodes in (1, 2)]
    assert [comm.nvls_channels for comm in blackwell] == [24, 32]
    assert communicator(BOXES, 2).nvls_channels == 16
    assert communicator(BOXES, 2, nvls_nchannels=4).nvls_channels == 4
    assert communicator(BOXES, 2, nvls_enable=0).nvls_channels == 0


@pytest.mark.parametrize(
    ("algorithm", "protocol", "size", "expected"),
    [
        ("Ring", "Simple", 2**30, (16, 544)),
        ("Ring", "Simple", 512 * 64 * 3, (3, 544)),
        ("Ring", "Simple", 1, (1, 96)),
        ("Ring", "LL", 512 * 8 * 16 * 2, (2, 512)),
        ("Ring", "LL128", 2**30, (16, 640)),
        ("Tree", "LL", 1, (1, 640)),
        ("NVLS", "Simple", 1, (16, 640)),
        ("NVLSTree", "Simple", 1, (16, 640)),
        ("PAT", "Simple", 1, (16, 640)),
    ],
)
def test_what_a_call_runs_with(algorithm: str, protocol: str, size: float, expected: tuple[int, int]) -> None:
    assert launch(communicator(BOXES, 2), algorithm, protocol, size) == Launch(*expected)


@given(
    st.sampled_from(["Ring/LL", "Ring/LL128", "Ring/Simple", "Tree/LL", "Tree/Simple", "CollNetChain/Simple"]),
    st.floats(0, 2**34),
    st.floats(1, 16),
)
def test_larger_calls_never_run_with_less(name: str, size: float, factor: float) -> None:
    comm = communicator(SHARP, 2, collnet_enable=1)
    algorithm, protocol = name.split("/")
    small, large = (launch(comm, algorithm, protocol, one) for one in (size, size * factor))
    assert 1 <= small.channels <= large.channels <= comm.channels
    assert 96 <= small.threads <= large.threads <= 640


@given(st.floats(0, 2**34))
def test_collnet_direct_in_stages(size: float) -> None:
    comm = communicator(SHARP, 2, collnet_enable=1)
    assert 1 <= launch(comm, "CollNetDirect", "Simple", size).channels <= comm.channels
    assert launch(comm, "CollNetDirect", "Simple", 2**34).channels == comm.channels
