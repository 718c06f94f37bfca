"""Are maxima exact, by the tables and by direct draws?"""

from __future__ import annotations

import json
import re
from math import comb, pi, sqrt
from typing import TYPE_CHECKING

import numpy as np
import pytest

from commsim.errors import InputError
from commsim.stragglers.laws import Constant, Gamma, Law, Lognormal, Normal, Pareto, Rare, Uniform, Weibull
from commsim.stragglers.maxima import Maximum, domain, hit_at_all, one_by_one
from tests.stragglers.drawn import EXAMPLES, SEQUENCE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FAMILIES: dict[str, Callable[[float], Law]] = {
    "exp": Weibull,
    "normal": lambda _: Normal(),
    "uniform": lambda _: Uniform(),
    "lognormal": Lognormal,
    "pareto": Pareto,
    "weibull": Weibull,
    "gamma": Gamma,
}


@pytest.mark.data
def test_the_table_of_exact_maxima(data: Path) -> None:
    """16 laws and 15 numbers of draws, computed elsewhere by another quadrature."""
    table = json.loads((data / "stragglers" / "emax_oracles.json").read_text())
    for name, rows in table.items():
        family, parameter = name.split("(")[0], float((re.findall(r"=([\d.]+)", name) or ["1"])[0])
        law = FAMILIES[family](parameter)
        for draws, expected in rows.items():
            largest = Maximum(law, int(draws))
            found = {"mean": largest.mean, "sd": largest.sd}
            found |= {f"p{level}": float(largest.quantile(level / 100)) for level in (50, 90, 99)}
            assert found == pytest.approx(expected, rel=1e-5), (name, draws)


@pytest.mark.parametrize(
    ("law", "expected"),
    [
        (Weibull(1.0), (2.717857, 4.860810, 6.934191, 10.281307)),  # harmonic numbers
        (Normal(), (1.423600, 2.387850, 3.079460, 3.971350)),
        (Lognormal(0.1), (1.14940, 1.26464, 1.35476, 1.48079)),
        (Lognormal(1.0), (3.08385, 7.37032, 14.20582, 33.76836)),
        (Pareto(3.0), (2.745827, 5.642051, 11.268889, 34.392685)),
        (Weibull(0.5), (4.45708, 12.62931, 24.86310, 53.67507)),
        (Gamma(25.0), (1.30213, 1.54228, 1.73216, 1.99885)),
        (Rare(0.005, Constant(1.10)), (1.00393, 1.03030, 1.09443, 1.10000)),
    ],
)
def test_the_slowest_of_8_72_576_and_16384(law: Law, expected: tuple[float, ...]) -> None:
    found = [Maximum(law, ranks).mean for ranks in (8, 72, 576, 16384)]
    assert found == pytest.approx(expected, abs=5.1e-6)


@pytest.mark.parametrize(
    ("law", "kept", "started", "expected"),
    [
        (Weibull(1.0), 96, 100, 3.104044),  # H_n - H_(n - k)
        (Weibull(1.0), 98, 100, 3.687378),
        (Lognormal(0.1), 98, 100, 1.20922),
        (Lognormal(0.1), 90, 100, 1.12760),
        (Lognormal(0.1), 64, 68, 1.15587),
        (Lognormal(0.3), 96, 100, 1.58926),
        (Lognormal(1.0), 90, 100, 2.1461),
    ],
)
def test_those_that_are_not_waited_for(law: Law, kept: int, started: int, expected: float) -> None:
    digits = len(str(expected).partition(".")[2])
    assert Maximum(law, started, started - kept).mean == pytest.approx(expected, abs=0.51 * 10.0**-digits)


def test_the_spread_comes_near_to_gumbels() -> None:
    assert Maximum(Weibull(1.0), 10**6).sd == pytest.approx(pi / sqrt(6), rel=1e-5)


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize(("of", "spared"), [(1, 0), (7, 0), (5000, 0), (12, 3)])
def test_direct_draws_meet_the_exact_integral(name: str, of: int, spared: int) -> None:
    largest, many = Maximum(EXAMPLES[name], of, spared), 3_000
    drawn = largest.sample(np.random.default_rng(5), many)
    assert drawn.mean() == pytest.approx(largest.mean, abs=4 * largest.sd / sqrt(many) + 1e-12)


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_draw_made_meets_it_too(name: str) -> None:
    largest, many = Maximum(EXAMPLES[name], 200), 1_000
    drawn = one_by_one(EXAMPLES[name], 200, np.random.default_rng(6), many)
    assert drawn.shape == (many,)
    assert drawn.mean() == pytest.approx(largest.mean, abs=4 * largest.sd / sqrt(many) + 1e-12)


@pytest.mark.parametrize("name", EXAMPLES)
def test_more_ranks_never_help_and_one_is_the_law_itself(name: str) -> None:
    law = EXAMPLES[name]
    means = [Maximum(law, ranks).mean for ranks in (1, 2, 8, 100, 10_000)]
    assert means[0] == pytest.approx(law.mean, rel=1e-6)
    assert np.all(np.diff(means) >= -1e-12)


def test_a_maximum_of_maxima_is_the_maximum_of_all() -> None:
    nested, flat = Maximum(Maximum(SEQUENCE, 8), 16), Maximum(SEQUENCE, 128)
    assert nested.mean == pytest.approx(flat.mean, rel=1e-9)
    assert nested.sd == pytest.approx(flat.sd, rel=1e-7)


def test_one_draw_deep_in_the_tail() -> None:
    """Among 1e9 exponential waits the longest is beyond what a chance below alone, a double, could tell."""
    largest = Maximum(Weibull(1.0), 10**9)
    assert float(largest.exceeded(1e-12)) == pytest.approx(np.log(1e9) - np.log(-np.log1p(-1e-12)), rel=1e-9)


def test_the_chance_of_k_of_n_is_a_binomial_sum() -> None:
    of, spared, chance = 9, 2, 0.8
    expected = sum(comb(of, i) * (1 - chance) ** i * chance ** (of - i) for i in range(spared + 1))
    assert float(Maximum(Uniform(), of, spared).below(chance)) == pytest.approx(expected, rel=1e-12)


def test_hit_at_all() -> None:
    """Dean and Barroso 2013, "The tail at scale": 63 % and almost one in five."""
    assert hit_at_all(0.01, 100) == pytest.approx(0.63397, abs=5e-6)
    assert hit_at_all(1e-4, 2000) == pytest.approx(0.18128, abs=5e-6)
    assert hit_at_all(1.0, 3) == 1.0


def test_domains() -> None:
    names = [domain(law) for law in (Lognormal(0.1), Pareto(3.0), Uniform(), SEQUENCE, Constant(2.0))]
    assert names == ["Gumbel", "Frechet", "Weibull", "Weibull", "constant"]


@pytest.mark.parametrize(("of", "spared"), [(0, 0), (-3, 0), (2.5, 0), (4, 4), (4, -1)])
def test_refuses_numbers_that_leave_nobody(of: int, spared: int) -> None:
    with pytest.raises(InputError, match="maximum: "):
        Maximum(Normal(), of, spared)
