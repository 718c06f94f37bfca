"""Which layers, and what else, does each chunk of a pipeline hold?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.errors import InputError
from commsim.training.axes import Data, Expert, Pipeline, Tensor
from commsim.training.chunks import spread
from commsim.training.parameters import parameters
from tests.training.settings import piece, setting

if TYPE_CHECKING:
    from commsim.training.setting import Setting

STAGES = st.integers(1, 24)


def held(asked: Setting, name: str) -> list[int]:
    """How many pieces of that name each chunk has."""
    chunks = asked.chunks
    counts = [column for one, column in zip(chunks.pieces, chunks.counts.T) if one.name == name]
    return list(map(int, np.sum(counts, axis=0)))


@given(st.integers(1, 200), STAGES, st.integers(1, 4))
def test_layers_are_spread_or_refused(layers: int, stages: int, virtual: int) -> None:
    """Every layer stands once, chunks differ by one layer at most, no stage is empty."""
    axis = Pipeline(stages, virtual if stages > 1 else 1)
    if layers < axis.chunks - 2 or (layers < axis.chunks and axis.virtual == 1):
        with pytest.raises(InputError, match="without a layer"):
            spread(layers, axis)
        return
    sizes, assumption = spread(layers, axis)
    assert sizes.sum() == layers
    assert sizes.max() - sizes.min() <= 1
    assert sizes.reshape(axis.virtual, stages).sum(axis=0).min() >= 1
    assert bool(assumption) == (layers % axis.chunks > 0)


def test_llama_405b_gives_the_ends_a_slot() -> None:
    """126 layers on 16 stages of 8 chunks: the first has the embedding alone, the last the loss (Llama 3, 3.3.2)."""
    sizes, assumption = spread(126, Pipeline(16, virtual=8))
    assert sizes.tolist() == [0, *[1] * 126, 0]
    assert assumption == "the embedding and the loss take the slot of a layer each (126 + 2 in 128 chunks)"


@pytest.mark.parametrize("virtual", [2, 4])
def test_llama_405b_in_fewer_chunks(virtual: int) -> None:
    sizes, _ = spread(126, Pipeline(16, virtual=virtual))
    assert sizes.tolist() == [8 // virtual - 1, *[8 // virtual] * (16 * virtual - 2), 8 // virtual - 1]


@pytest.mark.parametrize(
    ("axis", "expected"),
    [
        (Pipeline(4), [16, 16, 16, 13]),
        (Pipeline(8), [*[8] * 7, 5]),
        (Pipeline(16), [*[4] * 15, 1]),
        (Pipeline(4, virtual=4), [*[4] * 15, 1]),
        (Pipeline(8, virtual=4), [1, *[2] * 30, 0]),
        (Pipeline(1), [61]),
    ],
)
def test_predictors_take_the_places_of_layers_in_the_last_chunk(axis: Pipeline, expected: list[int]) -> None:
    """The layouts of DeepSeek-V3 in Megatron-Bridge's recipes."""
    sizes, assumption = spread(61, axis, 1)
    assert sizes.tolist() == expected
    assert ("predicts more tokens" in assumption) == (axis.size > 1)


def test_a_last_chunk_may_hold_predictors_alone() -> None:
    assert spread(62, Pipeline(63), 1)[0].tolist() == [*[1] * 62, 0]
    with pytest.raises(InputError, match="without a layer"):
        spread(62, Pipeline(63))


def test_61_layers_on_16_stages() -> None:
    sizes, assumption = spread(61, Pipeline(16))
    assert sizes.tolist() == [3, *[4] * 13, 3, 3]
    assert assumption == "61 layers do not divide into 16 chunks: those at the ends have one less"


def test_layers_as_given() -> None:
    sizes, assumption = spread(61, Pipeline(4, layers=(14, 16, 17, 14)))
    assert (sizes.tolist(), assumption) == ([14, 16, 17, 14], "")


