"""Does a search say of each plan what an estimate says of it alone, and does it find the best?"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import commsim as cs
from commsim.errors import InputError
from commsim.training.search.search import search
from commsim.training.search.silent import Silent
from commsim.training.search.table import Table
from commsim.training.search.why import why_slower
from commsim.training.steps import Step
from tests.training.settings import machine

if TYPE_CHECKING:
    from commsim.training.search.job import Job
    from commsim.training.search.search import Search

CASES: dict[str, tuple[str, int, dict[str, Any]]] = {
    "dense": ("llama3.1-8b", 16, {"global_batch": 32}),
    "tied, interleaved": ("llama3.2-1b", 8, {"global_batch": 16, "virtual": (2, 4, 8), "sequence": 2048}),
    "experts": ("mixtral-8x7b", 16, {"global_batch": 16, "imbalance": 1.25, "overlap_tensor": True}),
    "predictors": ("deepseek-v3", 256, {"global_batch": 256, "tensor": 1, "context": (1, 2), "expert": (16, 64)}),
    "waves": ("llama3.1-8b", 8, {"global_batch": 16, "schedule": "gpipe", "overlap_data": False}),
    "split": ("llama3.1-8b", 8, {"global_batch": 16, "schedule": "zero-bubble", "pipeline": (2, 4)}),
    "modules": ("llama3.1-8b", 16, {"global_batch": 32, "recompute": ("layernorm+activation", "mlp", "none")}),
    "unfused": ("gpt3-175b", 64, {"global_batch": 64, "attention": "unfused", "sequence": 2048, "tensor": 8}),
}


@lru_cache(maxsize=16)
def everything(case: str, name: str = "hgx-h100") -> Search:
    """Every plan of a case."""
    model, gpus, options = CASES[case]
    return search(cs.model(model), machine(gpus, name), every=True, **options)


@pytest.mark.parametrize("case", CASES)
def test_each_plan_takes_what_it_takes_alone(case: str) -> None:
    """The law of the search: an estimate is its one-row case; sums in another order differ in the last bits."""
    found = everything(case)
    plans = np.random.default_rng(7).choice(len(found.ranking.space), size=24, replace=False)
    for place in plans.tolist():
        alone = found.estimate(place)
        assert alone.step_time == pytest.approx(found.ranking.seconds[place], rel=1e-12)
        assert alone.memory.total == pytest.approx(found.ranking.memory[place], rel=1e-12)
        assert alone.memory.fits
        assert alone.step.seconds == alone.step_time


def test_the_same_on_a_rack_whose_domains_are_straddled() -> None:
    model, _, options = CASES["dense"]
    options = options | {"global_batch": 96, "tensor": (2, 4), "context": 1, "recompute": "none", "zero": 1}
    found = search(cs.model(model), machine(96, "gb200-nvl72"), every=True, **options)
    for place in range(0, len(found.ranking.space), 9):
        assert found.estimate(place).step_time == pytest.approx(found.ranking.seconds[place], rel=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_what_is_ruled_out_is_not_among_the_best(case: str) -> None:
    """Bounds are no guesses: with them the same plans come first, and the same are on the front."""
    every, few = everything(case), _few(case)
    assert [one.step_time for one in few.top(5)] == [one.step_time for one in every.top(5)]
    assert [(one.step_time, one.memory) for one in few.pareto] == [(one.step_time, one.memory) for one in every.pareto]
    assert len(few.columns["tensor"]) <= len(every.columns["tensor"])


@pytest.mark.parametrize("case", CASES)
def test_no_step_is_shorter_than_its_bound(case: str) -> None:
    """Nor is any as short as it would be if nothing that is said took time."""
    found = everything(case)
    table, silent = Table(found.job, found.ranking.space), Table(_silent(found.job), found.ranking.space)
    for loud, quiet in zip(table.courses, silent.courses, strict=True):
        steps, free = table.steps(loud), silent.steps(quiet)
        assert (steps.bound <= steps.seconds * (1 + 1e-12)).all()
        assert (free.bound <= steps.bound * (1 + 1e-12)).all()
        assert np.array_equal(free.held.total, steps.held.total)


def _silent(job: Job) -> Job:
    return replace(job, library=Silent())


def _few(case: str) -> Search:
    model, gpus, options = CASES[case]
    return search(cs.model(model), machine(gpus), top=5, **options)


def test_the_first_is_the_quickest_and_the_front_falls() -> None:
    found = everything("dense")
    times = [one.step_time for one in found.top(10)]
    assert times == sorted(times)
    assert times[0] == np.nanmin(found.ranking.seconds)
    assert (found.best.why_not_first, all(one.why_not_first for one in found.top(10)[1:])) == ("", True)
    slower = [(one, float(one.why_not_first.split("%")[0])) for one in found.top(10) if one.why_not_first[:1] == "+"]
    assert slower, "each says by how many percent of the first"
    for one, percent in slower:
        assert percent == pytest.approx(100 * (one.step_time / times[0] - 1), abs=0.051)
    memory = [one.memory for one in found.pareto]
    assert memory == sorted(memory, reverse=True)
    assert found.pareto[0] == found.best
    columns = found.columns
    assert {len(column) for column in columns.values()} == {len(found.ranking.space)}
    assert columns["step_time_s"][0] == times[0]


def test_what_is_found_can_be_estimated_from_the_package() -> None:
    found = everything("experts").best
    step = cs.estimate(cs.model("mixtral-8x7b"), found.plan, machine(16), **vars(found.recipe))
    assert (step.step_time, step.memory.total) == pytest.approx((found.step_time, found.memory), rel=1e-12)


def test_rows_for_people_and_programs() -> None:
    frame = cs.to_frame(everything("dense"))
    assert frame.columns.tolist()[:1] + frame.columns.tolist()[-3:] == [
        "plan",
        "step_time_s",
        "memory_bytes",
        "why_not_first",
    ]
    assert len(frame) == 10


def test_choices_are_kept() -> None:
    found = search(
        cs.model("llama3.1-8b"), machine(16), global_batch=32, tensor=2, zero=(1, 3), recompute="full", top=3
    )
    assert {one.plan.tensor for one in found.top(3)} == {2}
    assert {one.plan.zero for one in found.top(3)} <= {1, 3}
    assert {one.recipe.recompute for one in found.top(3)} == {"full"}
    assert str(found).count("\n") == 3


def test_why_names_what_takes_longer() -> None:
    first = Step(10.0, 8.0, 1.0, {"tensor": 0.5}, 0.5)
    other = Step(11.0, 7.5, 2.4, {"tensor": 0.5, "data": 0.1}, 0.5)
    assert why_slower(other, first) == "+10.0%: bubble +1.4 s, exposed data +100 ms, compute -500 ms"
    assert why_slower(Step(10.004, 8.004, 1.0, {"tensor": 0.5}, 0.5), first) == "as fast as the first"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"global_batch": 16, "tensor": 3}, "no plan divides the model, the batch and the machine"),
        ({"global_batch": 16, "zero": 7}, r"search: zero: 7; of 0, 1, 2 and 3 some belong here"),
        ({"global_batch": 16, "tensor": 0}, "search: tensor: 0; a whole number of at least 1 belongs here"),
        ({"global_batch": 16, "tensor": ()}, r"search: tensor: \(\); one number or several belong here"),
        ({}, "global_batch: nothing; the sequences of one step belong here"),
        ({"global_batch": 16, "tenso": 3}, "search: 'tenso'; no such option of a recipe"),
        ({"global_batch": 16, "schedule": "forward"}, "a schedule with backward passes belongs"),
        ({"global_batch": 16, "recompute": "selectiv"}, "did you mean 'selective'"),
        ({"global_batch": 16, "recompute": "moe"}, "recompute: 'moe'; llama3.1-8b has no such module"),
        ({"global_batch": 16, "recompute_layers": 2}, "all layers of a plan are recomputed alike"),
        ({"global_batch": 16, "precision": "nvfp4"}, "80 GB multiplies matrices in"),
        ({"global_batch": 16, "top": 0}, "search: top: 0; a whole number of at least 1 belongs here"),
    ],
)
def test_mistakes(options: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        search(cs.model("llama3.1-8b"), machine(8), **options)


def test_nothing_fits_and_the_nearest_is_named() -> None:
    plan = r"tensor=8 --zero \d --micro-batch 1 --recompute full"
    with pytest.raises(InputError, match=rf"none of [\d,]+ plans fits; the nearest, {plan}, needs \d+ GB of 85"):
        search(cs.model("llama3.1-405b"), machine(8), global_batch=8)


def test_of_equals_the_smallest_comes_first() -> None:
    found = everything("dense")
    alike = replace(found, ranking=found.ranking._replace(seconds=np.ones_like(found.ranking.seconds)))
    assert alike.best.memory == found.ranking.memory.min()


def test_more_than_was_wanted_is_refused() -> None:
    with pytest.raises(InputError, match="search: top: 11; 1 to 10 belong here; search with top=11 for more"):
        everything("dense").top(11)
    with pytest.raises(InputError, match="search: top: 0; 1 to 10 belong here"):
        everything("dense").top(0)


def test_names_in_place_of_values_are_told_what_makes_them() -> None:
    with pytest.raises(InputError, match=r"search: system: 'hgx-h100'; what commsim\.load\(name\) gives belongs here"):
        cs.search(cs.model("llama3.1-8b"), "hgx-h100", global_batch=8)  # type: ignore[arg-type]
