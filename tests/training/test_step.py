"""Is a step its pipeline and what comes once, and do its parts add up to it?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from commsim.errors import InputError
from commsim.libraries.ideal import Ideal
from commsim.training.axes import Axis, Context, Data, Expert, Pipeline, Tensor
from commsim.training.links import links
from commsim.training.overlap import CONTENTION
from commsim.training.parameters import parameters
from commsim.training.passes import Machine
from commsim.training.stages import Stages
from commsim.training.step import program_of, step, steps
from tests.training.clock import clockwork
from tests.training.settings import estimated, piece, setting

if TYPE_CHECKING:
    from commsim.training.once import Once
    from commsim.training.setting import Setting
    from commsim.training.steps import Step

LLAMA = "llama3.1-8b"
FORWARD, BACKWARD = 11, 15
"""Kernels of a layer (see test_passes)."""
ENDS = ((1, 1), (3, 4))
"""Kernels of the embedding, and of norm, logits and loss, forward and backward."""


def timed(name: str, *axes: Axis, each: float = 1.0, **recipe: Any) -> Step:  # noqa: ANN401 - the fields of Recipe
    """A step on a machine where a kernel takes a second and a collective `each`, and memory is free."""
    return step(setting(name, *axes, **recipe), clockwork(each))


def run_of(asked: Setting) -> Stages:
    """The passes of all chunks on that machine."""
    run, each = steps(asked, clockwork()).run, asked.chunks.each
    return Stages(each(run.compute), each(run.exposed), each(run.weights))


def rest_of(asked: Setting, each: float = 1.0) -> Once:
    """What comes once a step on that machine."""
    return steps(asked, clockwork(each)).rest


def parts(found: Step) -> float:
    """The sum of the breakdown."""
    return found.compute + found.bubble + sum(found.exposed.values()) + found.optimizer


def test_one_gpu_computes_and_updates() -> None:
    found = timed(LLAMA, global_batch=2)
    assert found.compute == 2 * (32 * (FORWARD + BACKWARD) + sum(map(sum, ENDS)))
    assert (found.bubble, found.exposed) == (0.0, {})
    assert found.seconds == found.compute
    slow = step(setting(LLAMA, global_batch=2), clockwork(memory=1e9))
    assert slow.seconds == found.compute + slow.optimizer > found.compute


def test_a_lone_stage_repeats_one_micro_batch() -> None:
    """Its program has one micro-batch; what it takes is what all of them take one after the other."""
    asked = setting(LLAMA, Data(2), global_batch=16)
    assert program_of(asked).shape.microbatches == 1
    assert (
        timed(LLAMA, Data(2), global_batch=16).seconds
        == timed(LLAMA, Data(2), Pipeline(1), global_batch=16, schedule="gpipe").seconds
    )


def test_a_lone_stage_waits_for_nobody() -> None:
    """Exactly: the sums that the bubble is the difference of are rounded."""
    found = estimated(LLAMA, Tensor(8), Pipeline(1), schedule="gpipe", global_batch=24).step
    assert found.bubble == 0.0


@pytest.mark.parametrize(
    ("data", "bytes_each"),
    [(Data(8, zero=0), 4 + 34), (Data(8, zero=1), 4 + 34 / 8), (Data(8, zero=2), (4 + 34) / 8)],
)
def test_the_optimizer_moves_bytes(data: Data, bytes_each: float) -> None:
    """4 bytes are zeroed; a weight that the rank owns moves 4 + 4 + 12 + 12 + 2.

    Its fp32 gradient is read for the norm and for Adam, master copy and two moments are read and written, and the bf16
    value is written.
    """
    asked = setting(LLAMA, data)
    found = step(asked, clockwork(memory=1.0)).optimizer
    assert found == pytest.approx(bytes_each * parameters(asked.model).total)


def test_1f1b_bubble_of_equal_stages() -> None:
    """(p - 1) times the forward and backward pass of a stage (Narayanan et al. 2021, section 2.2)."""
    found = timed(LLAMA, Pipeline(4), each=0.0, global_batch=8)
    stage, last = 8 * (FORWARD + BACKWARD), sum(ENDS[1])
    assert found.compute == 8 * (stage + last), "the last stage has the loss besides, so most to do"
    assert found.bubble == 3 * stage + sum(ENDS[0])
    assert found.seconds == 8 * (stage + last) + 3 * stage + sum(ENDS[0])


def test_the_bound_is_the_step_where_the_last_stage_has_most_to_do() -> None:
    """It begins after the stages before it and never waits; they take its last gradients, and the first one updates."""
    found = steps(setting(LLAMA, Pipeline(4), global_batch=8), clockwork(0.0, memory=1e9))
    assert found.rest.after[0] > 1
    assert found.bound == pytest.approx(found.seconds, rel=1e-12)


def test_messages_are_exposed_where_stages_wait_for_them() -> None:
    """GPipe, overlapped: p - 1 messages on the way there and p - 1 on the way back."""
    quiet, found = (timed(LLAMA, Pipeline(4), schedule="gpipe", each=each, global_batch=8) for each in (0.0, 2.0))
    assert found.exposed == {"pipeline": 2 * 3 * 2.0}
    assert found.seconds == quiet.seconds + 12


def test_messages_without_overlap_cost_more() -> None:
    free, overlapped, waiting = (
        timed(LLAMA, Pipeline(4), each=each, global_batch=16, overlap_pipeline=overlap).seconds
        for each, overlap in ((0.0, True), (2.0, True), (2.0, False))
    )
    assert free < overlapped < waiting
    assert timed(LLAMA, Pipeline(4), each=2.0, global_batch=16).seconds == waiting, "1F1B, unless said otherwise"


@pytest.mark.parametrize(
    ("axes", "options", "communication"),
    [
        ((Pipeline(4),), {}, "rendezvous"),
        ((Pipeline(4),), {"overlap_pipeline": True}, "asynchronous"),
        ((Pipeline(4),), {"schedule": "zero-bubble"}, "asynchronous"),
        ((Pipeline(4, virtual=2),), {}, "asynchronous"),
        ((Pipeline(4, virtual=2),), {"overlap_pipeline": False}, "blocking"),
    ],
)
def test_communication(axes: tuple[Axis, ...], options: dict[str, Any], communication: str) -> None:
    assert program_of(setting(LLAMA, *axes, **options)).communication == communication


@pytest.mark.parametrize("schedule", ["1f1b", "gpipe", "zero-bubble"])
def test_schedules(schedule: str) -> None:
    found = timed(LLAMA, Pipeline(4), schedule=schedule)
    assert parts(found) == pytest.approx(found.seconds, rel=1e-12)
    assert program_of(setting(LLAMA, Pipeline(4), schedule=schedule)).schedule == schedule


def test_zero_bubble_fills_the_drain_with_gradients_of_weights() -> None:
    """ZB-H1's bubble is (p - 1)(F + B - W), 1F1B's (p - 1)(F + B + W) (Qi et al. 2024, table 2)."""
    usual, filled = (timed(LLAMA, Pipeline(4), schedule=how, each=0.0) for how in ("1f1b", "zero-bubble"))
    weights = 8 * 4
    assert usual.compute == filled.compute
    assert usual.seconds - filled.seconds == pytest.approx(3 * 2 * weights, rel=0.15)


def test_a_schedule_that_cannot_be_cut_so_is_refused() -> None:
    with pytest.raises(InputError, match="this schedule has one chunk a stage; interleaved has several"):
        timed(LLAMA, Pipeline(4, virtual=2), schedule="zero-bubble")
    with pytest.raises(InputError, match="schedule: 'interleave'; no such schedule; did you mean 'interleaved'"):
        timed(LLAMA, Pipeline(4), schedule="interleave")


def test_virtual_stages_divide_the_bubble() -> None:
    """Interleaving divides it by v (Narayanan et al. 2021, section 2.2), but for the loss, which is not divided."""
    one, two, four = (timed(LLAMA, Pipeline(4, virtual=v), each=0.0, schedule=None).bubble for v in (1, 2, 4))
    assert two == pytest.approx(one / 2, rel=0.03)
    assert four == pytest.approx(one / 4, rel=0.06)


def test_stages_count_the_pieces_of_their_chunks() -> None:
    run = run_of(setting(LLAMA, Pipeline(2, virtual=2)))
    assert run.compute[..., 0].tolist() == [
        [8 * FORWARD + 1, 8 * FORWARD, 8 * FORWARD, 8 * FORWARD + 3],
        [8 * BACKWARD + 1, 8 * BACKWARD, 8 * BACKWARD, 8 * BACKWARD + 4],
    ]
    assert run.weights[..., 0].tolist() == [32, 32, 32, 33]
    assert (run.seconds == run.compute).all()


def test_stage_3_of_zero_gathers_ahead_but_for_the_first_piece() -> None:
    """34 pieces gather a second each behind hundreds: the first cannot hide, nor its contention outweigh it."""
    run = run_of(setting(LLAMA, Data(8, zero=3)))
    data = run.exposed[-1, :, 0, 0]
    assert data[0] == pytest.approx(34 * CONTENTION), "more than the second of the first piece"
    few = run_of(setting("llama3.1-8b", Pipeline(16), Data(2, zero=3)))
    assert few.exposed[-1, 0, 1, 0] == 1.0, "the first of two gathers cannot hide"


def test_gradients_hide_behind_the_last_backward_pass() -> None:
    asked = setting(LLAMA, Data(8, zero=0))
    rest = rest_of(asked)
    assert rest.before.tolist() == [0.0]
    assert rest.data.tolist() == [[pytest.approx(34 * CONTENTION)]]
    exposed = setting(LLAMA, Data(8, zero=0), overlap_data=False)
    assert rest_of(exposed).data.tolist() == [[34.0]]
    alone = rest_of(setting(LLAMA, Data(2, zero=0), Pipeline(32))).data
    assert alone[1:-1, 0].tolist() == [1.0] * 30, "behind what is the last gradient of a lone layer to hide?"


def test_weights_are_gathered_before_the_first_stage_begins() -> None:
    """Each stage gathers its own, but only the first one's are waited for."""
    asked = setting(LLAMA, Data(8), Pipeline(2), overlap_data=False)
    rest = rest_of(asked)
    assert rest.before.tolist() == [17.0], "16 layers and the embedding"
    assert rest.data.tolist() == [[17.0], [17.0]]


