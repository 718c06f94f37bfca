"""Do laws agree with themselves, with their draws and with the textbook, and refuse what is none?"""

from __future__ import annotations

from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.errors import InputError
from commsim.stragglers.laws import (
    LAWS,
    Bounded,
    Constant,
    Discrete,
    Empirical,
    Gamma,
    Lognormal,
    Normal,
    Pareto,
    Rare,
    Uniform,
    Weibull,
)
from tests.stragglers.drawn import EXAMPLES, SEQUENCE, SMOOTH

if TYPE_CHECKING:
    from collections.abc import Callable

CHANCES = np.array([1e-12, 1e-5, 0.03, 0.3, 0.5, 0.8, 0.97, 1 - 1e-5])


def test_every_law_is_among_the_examples() -> None:
    assert set(LAWS.values()) <= {type(law) for law in EXAMPLES.values()}


@pytest.mark.parametrize("name", SMOOTH)
def test_chance_and_value_are_inverse(name: str) -> None:
    law = SMOOTH[name]
    assert law.below(law.quantile(CHANCES)) == pytest.approx(CHANCES, rel=1e-8)
    assert law.above(law.exceeded(CHANCES)) == pytest.approx(CHANCES, rel=1e-8)


@pytest.mark.parametrize("name", EXAMPLES)
def test_chances_add_up_to_one(name: str) -> None:
    law, values = EXAMPLES[name], np.linspace(-1.0, 6.0, 57)
    assert law.below(values) + law.above(values) == pytest.approx(np.ones(57), abs=1e-12)


@pytest.mark.parametrize("name", EXAMPLES)
@given(first=st.floats(1e-9, 1 - 1e-9), second=st.floats(1e-9, 1 - 1e-9))
def test_a_larger_chance_is_a_larger_value(name: str, first: float, second: float) -> None:
    low, high = sorted([first, second])
    law = EXAMPLES[name]
    assert law.quantile(low) <= law.quantile(high)
    assert law.support[0] <= law.quantile(low)
    assert law.quantile(high) <= law.support[1]


@pytest.mark.parametrize("name", EXAMPLES)
def test_draws_have_the_mean_and_the_spread_of_the_law(name: str) -> None:
    law, many = EXAMPLES[name], 40_000
    drawn = law.sample(np.random.default_rng(1), many)
    assert drawn.mean() == pytest.approx(law.mean, abs=4 * law.sd / np.sqrt(many) + 1e-12)
    assert np.mean(drawn <= law.mean) == pytest.approx(float(law.below(law.mean)), abs=0.01)


@pytest.mark.parametrize("name", SMOOTH)
def test_draws_follow_the_law(name: str) -> None:
    """Kolmogorov and Smirnov: the chances of the draws lie evenly; 1.95 / sqrt(n) is exceeded once in a thousand."""
    law, many = SMOOTH[name], 4_000
    chances = np.sort(law.below(law.sample(np.random.default_rng(2), many)))
    assert np.abs(chances - np.arange(many) / many).max() < 1.95 / np.sqrt(many)


def test_normal_quantiles_are_the_standard_librarys() -> None:
    chances = [1e-300, 1e-40, 1e-9, 0.01, 0.2, 0.45]
    expected = [NormalDist().inv_cdf(one) for one in chances]
    assert Normal().quantile(chances) == pytest.approx(expected, rel=1e-14)
    assert Normal().exceeded(chances) == pytest.approx([-one for one in expected], rel=1e-14)


def test_gamma_of_a_whole_shape_is_a_sum_of_poisson_chances() -> None:
    """DLMF 8.4.10: Q(4, x) = e^-x (1 + x + x^2/2 + x^3/6)."""
    x = np.array([1e-3, 0.5, 3.0, 4.5, 30.0, 200.0])
    expected = np.exp(-x) * (1 + x + x**2 / 2 + x**3 / 6)
    assert Gamma(4.0, mean=4.0).above(x) == pytest.approx(expected, rel=1e-11)


def test_gamma_of_shape_one_is_exponential_down_to_the_deep_tail() -> None:
    above = np.array([1e-300, 1e-30, 1e-4, 0.4])
    assert Gamma(1.0).exceeded(above) == pytest.approx(Weibull(1.0).exceeded(above), rel=1e-12)


