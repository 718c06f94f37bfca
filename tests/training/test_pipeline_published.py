"""Does a pipeline work in its published order, take its published time, and hold what was published?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.training.pipeline import Program, bubble, compiled, in_flight, makespan, per_chunk, per_link

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


def uniform(program: Program, *seconds: float) -> Floats:
    return per_chunk(*([each] * program.dims[1] for each in seconds))


def turns(program: Program, stage: int) -> list[tuple[int, int, int]]:
    """What a stage does: (kind, chunk, micro-batch) in turn."""
    kind, chunk, microbatch = np.unravel_index(program.order[stage], program.dims)
    return list(zip(kind.tolist(), chunk.tolist(), microbatch.tolist()))


@pytest.mark.parametrize("stages", [1, 2, 4, 7])
@pytest.mark.parametrize("microbatches", [1, 3, 7, 8, 12])
def test_bubble_of_1f1b_and_gpipe(stages: int, microbatches: int) -> None:
    """(p - 1) / m of the ideal time (Narayanan et al. 2021, section 2.2.1)."""
    for schedule in ("1f1b", "gpipe"):
        program = compiled(schedule, stages, microbatches)
        ideal = microbatches * 3.0
        idle = bubble(program, uniform(program, 1.0, 2.0))
        assert idle == pytest.approx(np.full(stages, (stages - 1) / microbatches * ideal))


@pytest.mark.parametrize("virtual", [2, 3, 4])
@pytest.mark.parametrize(("stages", "microbatches"), [(1, 5), (2, 2), (4, 4), (4, 8), (3, 12), (4, 5), (4, 9), (4, 10)])
def test_bubble_of_interleaved(stages: int, microbatches: int, virtual: int) -> None:
    """(p - 1) / (m v) of the ideal time (Narayanan et al. 2021, section 2.2.2); here also where p does not divide m."""
    program = compiled("interleaved", stages, microbatches, virtual)
    ideal = microbatches * virtual * 3.0
    idle = bubble(program, uniform(program, 1.0, 2.0))
    assert idle == pytest.approx(np.full(stages, (stages - 1) / (microbatches * virtual) * ideal))


@pytest.mark.parametrize("stages", [1, 2, 4, 8])
@pytest.mark.parametrize(("forward", "backward", "weight"), [(1.0, 1.0, 1.0), (3.0, 4.0, 2.0), (1.0, 1.25, 0.75)])
def test_bubble_of_zero_bubble(stages: int, forward: float, backward: float, weight: float) -> None:
    """(p - 1)(T_F + T_B - T_W), and no stage holds more than 1F1B's first (ZB-H1 of Qi et al. 2024, section 2)."""
    program = compiled("zero-bubble", stages, 2 * stages)
    idle = bubble(program, uniform(program, forward, backward, weight))
    assert idle == pytest.approx(np.full(stages, (stages - 1) * (forward + backward - weight)))
    assert in_flight(program).tolist() == [stages] * stages


@given(st.integers(1, 8), st.integers(1, 20))
def test_activations_of_1f1b_and_gpipe(stages: int, microbatches: int) -> None:
    """1F1B: stage s holds min(m, p - s); GPipe: m (Narayanan et al. 2021, section 2.2.1)."""
    one_ahead = [min(microbatches, stages - stage) for stage in range(stages)]
    assert in_flight(compiled("1f1b", stages, microbatches)).tolist() == one_ahead
    assert in_flight(compiled("gpipe", stages, microbatches)).tolist() == [microbatches] * stages
    assert in_flight(compiled("forward", stages, microbatches)).tolist() == [0] * stages


@pytest.mark.parametrize(("stages", "virtual"), [(2, 2), (4, 2), (8, 4), (16, 8)])
def test_activations_of_interleaved(stages: int, virtual: int) -> None:
    """Stage 0 holds L (1 + (p - 1) / (p v)) layers (Korthikanti et al. 2022, section 4.2.3): p v chunks have L."""
    held = in_flight(compiled("interleaved", stages, 3 * stages, virtual))
    assert held[0] == pytest.approx(stages * virtual * (1 + (stages - 1) / (stages * virtual)))
    assert np.diff(held).tolist() == [-2] * (stages - 1)


def test_order_of_interleaved() -> None:
    """4 stages, 8 micro-batches, 2 chunks: 10 forwards ahead on stage 0 (Megatron-LM: 2 (p - 1 - s) + (v - 1) p)."""
    first = turns(compiled("interleaved", 4, 8, 2), 0)[:14]
    ahead = [(0, 0, j) for j in range(4)] + [(0, 4, j) for j in range(4)] + [(0, 0, 4), (0, 0, 5)]
    assert first == [*ahead, (0, 0, 6), (1, 4, 0), (0, 0, 7), (1, 4, 1)]