def test_tied_embeddings_are_summed_after_everything() -> None:
    tied, apart = timed("llama3.2-1b", Pipeline(2), each=0.0), timed("llama3.2-1b", Pipeline(2), each=4.0)
    assert rest_of(setting("llama3.2-1b", Pipeline(2)), 4.0).ends.tolist() == [[0.0], [4.0]]
    assert apart.seconds > tied.seconds
    assert parts(apart) == pytest.approx(apart.seconds), "what the ends say is the pipeline's"
    assert ("all_reduce", "step") in {(one.traffic.op.name, one.traffic.when) for one in apart.said}


def test_links_inside_a_domain_are_timed_apart() -> None:
    """16 stages of 2 ranks on 4 boxes of 8: every fourth link leaves the box."""
    asked = setting(LLAMA, Tensor(2), Pipeline(16))
    _, seconds = links(asked, clockwork())
    assert seconds.tolist() == [[1.0]] * 16
    clock = clockwork()
    _, both = links(asked, Machine(clock.kernels, Ideal(), clock.case))
    real = both[:, 0]
    slow = real == real.max()
    assert slow.tolist() == [False, False, False, True] * 4
    assert (real[~slow] == real[0]).all()
    assert real[0] < real[3] / 5, "NVLink against a NIC"


def test_all_links_alike_are_timed_once() -> None:
    clock = clockwork()
    for axes in ((Tensor(8), Pipeline(4)), (Pipeline(4), Tensor(2))):
        said, seconds = links(setting(LLAMA, *axes), Machine(clock.kernels, Ideal(), clock.case))
        assert np.ptp(seconds) == 0.0
        assert [one.seconds for one in said] == seconds[0].tolist()