@pytest.mark.parametrize(
    ("layers", "axis", "line"),
    [
        (10, Pipeline(12), "plan: pipeline: '12 stages'; stage 0 would be without a layer: the model has 10"),
        (3, Pipeline(8), "plan: pipeline: '8 stages'; stage 0 would be without a layer: the model has 3"),
        (126, Pipeline(16, 16), "plan: virtual stages: '16 stages x 16 chunks'; chunks would be without a layer"),
        (8, Pipeline(2, layers=(8, 0)), "plan: pipeline: '2 stages'; stage 1 would be without a layer"),
        (8, Pipeline(2, layers=(4, 5)), "plan: pipeline: layers: (4, 5); the 8 layers of the model belong here, not 9"),
    ],
)
def test_refused(layers: int, axis: Pipeline, line: str) -> None:
    with pytest.raises(InputError) as error:
        spread(layers, axis)
    assert str(error.value).startswith(line)


def test_the_ends_stand_at_the_ends() -> None:
    asked = setting("llama3.1-8b", Pipeline(4, virtual=2))
    assert held(asked, "embedding") == [1, *[0] * 7]
    assert held(asked, "head") == [*[0] * 7, 1]
    assert held(asked, "full-dense") == [4] * 8


def test_prediction_modules_stand_in_the_last_chunk() -> None:
    """DeepSeek-V3: 3 dense layers and 58 of experts, and one more layer of experts in its prediction module.

    Megatron-Bridge's recipe for 16 stages has 4 layers in each but the last, which has 1, the module and the loss.
    """
    asked = setting("deepseek-v3", Expert(8), Data(8), Pipeline(16))
    assert held(asked, "latent-dense") == [3, *[0] * 15]
    assert held(asked, "latent-moe") == [1, *[4] * 14, 2]
    assert held(asked, "predictors") == [*[0] * 15, 1]


def test_prediction_modules_have_the_parameters_that_they_should() -> None:
    """The weights of all pieces are the model's, and a copy of the embedding for the prediction module."""
    asked = setting("deepseek-v3", Data(1), Pipeline(8))
    works = [one.work for one in asked.chunks.pieces]
    each = np.array([float(work.weights + work.expert_weights) for work in works])
    model = parameters(asked.model)
    assert (asked.chunks.counts @ each).sum() == pytest.approx(model.trained + model.embedding, rel=1e-9)


def test_recompute_layers_are_shared_by_the_chunks_of_a_stage() -> None:
    """Three of the eight layers of each stage: two of its first chunk, one of its second."""
    asked = setting("llama3.1-8b", Pipeline(4, virtual=2), recompute="full", recompute_layers=3)
    again = next(i for i, one in enumerate(asked.chunks.pieces) if one.recomputed)
    assert asked.chunks.counts[:, again].tolist() == [2, 2, 2, 2, 1, 1, 1, 1]
    assert held(asked, "full-dense") == [4] * 8


def test_uneven_stages_recompute_what_they_have() -> None:
    asked = setting("deepseek-v3", Expert(8), Data(8), Pipeline(16), recompute="full", recompute_layers=4)
    pieces = zip(asked.chunks.pieces, asked.chunks.counts.T)
    again = sum(column for one, column in pieces if one.recomputed and one.name != "head")
    assert np.asarray(again).tolist() == [*[4] * 15, 1], "not the layer of the prediction module"


def test_more_layers_than_a_stage_has_are_not_recomputed() -> None:
    with pytest.raises(InputError, match="recompute-layers: 9; at most the 8 layers of a stage belong here"):
        setting("llama3.1-8b", Pipeline(4), recompute="full", recompute_layers=9)


def test_nothing_recomputed_is_one_kind_of_piece() -> None:
    names = [one.name for one in setting("llama3.1-8b", Tensor(2), recompute="full").chunks.pieces]
    assert names == ["full-dense", "embedding", "head"]
    assert not piece(setting("llama3.1-8b", Tensor(2), recompute="full", recompute_layers=0), "full-dense").recomputed
