"""Does lateness pass through collectives as it must, exactly where there is an exact value, else within its error?

Monte Carlo values are those of independent simulations with their standard errors, or limits that are proven.
"""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.collectives.algorithms import ALGORITHMS
from commsim.collectives.algorithms.table import Group
from commsim.collectives.kinds import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, REDUCE, REDUCE_SCATTER, Collective
from commsim.collectives.schedule import Schedule, rounds, transfer
from commsim.errors import InputError
from commsim.stragglers.laws import Empirical, Law, Lognormal, Weibull
from commsim.stragglers.maxima import Maximum
from commsim.stragglers.propagation import between_barriers, bucketed, detours, drawn, near_barriers, steps_of, through

if TYPE_CHECKING:
    from pathlib import Path

    from commsim.stragglers.laws.law import Floats

EXPONENTIAL = Weibull(1.0)
BARRIERS = (ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL)
"""Operations in which every rank needs something of every other one."""
HDR = 1.7e-6
"""Latency of a message between two nodes with 200 Gb/s InfiniBand, s (De Sensi et al. 2022, LogGOPSim's L)."""


def schedule(name: str, op: Collective, ranks: int, inner: int = 1) -> Schedule:
    return ALGORITHMS[name].schedule(op, Group(ranks, inner))


def serving(op: Collective, group: Group) -> list[str]:
    return [name for name, one in ALGORITHMS.items() if op in one.ops and one.serves(group)]


def error(drawn: Floats) -> float:
    return float(drawn.std() / np.sqrt(drawn.size))


@pytest.mark.parametrize("op", BARRIERS, ids=lambda op: op.name)
@pytest.mark.parametrize("group", [Group(4), Group(8), Group(64), Group(8, 8), Group(32, 8)], ids=str)
def test_nobody_leaves_before_the_last_has_arrived(op: Collective, group: Group) -> None:
    for name in serving(op, group):
        arrivals = np.zeros((group.size, group.size))
        np.fill_diagonal(arrivals, 1000.0)  # trial t: rank t is late
        assert through(schedule(name, op, group.size, group.inner), arrivals, work=1.0).min() >= 1000.0, name


@pytest.mark.parametrize("ranks", [4, 8, 64])
@pytest.mark.parametrize(
    ("name", "op"),
    [
        ("ring", ALL_REDUCE),
        ("ring", ALL_GATHER),
        ("ring", REDUCE_SCATTER),
        ("recursive_doubling", ALL_REDUCE),
        ("halving_doubling", ALL_REDUCE),
        ("binomial_tree", ALL_REDUCE),
        ("sharp", ALL_REDUCE),
    ],
)
def test_a_late_rank_makes_all_late_by_as_much(name: str, op: Collective, ranks: int) -> None:
    """No absorption, no amplification (a rank off the longest path of an unbalanced tree would be absorbed)."""
    arrivals = np.zeros((ranks, 2))
    arrivals[0, 1] = 7.5
    on_time, late = through(schedule(name, op, ranks), arrivals, work=1.0).T
    if name != "binomial_tree":  # whose root is the first to be done
        assert late == pytest.approx(on_time + 7.5)
    assert late.max() - on_time.max() == pytest.approx(7.5)