def test_gamma_of_half_a_shape_is_a_squared_normal() -> None:
    chances = np.array([1e-8, 0.1, 0.6, 0.999])
    squares = Normal().exceeded((1 - chances) / 2) ** 2
    assert Gamma(0.5).quantile(chances) == pytest.approx(squares, rel=1e-6)


def test_means_and_spreads_of_the_textbook() -> None:
    assert Pareto(3.0).sd == pytest.approx(0.75**0.5, rel=1e-9)
    assert Lognormal(0.5).sd == pytest.approx(np.sqrt(np.expm1(0.25)), rel=1e-9)
    assert Gamma(25.0).sd == pytest.approx(0.2, rel=1e-9)
    assert Rare(0.1, Constant(2.0)).sd == pytest.approx(0.3, rel=1e-9)
    assert Bounded(Normal(), low=0.0).mean == pytest.approx((2 / np.pi) ** 0.5, rel=1e-9)
    assert Discrete((0.0, 1.0), (0.75, 0.25)).sd == pytest.approx(0.1875**0.5, rel=1e-9)
    assert Uniform(0.0, 12.0).sd == pytest.approx(12**0.5, rel=1e-9)


def test_a_tail_without_a_variance_says_so() -> None:
    assert Pareto(1.9).sd == np.inf
    assert Pareto(1.05).mean == pytest.approx(21.0)


def test_a_measured_run_gives_its_quantiles_back() -> None:
    samples = np.random.default_rng(3).gamma(3.0, size=1001)
    law = Empirical.of(samples)
    assert law.quantile([0.1, 0.5, 0.9]) == pytest.approx(np.quantile(samples, [0.1, 0.5, 0.9]))
    assert law.support == (samples.min(), samples.max())


def test_a_table_that_stops_early_ends_at_the_largest_value() -> None:
    law = Empirical.quantiles((1.0, 2.0), (0.0, 0.5, 0.9, 1.0), largest=9.0)
    assert law.levels == (0.0, 0.5, 1.0)
    assert law.quantile(0.75) == pytest.approx(5.5)


def test_sequence_lengths_have_a_mean_of_about_one() -> None:
    """Normalised micro-batches of a public job (ByteDance StragglerAnalysis, trace SE, first stage, forward)."""
    assert SEQUENCE.mean == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Lognormal(-0.1), "lognormal: sigma: -0.1"),
        (lambda: Lognormal(0.1, mean=0.0), "lognormal: mean: 0.0"),
        (lambda: Normal(float("nan")), "normal: mean: nan"),
        (lambda: Normal(1.0, float("inf")), "normal: sd: inf"),
        (lambda: Pareto(0.9), "pareto: alpha: 0.9; above 1 belongs here, for there is no mean below"),
        (lambda: Pareto(2.0, least=-1.0), "pareto: least: -1.0"),
        (lambda: Weibull(0.0), "weibull: shape: 0.0"),
        (lambda: Gamma(-2.0), "gamma: shape: -2.0"),
        (lambda: Uniform(2.0, 1.0), "the lower bound belongs first"),
        (lambda: Constant(float("inf")), "constant: value: inf"),
        (lambda: Rare(1.5, Constant(1.1)), "rare: chance: 1.5; between 0 and 1"),
        (lambda: Bounded(Constant(3.0), high=2.0), "the law has no value between them"),
        (lambda: Bounded(Normal(), low=1.0, high=-1.0), "the lower bound belongs first"),
        (lambda: Empirical((1.0, 2.0), (0.0, 0.9)), "climb from 0 to 1"),
        (lambda: Empirical((2.0, 1.0), (0.0, 1.0)), "do not fall"),
        (lambda: Empirical((1.0,), (0.0,)), "two at least"),
        (lambda: Discrete((1.0, 2.0), (0.5, 0.6)), "add up to 1"),
        (lambda: Discrete((2.0, 1.0), (0.5, 0.5)), "values that climb"),
        (lambda: Normal().quantile(1.0), "between 0 and 1"),
    ],
)
def test_refuses(make: Callable[[], object], says: str) -> None:
    with pytest.raises(InputError) as refused:
        make()
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)