def test_groups_of_interleaved() -> None:
    """Megatron-LM's schedule table for 2 stages, 5 micro-batches in groups of 3, 2 chunks (its `schedules.py`)."""
    forwards = [turn for turn in turns(compiled("interleaved", 2, 5, 2, group=3), 0) if turn[0] == 0]
    assert [microbatch for _, _, microbatch in forwards] == [0, 1, 2, 0, 1, 2, 3, 4, 3, 4]
    assert [chunk // 2 for _, chunk, _ in forwards] == [0, 0, 0, 1, 1, 1, 0, 0, 1, 1]


def test_the_fewest_of_a_group_are_chosen() -> None:
    """The last group keeps at least p micro-batches, so that 9 micro-batches on 4 stages need groups of 5."""
    chosen = compiled("interleaved", 4, 9, 2)
    assert np.array_equal(chosen.order, compiled("interleaved", 4, 9, 2, group=5).order)
    assert turns(chosen, 0)[:6] == [(0, 0, j) for j in range(5)] + [(0, 4, 0)]


def test_order_of_zero_bubble() -> None:
    """The last stage leaves its weight gradients p - 1 micro-batches behind, the first does them at once."""
    program = compiled("zero-bubble", 3, 4)
    words = [" ".join("FBW"[kind] + str(batch) for kind, _, batch in turns(program, stage)) for stage in range(3)]
    assert words == [
        "F0 F1 F2 B0 W0 F3 B1 W1 B2 W2 B3 W3",
        "F0 F1 B0 F2 B1 W0 F3 B2 W1 B3 W2 W3",
        "F0 B0 F1 B1 F2 B2 W0 F3 B3 W1 W2 W3",
    ]


def slow_stage(stage: int) -> Floats:
    seconds = np.ones(8)
    seconds[stage] = 1.5
    return per_chunk(seconds, 2 * seconds)


def test_an_early_slow_stage_hides_in_its_warmup() -> None:
    """With p = 8, m = 24, F = 1, B = 2, one stage 1.5x as long: 118.5 at stage 0, 1.5 more for each later stage."""
    lengths = [float(makespan(compiled("1f1b", 8, 24), slow_stage(stage))) for stage in range(8)]
    assert lengths == pytest.approx([118.5 + 1.5 * stage for stage in range(8)])


@given(st.integers(1, 8), st.integers(1, 16), st.floats(0.1, 10), st.floats(0.1, 10))
def test_a_slow_last_stage_has_a_closed_form(stages: int, microbatches: int, slower: float, backward: float) -> None:
    """T = sum_(j < p-1) tau_j + m tau_(p-1), with the last stage the slowest."""
    scale = np.append(np.ones(stages - 1), 1 + slower)
    length = makespan(compiled("1f1b", stages, microbatches), per_chunk(scale, backward * scale))
    assert length == pytest.approx((1 + backward) * (stages - 1 + microbatches * (1 + slower)))


@pytest.mark.parametrize(("microbatches", "slowdown"), [(4, 1.1749), (8, 1.2598), (16, 1.3223)])
def test_loss_layer_on_the_last_stage(microbatches: int, slowdown: float) -> None:
    """Forward 2.07x, backward 1.41x on the last of 4 stages, against equal stages; 4 micro-batches: 1.1787 published.

    The job is that of Lin et al. 2025 (OSDI, "Understanding Stragglers in Large Model Training").
    """
    program = compiled("1f1b", 4, microbatches)
    forward, backward = np.array([1, 1, 1, 2.07]), 2 * np.array([1, 1, 1, 1.41])
    real = makespan(program, per_chunk(forward, backward))
    ideal = makespan(program, uniform(program, forward.mean(), backward.mean()))
    assert real / ideal == pytest.approx(slowdown, abs=5e-5)


@given(st.integers(2, 8), st.integers(0, 16), st.data())
def test_latency_of_one_link(stages: int, more: int, data: st.DataObject) -> None:
    """1F1B has no slack: d on link s costs 2 d (floor((m - (p - 1 - s)) / 2) + 1), whatever F and B take."""
    microbatches, link = stages + more, data.draw(st.integers(0, stages - 2))
    forward, backward, delay = data.draw(st.tuples(*[st.floats(0.1, 10)] * 3))
    program = compiled("1f1b", stages, microbatches)
    durations = uniform(program, forward, backward)
    links = np.where(np.arange(stages) == link, delay, 0.0)
    longer = makespan(program, durations, per_link(program, links)) - makespan(program, durations)
    assert longer == pytest.approx(2 * delay * ((microbatches - (stages - 1 - link)) // 2 + 1))


def with_slow_links(links: list[int], delay: float, healthy: float, stages: int = 8, way: str = "rendezvous") -> float:
    """A step of 1F1B with three micro-batches a stage, of which some links are late; in the units of `healthy`."""
    program = compiled("1f1b", stages, 3 * stages, communication=way)
    tau = healthy / (4 * stages - 1)
    late = np.isin(np.arange(stages), links) * delay
    return float(makespan(program, uniform(program, tau / 3, 2 * tau / 3), per_link(program, late)))


@pytest.mark.parametrize(
    ("links", "delay", "healthy", "measured", "replayed"),
    [
        ([6], 10, 872.25, 1081.3, 1122),
        ([6], 20, 874.3, 1330.75, 1374),
        ([6], 30, 873.25, 1580.35, 1623),
        ([6], 40, 872.2, 1832.25, 1872),
        ([6], 50, 873.2, 2108.2, 2123),
        ([6], 60, 872.55, 2333.25, 2373),
        ([0], 30, 868.9, 1598.05, 1631),
        ([0], 60, 868.45, 2532.45, 2560),
        ([0, 6], 30, 865.5, 1626.25, 1675),
        ([0, 3, 6], 30, 867.15, 1686.45, 1737),
    ],
)
def test_measured_link_delays(links: list[int], delay: float, healthy: float, measured: float, replayed: float) -> None:
    """Milliseconds of a 14B model on 8 stages of H800 with delays put on links (PipeMorph's logs, medians).

    A rendezvous on the compute stream meets them within 4 %, without a parameter.
    """
    predicted = with_slow_links(links, delay, healthy)
    assert predicted == pytest.approx(replayed, abs=0.8)
    assert predicted == pytest.approx(measured, rel=0.04)


@pytest.mark.parametrize(
    ("link", "delay", "way", "measured", "predicted"),
    [
        (0, 30, "rendezvous", 802.0, 818),
        (0, 60, "rendezvous", 1251.95, 1268),
        (2, 30, "serialised", 1103.55, 1144),
        (2, 60, "serialised", 1820.95, 1864),
    ],
)
def test_measured_link_delays_of_7b(link: int, delay: float, way: str, measured: float, predicted: float) -> None:
    """The same of a 7B model on 4 stages; its last link is met only with the two directions one after the other."""
    found = with_slow_links([link], delay, 424.5, stages=4, way=way)
    assert found == pytest.approx(predicted, abs=0.8)
    assert found == pytest.approx(measured, rel=0.04)


def test_neighbouring_links_tell_the_ways_apart() -> None:
    """Delays on links 0-1 and 1-2, measured 2106.7 ms: a rendezvous is 20 % long, senders that are held up 4 %."""
    assert with_slow_links([0, 1], 30, 868.2) == pytest.approx(2530, abs=0.8)
    assert with_slow_links([0, 1], 30, 868.2, way="blocking") == pytest.approx(2198, abs=0.8)


def test_exponential_forwards() -> None:
    """Last-passage times of Exp(1): E[G(2, 2)] = 3.5 exactly, its variance 3.25."""
    drawn = np.random.default_rng(0).exponential(size=(1, 2, 2, 50_000))
    lengths = makespan(compiled("forward", 2, 2), drawn)
    assert lengths.mean() == pytest.approx(3.5, abs=3 * (3.25 / lengths.size) ** 0.5)


@pytest.mark.parametrize(
    ("sigma", "stages", "microbatches", "one", "worst_of_16"),
    [(0.05, 4, 8, 1.0165, 1.0340), (0.1, 8, 24, 1.0572, 1.0756)],
)
def test_lognormal_noise(sigma: float, stages: int, microbatches: int, one: float, worst_of_16: float) -> None:
    """Mean slowdown of 1F1B with noise on each operation, and of the slowest of 16 (Monte Carlo, +-0.0003)."""
    noise = np.random.default_rng(0).lognormal(-(sigma**2) / 2, sigma, (2, stages, microbatches, 500, 16))
    durations = noise * np.array([1.0, 2.0])[:, None, None, None, None]
    slowdown = makespan(compiled("1f1b", stages, microbatches), durations) / (3 * (microbatches + stages - 1))
    for sample, expected in ((slowdown.ravel(), one), (slowdown.max(axis=1), worst_of_16)):
        error = sample.std() / sample.size**0.5
        assert sample.mean() == pytest.approx(expected, abs=3 * (error**2 + 0.0003**2) ** 0.5)
