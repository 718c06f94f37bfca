"""How many plans a second are estimated in full, and how long does a search take from nothing?

Calculon estimates 469 plans a second on the machine on which these are 60,000 to 75,000.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from commsim.hardware.catalogue import load
from commsim.libraries.nccl import Nccl
from commsim.training.configs.well_known import model
from commsim.training.recipe import Recipe
from commsim.training.search.choices import Choices
from commsim.training.search.job import Job
from commsim.training.search.search import search
from commsim.training.search.space import space
from commsim.training.search.table import Table

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

JOBS = {
    "70B on 1,024": ("llama3.1-70b", 1024, 1024),
    "405B on 16,384": ("llama3.1-405b", 16384, 2048),
}
MOST = 64
"""Micro-batches of a step."""


@pytest.mark.parametrize("name", JOBS)
def test_plans_a_second(benchmark: BenchmarkFixture, name: str) -> None:
    """Every plan of up to 64 micro-batches with its step time and its memory, once its terms are priced."""
    known, gpus, batch = JOBS[name]
    job = Job(model(known), load("hgx-h100", gpus=gpus), Nccl(), Recipe(global_batch=batch), Choices())
    plans = space(job.model, job.recipe, gpus, job.choices)
    few = np.flatnonzero(batch // (plans.data * plans.micro_batch) <= MOST)
    table = Table(job, plans.of(few))

    def estimated() -> int:
        steps = [table.steps(alike) for alike in table.courses]
        return sum(len(one.seconds) for one in steps if one.held.total.all())

    count = estimated()  # prices the terms, compiles the programs
    benchmark(estimated)
    benchmark.extra_info["plans"] = count
    if benchmark.stats:  # a run that is not timed has no rate
        benchmark.extra_info["plans a second"] = count / benchmark.stats.stats.min


@pytest.mark.parametrize("name", JOBS)
def test_cold_search(benchmark: BenchmarkFixture, name: str) -> None:
    """The ten best plans on a machine that is built afresh, prices and programs included."""
    known, gpus, batch = JOBS[name]

    def afresh() -> float:
        return search(model(known), load("hgx-h100", gpus=gpus), global_batch=batch).best.step_time

    assert benchmark(afresh) > 0


@pytest.mark.parametrize("name", JOBS)
def test_space(benchmark: BenchmarkFixture, name: str) -> None:
    """Every plan that divides, as columns."""
    known, gpus, batch = JOBS[name]
    assert len(benchmark(space, model(known), Recipe(global_batch=batch), gpus, Choices()))