@pytest.mark.parametrize("ranks", [4, 8, 64])
def test_a_slow_rank_slows_the_whole_ring(ranks: int) -> None:
    slow = np.ones(ranks)
    slow[ranks // 2] = 1.7
    left = through(schedule("ring", ALL_REDUCE, ranks), np.zeros((ranks, 1)), work=slow)
    assert left.max() == pytest.approx(1.7 * 2 * (ranks - 1))


@pytest.mark.parametrize("ranks", [4, 8, 64])
def test_latency_of_one_link_of_a_ring_counts_twice(ranks: int) -> None:
    """The data crosses the link twice on its way to the last rank and once to the first, however many ranks."""
    extra = np.zeros(ranks)
    extra[1] = 0.3
    left = through(schedule("ring", ALL_REDUCE, ranks), np.zeros((ranks, 1)), work=1.0, latency=extra)
    assert left.max() - 2 * (ranks - 1) == pytest.approx(0.6)
    assert left.min() - 2 * (ranks - 1) == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("law", "ranks", "trials", "expected", "its_error"),
    [
        (EXPONENTIAL, 8, 4000, 1.952, 0.006),
        (EXPONENTIAL, 72, 400, 2.034, 0.001),
        (Lognormal(0.1), 8, 2000, 1.0891, 0.0003),
        (Lognormal(0.1), 72, 100, 1.0923, 0.0001),
        (Lognormal(0.3), 72, 200, 1.2989, 0.0004),
        (Lognormal(1.0), 8, 4000, 2.203, 0.009),
    ],
)
def test_a_ring_absorbs_noise(law: Law, ranks: int, trials: int, expected: float, its_error: float) -> None:
    """Last-passage percolation: the noise saturates (at 2 for exponential noise, Johansson 2000)."""
    noise = drawn(law, np.random.default_rng(11))
    ends = through(schedule("ring", ALL_REDUCE, ranks), np.zeros((ranks, trials)), work=noise).max(axis=0)
    found = ends / (2 * (ranks - 1))
    assert found.mean() == pytest.approx(expected, abs=3 * np.hypot(its_error, error(found)))


def test_a_barrier_in_every_round_would_be_far_off_for_a_ring() -> None:
    assert Maximum(EXPONENTIAL, 72).mean > 2 * 2.034


@pytest.mark.parametrize(
    ("bits", "trials", "expected", "its_error", "mean"), [(3, 4000, 6.70, 0.04, 4.31), (6, 800, 16.53, 0.05, 10.67)]
)
def test_doubling_amplifies_noise(bits: int, trials: int, expected: float, its_error: float, mean: float) -> None:
    noise = drawn(EXPONENTIAL, np.random.default_rng(12))
    left = through(schedule("recursive_doubling", ALL_REDUCE, 2**bits), np.zeros((2**bits, trials)), work=noise)
    last = left.max(axis=0)
    assert last.mean() == pytest.approx(expected, abs=3 * np.hypot(its_error, error(last)))
    assert left.mean() == pytest.approx(mean, rel=0.01)


