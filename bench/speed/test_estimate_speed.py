"""How long does an estimate take: from nothing, on a machine whose collectives are priced, and of many plans?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from commsim.hardware.catalogue import load
from commsim.training.axes import Data, Expert, Pipeline, Tensor
from commsim.training.configs.well_known import model
from commsim.training.estimate import Estimate, estimate
from commsim.training.layouts import layout
from commsim.training.pipeline.compiling import _compiled
from commsim.training.pipeline.solve import _ends_of_chunks
from commsim.training.plan import Plan
from commsim.training.setting import Setting

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

    from commsim.hardware.system import System

CASES = {
    "8B on 64": ("llama3.1-8b", Plan(Tensor(2), Data(32)), 256),
    "405B on 16,384": ("llama3.1-405b", Plan(Tensor(8), Pipeline(16, virtual=8), Data(128, zero=2)), 2048),
    "DeepSeek-V3 on 2,048": ("deepseek-v3", Plan(Expert(64), Data(128), Pipeline(16)), 15360),
}


def asked(name: str, system: System | None = None) -> Estimate:
    """The estimate of a case, on a machine that is built afresh unless it is given."""
    known, plan, batch = CASES[name]
    plan = Plan(*plan.axes)  # which knows no layouts yet
    return estimate(model(known), plan, system or load("hgx-h100", gpus=plan.gpus), global_batch=batch, sequence=8192)


@pytest.mark.parametrize("name", CASES)
def test_cold(benchmark: BenchmarkFixture, name: str) -> None:
    """Machine, prices, pipeline and step: what a person waits for after the imports."""

    def afresh() -> float:
        _compiled.cache_clear()
        _ends_of_chunks.cache_clear()
        layout.cache_clear()
        return asked(name).step_time

    assert benchmark(afresh) > 0


@pytest.mark.parametrize("name", CASES)
def test_warm(benchmark: BenchmarkFixture, name: str) -> None:
    """The same question again: collectives are priced, the pipeline is solved."""
    system = load("hgx-h100", gpus=CASES[name][1].gpus)
    asked(name, system).step  # noqa: B018 - prices what the others find
    assert benchmark(lambda: asked(name, system).step_time) > 0


@pytest.mark.parametrize("name", CASES)
def test_warm_and_unsolved(benchmark: BenchmarkFixture, name: str) -> None:
    """Another question on the same machine: collectives are priced and the pipeline is compiled, but solved anew."""
    system = load("hgx-h100", gpus=CASES[name][1].gpus)
    asked(name, system).step  # noqa: B018 - prices what the others find

    def anew() -> float:
        _ends_of_chunks.cache_clear()
        return asked(name, system).step_time

    assert benchmark(anew) > 0


@pytest.mark.parametrize("name", CASES)
def test_warm_with_memory(benchmark: BenchmarkFixture, name: str) -> None:
    system = load("hgx-h100", gpus=CASES[name][1].gpus)
    asked(name, system).step  # noqa: B018 - prices what the others find
    assert benchmark(lambda: asked(name, system).memory.total) > 0


@pytest.mark.parametrize("name", CASES)
def test_setting(benchmark: BenchmarkFixture, name: str) -> None:
    """Of which the work of the pieces, and their spreading over chunks."""
    found = asked(name).setting
    benchmark(Setting, found.model, found.plan, found.recipe, found.system)
