"""Are the plans of a search those that divide, each once?"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest

from commsim.errors import InputError
from commsim.training.axes import Context, Data, Expert, Pipeline, Tensor
from commsim.training.configs.well_known import model
from commsim.training.pipeline.compiling import MOST
from commsim.training.plan import Plan
from commsim.training.recipe import Recipe
from commsim.training.search.choices import Choices
from commsim.training.search.space import Space, divisors, space
from commsim.training.setting import Setting
from commsim.training.step import course_of
from tests.training.settings import machine

if TYPE_CHECKING:
    from collections.abc import Iterator

Coordinates = tuple[int, ...]


def rows(found: Space) -> list[Coordinates]:
    """The plans as (tensor, context, expert, pipeline, data, virtual, micro-batch), without ZeRO and recomputation."""
    columns = found.tensor, found.context, found.expert, found.pipeline, found.data, found.virtual, found.micro_batch
    return [tuple(map(int, row)) for row in zip(*columns)]


def tried(name: str, gpus: int, options: dict[str, Any]) -> Iterator[Coordinates]:
    """Every plan that a setting takes, of all whole numbers of ranks, chunks and sequences."""
    known, system, recipe = model(name), machine(gpus), Recipe(**options)
    sizes = divisors(gpus)
    for tensor, context, expert, pipeline in itertools.product(sizes, sizes, sizes, sizes):
        data = gpus // (tensor * context * pipeline)
        for virtual in divisors(-(-len(known.layers) // pipeline)) if pipeline > 1 else [1]:
            for micro in divisors(recipe.global_batch):
                asked = tensor, context, expert, pipeline, data, virtual
                if data and _is_taken(known, system, asked, options | {"micro_batch": micro}):
                    yield *asked, micro


def _is_taken(known: Any, system: Any, sizes: Coordinates, options: dict[str, Any]) -> bool:  # noqa: ANN401
    tensor, context, expert, pipeline, data, virtual = sizes
    axes = Tensor(tensor), Context(context), Data(data), Pipeline(pipeline, virtual)
    try:
        plan = Plan(*axes, *((Expert(expert),) if expert > 1 else ()))
        course_of(Setting(known, plan, Recipe(**options), system)).program  # noqa: B018 - compiled, or refused
    except InputError:
        return False
    return True


@pytest.mark.parametrize(
    ("name", "gpus", "options"),
    [
        ("llama3.1-8b", 8, {"global_batch": 12, "sequence": 1024}),
        ("mixtral-8x7b", 6, {"global_batch": 12, "sequence": 96}),
        ("qwen3-8b", 6, {"global_batch": 6, "sequence": 30}),
        ("llama3.1-8b", 8, {"global_batch": 8, "schedule": "zero-bubble"}),
        ("llama3.1-8b", 8, {"global_batch": 8, "schedule": "gpipe"}),
        ("llama3.1-8b", 4, {"global_batch": 4, "schedule": "interleaved"}),
    ],
)
def test_they_are_what_a_setting_takes(name: str, gpus: int, options: dict[str, Any]) -> None:
    """The rules of the search are those of `fitting.misfits`."""
    found = space(model(name), Recipe(**options), gpus, Choices(zero=(1,), recompute=("none",)))
    assert sorted(rows(found)) == sorted(tried(name, gpus, options))


def test_a_module_that_predicts_may_have_a_stage_of_its_own() -> None:
    """DeepSeek-V3 has 61 layers and one such module: 62 stages, not 63."""
    known = model("deepseek-v3")
    found = space(known, Recipe(global_batch=62), 62, Choices(pipeline=(62,)))
    assert {int(stages) for stages in found.pipeline} == {62}
    with pytest.raises(InputError, match="no plan divides"):
        space(known, Recipe(global_batch=63), 63, Choices(pipeline=(63,)))


def test_as_many_micro_batches_as_can_be_compiled() -> None:
    """One stage, one chunk: 2^20 micro-batches are the most, so that twice as many sequences come two at once."""
    most = {batch: space(model("llama3.1-8b"), Recipe(global_batch=batch), 1, Choices()) for batch in (MOST, 2 * MOST)}
    assert [int(found.micro_batch.min()) for found in most.values()] == [1, 2]


def test_each_stands_once_with_each_way_to_shard_and_to_recompute() -> None:
    found = space(model("llama3.1-8b"), Recipe(global_batch=8), 8, Choices())
    whole = list(zip(rows(found), found.zero.tolist(), found.recompute.tolist()))
    assert len(set(whole)) == len(whole)
    shared = found.context * found.data > 1
    assert {int(zero) for zero in found.zero[~shared]} == {1}, "where nobody holds the same, nothing is sharded"
    assert shared.sum() == 12 * len({row for row, many in zip(rows(found), shared) if many})


def test_a_plan_is_what_its_row_says() -> None:
    recipe = Recipe(global_batch=8, overlap_tensor=True)
    found = space(model("mixtral-8x7b"), recipe, 8, Choices())
    for place in range(0, len(found), 41):
        plan = found.plan(place, recipe)
        sizes = plan.tensor, plan.context, plan.expert, plan.pipeline, plan.data, plan.virtual
        assert (*sizes, int(found.micro_batch[place])) == rows(found)[place]
        assert plan.zero == found.zero[place]
        assert "tensor" in {axis.name for axis in plan.axes}, "the recipe has an option for it"
        assert list(plan.axes) == list(Plan.ordered(*plan.axes).axes)


def test_divisors() -> None:
    assert divisors(12) == [1, 2, 3, 4, 6, 12]
    assert divisors(1) == [1]
    assert divisors(16384) == [2**power for power in range(15)]
