"""Is the true reason of a gap the first one, and does what matters most matter most?"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest

import commsim as cs
from commsim.errors import InputError
from commsim.libraries.calibration import Case
from commsim.training.comparing.difference import difference
from commsim.training.comparing.gap import gap
from commsim.training.comparing.reasons import REASONS
from commsim.training.comparing.sensitivity import rest, sensitivity
from commsim.training.estimate import Estimate, links_of

MODEL = cs.model("llama3.1-70b")
MACHINE = cs.load("hgx-h100", nodes=16)
PLAN = cs.Plan(cs.Tensor(8), cs.Data(2), cs.Pipeline(8))


def estimated(plan: cs.Plan = PLAN, machine: cs.System = MACHINE, **recipe: Any) -> Estimate:  # noqa: ANN401
    return cs.estimate(MODEL, plan, machine, **{"global_batch": 128, **recipe})


def reasons(of: Estimate, measured: float) -> list[str]:
    return [one.reason.name for one in gap(of, measured).reasons]


def test_no_gap_no_reason() -> None:
    step = estimated()
    found = gap(step, step.step_time * 1.02)
    assert (found.quiet, found.reasons) == (True, ())


def test_recompute_that_nobody_mentioned() -> None:
    assert reasons(estimated(), estimated(recompute="full").step_time)[0] == "full-recompute"


def test_recompute_that_is_off() -> None:
    assert reasons(estimated(recompute="full"), estimated().step_time)[0] == "no-recompute"


def test_fp8_that_is_off() -> None:
    assert reasons(estimated(precision="fp8"), estimated().step_time)[0] == "bf16"


def test_a_slow_network() -> None:
    step = estimated(cs.Plan(cs.Data(128, zero=3)))
    slow = step.at(Case(faster=tuple((kind, 0.1) for kind in links_of(MACHINE)["network"]))).seconds
    found = {one.reason.name: one for one in gap(step, slow).reasons[:2]}
    assert found["slow-network"].left == pytest.approx(0.1, rel=0.4)
    assert found["slow-network"].share > 0.9


def test_slow_gpus_leave_their_share() -> None:
    step = estimated()
    slow = step.at(Case(faster=(("compute", 0.7), ("memory", 0.7)))).seconds
    found = {one.reason.name: one for one in gap(step, slow).reasons}
    assert found["slow-gpus"].left == pytest.approx(0.7, rel=0.08)


@pytest.mark.parametrize("measured", [0.0, -1.0, math.inf, math.nan])
def test_what_is_no_time(measured: float) -> None:
    with pytest.raises(InputError, match="a time above 0 s"):
        gap(estimated(), measured)


def test_reasons_are_told_apart() -> None:
    assert len({reason.name for reason in REASONS}) == len(REASONS)


def test_elasticities_are_those_of_the_parts() -> None:
    """A step that is compute alone is inversely proportional to it; together they are at most 1."""
    found = {one.figure: one for one in sensitivity(estimated())}
    assert -1 < found["compute"].elasticity < -0.6
    assert -1.001 < sum(one.elasticity for one in found.values()) < 0
    assert all(one.elasticity < 0 for one in found.values())
    assert found["compute"].doubled < estimated().step_time


def test_the_network_matters_where_it_is_used() -> None:
    alone = cs.estimate(MODEL, cs.Plan(cs.Tensor(8)), cs.load("hgx-h100"), global_batch=8)
    assert not [one.figure for one in sensitivity(alone) if "nic" in one.figure]
    slow = cs.load("hgx-h100", nodes=16, nic="200 Gb/s")
    sharded = estimated(cs.Plan(cs.Data(128, zero=3)), slow, sequence=1024)
    assert sensitivity(sharded)[0].figure == "infiniband nic bandwidth"


def test_channels_matter_where_they_limit() -> None:
    """Two H100 nodes gather at what the channels of a ring copy: quicker NICs change nothing, quicker copies do."""
    step = estimated(cs.Plan(cs.Data(16, zero=3)), cs.load("hgx-h100", nodes=2), sequence=4096)
    assert {one.timing.choice(0).limit(0) for one in step.step.said} == {"channels"}
    found = {one.figure: one for one in sensitivity(step)}
    assert "infiniband nic bandwidth" not in found
    assert found["channels"].elasticity < -0.01
    assert found["channels"].doubled < step.step_time
    assert 0 <= rest(found.values()) < 0.05


def test_what_depends_on_nothing_is_the_rest() -> None:
    """A lone GPU has no collectives; what its launches take is nobody's figure."""
    alone = cs.estimate(MODEL, cs.Plan(cs.Data(1)), cs.load("hgx-h100", gpus=1), global_batch=1, sequence=512)
    found = sensitivity(alone)
    assert {one.figure for one in found} == {"compute", "memory"}
    assert rest(found) == pytest.approx(1 + sum(one.elasticity for one in found))
    assert 0 <= rest(found) < 1


