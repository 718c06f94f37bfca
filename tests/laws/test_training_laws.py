"""Does every plan obey the laws of training, whatever its axes, their order, the model and the recipe?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from commsim.libraries.calibration import Case as MachineCase
from commsim.libraries.ideal import Ideal
from commsim.training.axes import Data
from commsim.training.estimate import Estimate
from commsim.training.plan import Plan
from commsim.training.step import step
from commsim.training.work import model_flops
from tests.training.clock import clockwork
from tests.training.drawn import Case, cases, fits

if TYPE_CHECKING:
    from commsim.training.setting import Setting
    from commsim.training.steps import Step

FEW = settings(max_examples=25)
NOISE = 1 + 1e-9


def counted(asked: Setting) -> float:
    """FLOPs of all ranks together in the forward pass of a step, as far as they count as the model's."""
    flops = [sum(float(one.flops) for one in piece.work.operations if one.counted) for piece in asked.chunks.pieces]
    ranks = asked.plan.tensor * asked.plan.context * asked.plan.data
    return float((asked.chunks.counts @ np.array(flops)).sum()) * ranks * asked.microbatches


@given(cases())
def test_all_ranks_together_compute_the_model(case: Case) -> None:
    """Before padding, replication and recompute, whatever the order and the split."""
    asked = case.setting()
    assume(all(block.mixer is None or block.mixer.kv_heads >= case.plan.tensor for block in asked.model.blocks))
    expected = model_flops(asked.model, float(asked.recipe.sequence)) / 3 * asked.tokens_per_step
    assert counted(asked) == pytest.approx(float(expected), rel=1e-9)


@FEW
@given(cases())
def test_the_parts_of_a_step_are_the_step(case: Case) -> None:
    found = case.estimate().step
    parts = [found.compute, found.bubble, *found.exposed.values(), found.optimizer]
    assert sum(parts) == pytest.approx(found.seconds, rel=1e-9)
    assert min(parts) >= 0
    assert found.compute > 0 < found.optimizer


@FEW
@given(cases())
def test_every_plan_that_fits_divides(case: Case) -> None:
    asked = case.setting()
    plan, recipe = case.plan, asked.recipe
    assert plan.gpus == asked.system.gpus
    assert asked.microbatches * recipe.micro_batch * plan.data == recipe.global_batch
    assert recipe.sequence % (plan.context * plan.tensor) == 0
    assert all(block.mixer is None or block.mixer.heads % plan.tensor == 0 for block in asked.model.blocks)
    assert all(block.experts is None or block.experts.count % plan.expert == 0 for block in asked.model.blocks)
    layers = [
        column for piece, column in zip(asked.chunks.pieces, asked.chunks.counts.T) if piece.name in asked.model.kinds
    ]
    predicted = len(asked.model.mtp) * asked.model.mtp_depth
    assert int(np.sum(layers)) == len(asked.model.layers) + predicted


def steady(case: Case, each: float) -> Step:
    """A step on a machine where every kernel takes a second and every collective `each`."""
    return step(case.setting(), clockwork(each))


@given(cases(), st.floats(0, 30), st.floats(0, 30))
def test_slower_traffic_never_shortens_a_step(case: Case, each: float, more: float) -> None:
    assert steady(case, each + more).seconds * NOISE >= steady(case, each).seconds


@given(cases(), st.randoms())
def test_order_changes_only_communication(case: Case, random: object) -> None:
    """Where all collectives take the same time the order of axes changes nothing at all, and memory never."""
    axes = list(case.plan.axes)
    random.shuffle(axes)  # type: ignore[attr-defined]
    other = Case(case.model, Plan(*axes), case.recipe)
    assume(fits(other))
    one, two = steady(case, 1.0), steady(other, 1.0)
    assert (one.seconds, one.compute, one.bubble) == (two.seconds, two.compute, two.bubble)
    assert case.estimate().memory == other.estimate().memory


@FEW
@given(cases(), st.sampled_from(["compute", "memory", "nvlink*", "* nic", "*"]))
def test_a_faster_machine_never_takes_longer(case: Case, kind: str) -> None:
    found = case.estimate()
    faster = found.at(MachineCase(faster=((kind, 2.0),)))
    assert faster.seconds <= found.step_time * NOISE


@FEW
@given(cases())
def test_no_library_is_quicker_than_the_wire(case: Case) -> None:
    found = case.estimate()
    assert Estimate(found.setting, Ideal()).step_time <= found.step_time * NOISE


@FEW
@given(cases())
def test_twice_the_batch_takes_at_most_twice_as_long(case: Case) -> None:
    """And at least as long as the busiest stage computes and waits for its own collectives."""
    once, twice = case.estimate().step, case.but(global_batch=2 * dict(case.recipe)["global_batch"]).estimate().step
    assert once.seconds <= twice.seconds * NOISE
    assert twice.seconds <= 2 * once.seconds * NOISE
    assert twice.compute == pytest.approx(2 * once.compute, rel=0.02), "of the slowest stage, which may be another"
    assert twice.seconds >= 2 * once.compute


@FEW
@given(cases(), st.sampled_from(["selective", "full"]))
def test_recomputation_trades_time_for_memory(case: Case, recompute: str) -> None:
    plain, again = case.but(recompute="none").estimate(), case.but(recompute=recompute).estimate()
    assert again.step_time * NOISE >= plain.step_time
    assert again.memory.activations <= plain.memory.activations * NOISE
    assert again.model_flops_per_gpu == plain.model_flops_per_gpu


@FEW
@given(cases())
def test_gpipe_holds_at_least_what_1f1b_holds(case: Case) -> None:
    assume(case.plan.virtual == 1)
    held = {how: case.but(schedule=how).estimate().memory.activations for how in ("1f1b", "gpipe")}
    assert held["gpipe"] >= held["1f1b"]
    if case.setting().microbatches > case.plan.pipeline > 1:
        assert held["gpipe"] > held["1f1b"]


@FEW
@given(cases(), st.floats(1, 4))
def test_imbalance_never_helps(case: Case, imbalance: float) -> None:
    assume(case.plan.expert > 1)
    even, skewed = case.estimate(), case.but(imbalance=imbalance).estimate()
    assert skewed.step_time * NOISE >= even.step_time
    assert skewed.memory.total * NOISE >= even.memory.total


@FEW
@given(cases())
def test_zero_holds_less_from_stage_to_stage(case: Case) -> None:
    """Weights, gradients and optimizer state together; buffers come on top."""
    data = case.plan.axis(Data)
    held = []
    for zero in range(4):
        plan = case.plan.changed(replace(data, zero=zero, shard=None))
        memory = Case(case.model, plan, case.recipe).estimate().memory
        held.append(memory.weights + memory.gradients + memory.optimizer)
    assert held == sorted(held, reverse=True)
