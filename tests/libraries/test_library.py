"""Does a price become the seconds that its counts say?"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.collectives.kinds import ALL_GATHER, ALL_REDUCE
from commsim.collectives.price import Cost
from commsim.hardware.topology import Link
from commsim.libraries.library import Candidate, Timing, Wire, seconds

KINDS = Link("fast", 100e9, 1e-6), Link("slow", 10e9, 5e-6)


def cost(*, load: list[list[float]], depth: list[float] | None = None, streaming: bool = False) -> Cost:
    """A price of so many stages, each of one hop over each kind and a message of each sort."""
    stages = len(load)
    names = (("fast edge", "slow edge"),) * stages
    ones = np.ones((stages, 2))
    return Cost(KINDS, ones, ones, np.array(load), np.array(depth or [1.0] * stages), streaming, names)


def wire(**options: object) -> Wire:
    """Full bandwidth, the links' latency, and what else is said."""
    bandwidth, latency = ([getattr(link, name) for link in KINDS] for name in ("bandwidth", "latency"))
    return Wire(np.array(bandwidth), np.array(latency), **options)  # type: ignore[arg-type]


def test_stages_that_follow_each_other_add_up() -> None:
    """1 GB: 2 loads of the fast link take 20 ms, half a load of the slow one 50 ms, which counts; then 10 ms."""
    found, limit = seconds(cost(load=[[2.0, 0.5], [1.0, 0.0]]), np.array([1e9]), wire())
    assert found[0] == pytest.approx(50e-3 + 10e-3 + 2 * 6e-6)
    assert KINDS[limit[0]].kind == "slow"


def test_messages_and_launch_are_paid_whatever_the_size() -> None:
    """Two stages of one message each inside (2 us) and through the network (9 us), and a launch of 7 us."""
    found, limit = seconds(cost(load=[[1.0, 0.0]] * 2), np.array([0.0]), wire(launch=7e-6, message=(2e-6, 9e-6)))
    assert found[0] == pytest.approx(7e-6 + 2 * (2e-6 + 9e-6) + 2 * (1e-6 + 5e-6))
    assert limit[0] == -1, "nothing but latency"


def test_stages_that_stream_take_as_long_as_the_slowest() -> None:
    """The stages of the test above, chunk by chunk at once: 50 ms, not 60."""
    asked = {"load": [[2.0, 0.5], [1.0, 0.0]], "streaming": True}
    found, _ = seconds(cost(**asked), np.array([1e9]), wire())  # type: ignore[arg-type]
    assert found[0] == pytest.approx(50e-3 + 2 * 6e-6)


def test_streaming_fills_once() -> None:
    """Five rounds under way: the size once, and four chunks of 1 MB at a fifth of the time each byte takes."""
    asked = cost(load=[[5.0, 0.0]], depth=[5.0], streaming=True)
    whole, _ = seconds(asked, np.array([1e9]), wire(chunk=1e6))
    assert whole[0] == pytest.approx(50e-3 + 4 * 1e6 * 1 / 100e9 + 6e-6)
    small, _ = seconds(asked, np.array([1e3]), wire(chunk=1e6))
    assert small[0] == pytest.approx((5 + 4) * 1e3 / 100e9 + 6e-6), "a chunk is never more than all"


LOADS = st.lists(st.lists(st.floats(0, 8), min_size=2, max_size=2), min_size=1, max_size=3)


@pytest.mark.parametrize("streaming", [False, True])
@given(load=LOADS, size=st.floats(0, 1e10), more=st.floats(0, 1e10), chunk=st.sampled_from([0.0, 1e6]))
def test_more_bytes_never_take_less(
    *, streaming: bool, load: list[list[float]], size: float, more: float, chunk: float
) -> None:
    found, _ = seconds(cost(load=load, streaming=streaming), np.array([size, size + more]), wire(chunk=chunk))
    assert found[1] >= found[0] > 0


@given(LOADS, st.floats(1, 1e10), st.floats(1, 10))
def test_faster_links_never_take_longer(load: list[list[float]], size: float, factor: float) -> None:
    asked, usual = cost(load=load), wire()
    faster = Wire(usual.bandwidth * factor, usual.latency / factor)
    assert seconds(asked, np.array([size]), faster)[0] <= seconds(asked, np.array([size]), usual)[0]


def timing() -> Timing:
    """Two ways of which one is quicker for small sizes."""
    sizes = np.array([1e3, 1e9])
    ways = [
        Candidate("Tree", "LL", cost(load=[[1.0, 0.0]]), np.array([1e-6, 4e-2]), np.array([-1, 0])),
        Candidate("Ring", "Simple", cost(load=[[1.0, 0.0]]), np.array([9e-6, 1e-2]), np.array([-1, 0])),
    ]
    return Timing(ALL_REDUCE, 4, sizes, tuple(ways), np.array([0, 1]))


def test_the_chosen_way_is_timed() -> None:
    found = timing()
    assert found.seconds.tolist() == [1e-6, 1e-2]
    assert [found.choice(index).algorithm for index in (0, 1)] == ["Tree", "Ring"]


def test_bandwidths_are_those_of_nccl_tests() -> None:
    """That is, algbw = size / time; busbw = algbw x 2 (n - 1)/n for all-reduce (nccl-tests, doc/PERFORMANCE.md)."""
    found = timing()
    assert found.algbw.tolist() == pytest.approx([1e9, 1e11])
    assert found.busbw.tolist() == pytest.approx([1.5e9, 1.5e11])
    gathered = Timing(ALL_GATHER, 4, found.sizes, found.candidates, found.chosen)
    assert gathered.busbw.tolist() == pytest.approx([0.75e9, 0.75e11])


def test_a_candidate_names_its_limit() -> None:
    assert timing().candidates[0].limit(0) == "latency"
    assert timing().candidates[0].limit(1) == "fast (fast edge)"
