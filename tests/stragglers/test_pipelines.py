"""Does noise pass through pipelines as it must? Their exact values stand with the solver's own tests."""

from __future__ import annotations

import numpy as np
import pytest

from commsim.stragglers.laws import Law, Lognormal, Weibull
from commsim.stragglers.propagation import drawn
from commsim.training.pipeline import compiled, makespan


def lengths(law: Law, stages: int, microbatches: int, trials: int) -> np.ndarray:
    durations = drawn(law, np.random.default_rng(41))((1, stages, microbatches, trials))
    return makespan(compiled("forward", stages, microbatches), durations)


@pytest.mark.parametrize(
    ("stages", "microbatches", "expected", "its_error"),
    [(2, 2, 3.5, 0.0), (4, 8, 15.94, 0.02), (8, 24, 48.89, 0.03), (8, 64, 102.65, 0.04), (16, 64, 129.07, 0.04)],
)
def test_forward_pipelines_with_exponential_noise(
    stages: int, microbatches: int, expected: float, its_error: float
) -> None:
    """Last-passage percolation; (sqrt m + sqrt p)^2 is its limit, from above."""
    found = lengths(Weibull(1.0), stages, microbatches, 3000)
    assert found.mean() == pytest.approx(expected, abs=3 * np.hypot(its_error, found.std() / found.size**0.5))
    assert found.mean() < (stages**0.5 + microbatches**0.5) ** 2


@pytest.mark.parametrize(
    ("sigma", "expected"),
    [(0.05, (1.0227, 1.0279, 1.0215)), (0.1, (1.0459, 1.0563, 1.0432)), (0.3, (1.1409, 1.1758, 1.1347))],
)
def test_forward_pipelines_with_lognormal_noise(sigma: float, expected: tuple[float, ...]) -> None:
    for (stages, microbatches), ratio in zip(((4, 8), (8, 24), (8, 64)), expected):
        found = lengths(Lognormal(sigma), stages, microbatches, 2000) / (microbatches + stages - 1)
        error = found.std() / found.size**0.5
        assert found.mean() == pytest.approx(ratio, abs=4 * error), (stages, microbatches)