def test_without_a_pipeline_nothing_is_sent() -> None:
    said, seconds = links(setting(LLAMA, Tensor(2)), clockwork())
    assert (said, seconds.tolist()) == ((), [[0.0]])


@pytest.mark.parametrize(
    "axes",
    [
        (Tensor(4), Pipeline(4), Data(2)),
        (Tensor(2), Context(2), Data(4, zero=3)),
        (Data(8, zero=0), Pipeline(4, virtual=2)),
        (Pipeline(2), Data(8, zero=2, shard=2), Tensor(2)),
    ],
)
@pytest.mark.parametrize("each", [0.0, 0.5, 40.0])
def test_the_parts_are_the_step(axes: tuple[Axis, ...], each: float) -> None:
    found = timed(LLAMA, *axes, each=each)
    assert parts(found) == pytest.approx(found.seconds, rel=1e-12)
    assert found.bubble >= 0
    assert all(seconds > 0 for seconds in found.exposed.values())


def test_everything_said_is_told() -> None:
    found = timed("mixtral-8x7b", Tensor(2), Expert(4), Data(4), Pipeline(2))
    assert {one.traffic.axis for one in found.said} == {"tensor", "expert", "pipeline", "data"}
    assert {one.kind for one in found.said} == {"full-moe", "embedding", "head", ""}


def test_imbalance_slows_the_layer() -> None:
    """The kernel clock does not count rows, so only the work shows it: twice the FLOPs of experts."""
    even, skewed = (setting("mixtral-8x7b", Expert(8), Data(8), imbalance=value) for value in (1.0, 2.0))
    flops = [
        sum(float(one.flops) for one in piece(asked, "full-moe").work.operations if one.split == "experts")
        for asked in (even, skewed)
    ]
    assert flops[1] == 2 * flops[0]