@pytest.mark.parametrize(("depth", "expected", "its_error"), [(3, 5.25, 0.09), (6, 11.91, 0.11), (10, 21.40, 0.13)])
def test_a_binary_tree_is_a_branching_random_walk(depth: int, expected: float, its_error: float) -> None:
    """Every hop of a perfect binary tree has exponential noise; 21.40 is 2.67835 a level, less its logarithm."""
    levels = [np.arange(2**level - 1, 2 ** (level + 1) - 1) for level in range(depth, 0, -1)]
    climbing = rounds(*(transfer(level, (level - 1) // 2, 1.0) for level in levels))
    noise, trials = drawn(EXPONENTIAL, np.random.default_rng(13)), 400
    root = through(climbing, np.zeros((2 ** (depth + 1) - 1, trials)), latency=noise)[0]
    assert root.mean() == pytest.approx(expected, abs=3 * np.hypot(its_error, error(root)))


def test_switches_that_reduce_take_the_noise_of_the_hosts_once() -> None:
    ranks, trials = 64, 4000
    arrivals = EXPONENTIAL.sample(np.random.default_rng(14), (ranks, trials))
    left = through(schedule("sharp", ALL_REDUCE, ranks), arrivals, latency=0.5).max(axis=0)
    expected = 2 * 0.5 + Maximum(EXPONENTIAL, ranks).mean  # up and down, after the last arrival
    assert left.mean() == pytest.approx(expected, abs=3 * error(left))


def test_an_exchange_waits_for_the_slowest_message() -> None:
    ranks, trials = 12, 4000
    noise = drawn(EXPONENTIAL, np.random.default_rng(15))
    left = through(schedule("direct", ALL_TO_ALL, ranks), np.zeros((ranks, trials)), latency=noise)
    assert left[0].mean() == pytest.approx(Maximum(EXPONENTIAL, ranks - 1).mean, abs=4 * error(left[0]))
    assert left.max(axis=0).mean() == pytest.approx(Maximum(EXPONENTIAL, ranks * (ranks - 1)).mean, rel=0.01)


@given(seed=st.integers(0, 2**32 - 1), group=st.sampled_from([Group(6), Group(8), Group(8, 8), Group(12, 4)]))
def test_more_noise_never_helps(seed: int, group: Group) -> None:
    rng = np.random.default_rng(seed)
    arrivals, work, more = rng.random((3, group.size, 1))
    for name in serving(ALL_REDUCE, group):
        asked = schedule(name, ALL_REDUCE, group.size, group.inner)
        calm, noisy = (through(asked, arrivals, work=noise) for noise in (work, work + more))
        assert np.all(noisy >= calm), name
        assert np.all(through(asked, arrivals) >= arrivals), name


def test_a_reduce_keeps_only_the_root_waiting() -> None:
    arrivals = np.zeros((8, 1))
    arrivals[5] = 9.0
    left = through(schedule("binomial_tree", REDUCE, 8), arrivals)[:, 0]
    assert left[0] == 9.0
    assert left[2] == 0.0


@pytest.mark.data
@pytest.mark.parametrize(("nodes", "trials"), [(4, 4000), (64, 1000), (1024, 200), (16384, 50)])
def test_noise_amplification_on_hdr(data: Path, nodes: int, trials: int) -> None:
    """De Sensi et al. 2022: median of dissemination with network noise over without, 200 Gb/s, 16 B; within 5 %."""
    quantiles = json.loads((data / "stragglers" / "noise_quantiles.json").read_text())
    seen = quantiles["azure_hbv2_ib_hdr200"]["latency_1B"]
    law = Empirical.quantiles(seen["ratio_quantiles"], quantiles["quantile_levels"], seen["max_ratio"])
    noise = drawn(law, np.random.default_rng(16), HDR)
    left = through(schedule("bruck", ALL_GATHER, nodes), np.zeros((nodes, trials)), latency=noise).max(axis=0)
    assert np.median(left) / (np.log2(nodes) * HDR) == pytest.approx(amplification(data, nodes), rel=0.05)


def amplification(data: Path, nodes: int) -> float:
    asked = {"algorithm": "nwaydissemination", "bytes": "16", "system": "Azure", "nodes": str(nodes), "noise": "net"}
    with (data / "stragglers" / "noise_amplification_by_N.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if asked.items() <= row.items() and "200" in row["instance"]]
    (row,) = rows
    return float(row["ratio_median_to_noiseless"])


@pytest.mark.parametrize(
    ("sigma", "ranks", "operations", "expected", "near"),
    [
        (0.05, 64, 8, 1.04216, 1.04146),
        (0.1, 8, 8, 1.05135, 1.05046),
        (0.1, 64, 8, 1.08599, 1.08307),
        (0.1, 64, 64, 1.02981, 1.02937),
        (0.3, 64, 8, 1.28413, 1.25429),
    ],
)
def test_a_barrier_once_a_step(sigma: float, ranks: int, operations: int, expected: float, near: float) -> None:
    """Expected values of sigma 0.1 are right to 0.0001, those of 0.3 to 0.0005."""
    law = Lognormal(sigma)
    found = between_barriers(law, ranks, operations, 1500, np.random.default_rng(17)) / operations
    its_error = 0.0005 if sigma == 0.3 else 0.0001
    assert found.mean() == pytest.approx(expected, abs=3 * np.hypot(its_error, error(found)))
    assert near_barriers(law, ranks, operations) / operations == pytest.approx(near, abs=1.1e-5)


@pytest.mark.parametrize(("sigma", "ranks", "expected"), [(0.05, 64, 1.12321), (0.1, 512, 1.34997), (0.3, 64, 1.94944)])
def test_a_barrier_in_every_operation(sigma: float, ranks: int, expected: float) -> None:
    assert near_barriers(Lognormal(sigma), ranks, 1) == pytest.approx(expected, abs=5.1e-6)
    found = between_barriers(Lognormal(sigma), ranks, 1, 4000, np.random.default_rng(18))
    assert found.mean() == pytest.approx(expected, abs=3 * error(found))


@pytest.mark.parametrize(("sigma", "simulated", "formula"), [(0.05, 1.08175, 1.08158), (0.1, 1.16843, 1.16803)])
def test_tensor_groups_that_wait_in_each_layer(sigma: float, simulated: float, formula: float) -> None:
    """8 ranks wait for each other in each of 80 layers, 64 such groups once."""
    group = Maximum(Lognormal(sigma), 8)
    found = between_barriers(group, 64, 80, 200, np.random.default_rng(19)) / 80
    assert found.mean() == pytest.approx(simulated, abs=4 * error(found))
    assert near_barriers(group, 64, 80) / 80 == pytest.approx(formula, abs=1.1e-5)


@pytest.mark.parametrize(("steps", "expected"), [(1, 1.2591), (4, 1.1175), (16, 1.0587), (64, 1.0294), (500, 1.0105)])
def test_local_sgd(steps: int, expected: float) -> None:
    """64 ranks that synchronise every so many steps (Stich 2019; DiLoCo, Douillard et al. 2023)."""
    assert near_barriers(Lognormal(0.1), 64, steps) / steps == pytest.approx(expected, abs=1.1e-4)


def test_what_stays_with_a_rank_and_what_passes_make_one_barrier_together() -> None:
    assert near_barriers(Lognormal(np.hypot(0.02, 0.05)), 64, 1) == pytest.approx(1.13322, abs=1e-5)


@pytest.mark.parametrize(
    ("grain", "rate", "lasting", "expected"),
    [
        (0.1e-3, 10, 2500e-6, 26.0),
        (0.1e-3, 100, 250e-6, 3.50),
        (0.1e-3, 1000, 25e-6, 1.25),
        (1e-3, 10, 2500e-6, 3.50),
        (1e-3, 100, 250e-6, 1.25),
        (1e-3, 1000, 25e-6, 1.05),
        (10e-3, 10, 2500e-6, 1.25),
        (10e-3, 100, 250e-6, 1.05),
        (10e-3, 1000, 25e-6, 1.027),
        (100e-3, 1000, 25e-6, 1.025),
    ],
)
def test_os_noise_on_many_ranks(grain: float, rate: float, lasting: float, expected: float) -> None:
    """2.5 % of noise on 10,000 ranks costs nothing or a factor of 26 (Ferreira, Bridges and Brightwell 2008)."""
    found = detours(grain, 1 / rate, lasting, 10_000, np.random.default_rng(20))
    assert found == pytest.approx(expected, rel=1.1e-3)


def test_pipelines_wait_for_each_other_once_a_step() -> None:
    assert steps_of(np.array([[1.0, 3.0], [2.0, 1.5]]), 0.5) == pytest.approx([3.5, 2.5])


def test_buckets_hide_who_is_late_early() -> None:
    """Four buckets, a second apart on each replica and a quarter of one under way."""
    ready = np.tile(np.arange(4.0)[:, None], (1, 3))
    early, last = ready.copy(), ready.copy()
    early[0, 1] += 2.0
    last[3, 1] += 2.0
    transfer = np.full(4, 0.25)
    assert [float(bucketed(one, transfer)) for one in (ready, early, last)] == [3.25, 3.25, 5.25]


def test_buckets_that_are_slower_than_their_gradients_queue() -> None:
    ready = np.tile(np.arange(4.0)[:, None, None], (1, 5, 3))
    assert bucketed(ready, np.full(4, 2.0)) == pytest.approx(np.full(5, 8.0))


def test_refuses_times_that_are_none() -> None:
    with pytest.raises(InputError, match="arrivals"):
        through(schedule("ring", ALL_REDUCE, 4), np.array([[0.0], [np.nan], [0.0], [0.0]]))
    with pytest.raises(InputError, match="detours"):
        detours(1e-3, 1e-3, 2e-3, 4, np.random.default_rng(0))