def test_a_difference_is_the_sum_of_its_parts() -> None:
    found = difference(estimated(), estimated(recompute="full"))
    ours, theirs = (sum(part[side] for part in found.parts.values()) for side in (0, 1))
    assert ours == pytest.approx(found.first.step_time)
    assert theirs == pytest.approx(found.second.step_time)


def test_changes_alone() -> None:
    other = cs.Plan(cs.Tensor(8), cs.Data(4), cs.Pipeline(4))
    found = difference(estimated(), estimated(other, recompute="full"))
    assert {one.what for one in found.changes} == {"plan", "recompute"}
    told = {one.what: one.seconds for one in found.changes}
    assert told["recompute"] == estimated(recompute="full").step_time
    assert told["plan"] == estimated(other).step_time


def test_what_was_changed_in_a_system_is_a_difference() -> None:
    """Machines of one name are told apart by what was changed in them, the same machine loaded twice by nothing."""
    plan = cs.Plan(cs.Data(128, zero=3))
    slow = cs.load("hgx-h100", nodes=16, nic="200 Gb/s", oversubscription=2.0)
    found = difference(estimated(plan), estimated(plan, slow))
    assert [(one.what, one.first, one.second) for one in found.changes] == [
        (
            "system",
            "128 GPUs of hgx-h100, NICs of 400 Gb/s, oversubscribed 1:1",
            "128 GPUs of hgx-h100, NICs of 200 Gb/s, oversubscribed 2:1",
        )
    ]
    assert found.changes[0].seconds == found.second.step_time > found.first.step_time
    assert difference(estimated(), estimated(machine=cs.load("hgx-h100", nodes=16))).changes == ()


def test_a_library_is_a_difference_unless_it_came_with_the_machine() -> None:
    """NCCL does not run on MI355X: there the machine alone is changed, and its library with it."""
    found = difference(estimated(), estimated(library=cs.Ideal()))
    assert [(one.what, one.first, one.second) for one in found.changes] == [("library", "nccl", "ideal")]
    assert found.changes[0].seconds == found.second.step_time
    found = difference(estimated(), estimated(library=cs.Nccl(collnet=True)))
    assert [(one.first, one.second) for one in found.changes] == [("nccl, collnet off", "nccl, collnet on")]
    found = difference(estimated(), estimated(machine=cs.load("mi355x", nodes=16)))
    assert [(one.what, one.second) for one in found.changes] == [("system", "128 GPUs of mi355x")]
    assert found.changes[0].seconds == found.second.step_time


def test_options_of_axes_are_named() -> None:
    """Two plans of the same sizes differ in their options, and the words say in which."""
    other = cs.Plan(cs.Tensor(8), cs.Data(2, zero=2), cs.Pipeline(8, virtual=2))
    (change,) = difference(estimated(), estimated(other)).changes
    assert change.first == "tensor 8, data 2, pipeline 8, 1 chunk a stage, ZeRO 1"
    assert change.second == "tensor 8, data 2, pipeline 8, 2 chunks a stage, ZeRO 2"


def test_what_cannot_be_changed_alone() -> None:
    small = estimated(cs.Plan(cs.Tensor(8), cs.Pipeline(8)), cs.load("hgx-h100", nodes=8))
    found = difference(estimated(), small)
    assert {one.what: one.seconds for one in found.changes} == {"system": None, "plan": None}
    assert found.ratio == pytest.approx(small.step_time * 64 / (estimated().step_time * 128), rel=1e-9)


def test_two_models_do_not_compare() -> None:
    other = cs.estimate(cs.model("llama3.1-8b"), PLAN, MACHINE, global_batch=128)
    with pytest.raises(InputError, match="steps of two models differ"):
        difference(estimated(), other)


def test_the_same_job() -> None:
    found = difference(estimated(), dataclasses.replace(estimated()))
    assert (found.changes, found.ratio) == ((), 1.0)
