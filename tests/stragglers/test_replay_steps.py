"""Do replays of steps find what was slow, and give the figures that ByteDance published for its traces?"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.errors import InputError
from commsim.measurement.traces import npz
from commsim.measurement.traces.steps import BACKWARD, CLIP, FORWARD, GATHER, RECEIVES, SCATTER, SENDS, SEPARATE, Turn
from commsim.stragglers.replay.passes import alike
from commsim.stragglers.replay.result import COMMUNICATION, LAST_STAGE, NO_CAUSE, ONE_WORKER, PAUSES, SEQUENCES, UNKNOWN
from commsim.stragglers.replay.steps import replay_steps
from commsim.training.pipeline import compiled, makespan
from tests.stragglers.traced import MICROBATCHES, SHAPE, STAGES, STEPS, even, messages, trace

if TYPE_CHECKING:
    from pathlib import Path

DIGITS = 5e-5
"""Four digits."""


@pytest.mark.data
@pytest.mark.parametrize(("name", "cause"), [("AR", ONE_WORKER), ("ST", LAST_STAGE)])
def test_published_figures(data: Path, name: str, cause: str) -> None:
    """StragglerAnalysis (OSDI 2025) publishes them beside its traces."""
    told = json.loads((data / "stragglers/bytedance_expected.json").read_text())[name]
    found = replay_steps(npz.read(data / f"stragglers/bytedance_opdur_{name}.npz"))
    assert found.actual == pytest.approx(told["T_s"], rel=DIGITS)
    assert found.ideal == pytest.approx(told["T_ideal_s"], rel=DIGITS)
    assert found.slowdown == pytest.approx(told["S"], rel=DIGITS)
    assert found.measured == pytest.approx(told["T_actual_s"], rel=DIGITS)
    assert found.by_stage == pytest.approx({int(key): one for key, one in told["S_stage"].items()}, rel=DIGITS)
    assert found.by_rank == pytest.approx({int(key): one for key, one in told["S_dp"].items()}, rel=DIGITS)
    assert found.by_op == pytest.approx(told["S_optype"], rel=DIGITS)
    assert found.shares["M_S"] == pytest.approx(told["M_S"], abs=DIGITS)
    assert found.shares["M_W"] == pytest.approx(told["M_W"], abs=DIGITS)
    assert found.finding.cause == cause


@pytest.mark.data
def test_the_slowed_worker_is_named(data: Path) -> None:
    found = replay_steps(npz.read(data / "stragglers/bytedance_opdur_AR.npz"))
    assert [(one.stage, one.replica) for one in found.worst] == [(0, 0)]


def test_nobody_late() -> None:
    found = replay_steps(trace({**even(), **messages(0.01)}))
    assert found.slowdown == pytest.approx(1.0, abs=1e-12)
    assert found.finding.cause == NO_CAUSE
    assert {*found.by_stage.values(), *found.by_op.values()} == {1.0}
    assert [one.rank for one in found.worst] == [0]  # of workers as slow, the one with the lowest rank


@given(st.integers(0, 2**32 - 1), st.sampled_from([("1f1b", 1), ("gpipe", 1), ("interleaved", 2)]))
def test_without_messages_a_step_is_the_pipeline_s(seed: int, schedule: tuple[str, int]) -> None:
    """The solver of training/pipeline gives the same time, where chunks wait for each other by empty messages."""
    name, virtual = schedule
    program = compiled(name, STAGES, MICROBATCHES, virtual)
    rng = np.random.default_rng(seed)
    turns = MICROBATCHES * virtual
    forward, backward = rng.uniform(0.5, 2.0, (2, STAGES, turns, 1, 1))
    seconds = {FORWARD: forward, BACKWARD: backward} | {
        op: np.zeros((STAGES, turns, 1, 1)) for op in (*SENDS.values(), *RECEIVES.values())
    }
    made = trace(seconds, name, virtual)
    by_chunk = np.zeros(program.dims)
    for kind, op in enumerate((FORWARD, BACKWARD)):
        for stage, order in enumerate(program.order):
            own = order[order // (program.dims[1] * program.dims[2]) == kind]
            by_chunk.reshape(-1)[own] = seconds[op][stage, :, 0, 0]
    assert replay_steps(made).actual == pytest.approx(float(makespan(program, by_chunk)))


def test_one_slow_worker() -> None:
    seconds = even()
    for op in (FORWARD, BACKWARD):
        seconds[op][1, :, :, 3] *= 1.5
    found = replay_steps(trace(seconds))
    assert (found.finding.cause, found.worst[0].stage, found.worst[0].replica) == (ONE_WORKER, 1, 3)


def test_one_replica_cannot_tell_a_worker_from_a_stage() -> None:
    seconds = {op: one[..., :1].copy() for op, one in even().items()}
    seconds[FORWARD][-1] *= 2
    found = replay_steps(trace(seconds))
    assert found.finding.cause == UNKNOWN
    assert "one replica" in " ".join(found.finding.evidence)


@pytest.mark.parametrize(("stage", "cause"), [(STAGES - 1, LAST_STAGE), (1, "stage 1")])
def test_a_slow_stage(stage: int, cause: str) -> None:
    seconds = even()
    seconds[FORWARD][stage] *= 2.0
    seconds[BACKWARD][stage] *= 1.4
    assert replay_steps(trace(seconds)).finding.cause == cause


def test_sequences_of_different_length() -> None:
    seconds, rng = even(), np.random.default_rng(0)
    length = rng.choice([0.8, 1.0, 1.9], (1, *SHAPE[1:]))
    for op in (FORWARD, BACKWARD):
        seconds[op] *= length
    assert replay_steps(trace(seconds)).finding.cause == SEQUENCES


def test_pauses_hit_forward_passes_alone() -> None:
    seconds, rng = even(), np.random.default_rng(1)
    seconds[FORWARD] = np.where(rng.random(SHAPE) < 0.01, 6.0, seconds[FORWARD])
    assert replay_steps(trace(seconds)).finding.cause == PAUSES


def test_a_gradient_that_is_late_now_and_then() -> None:
    seconds = even() | {SCATTER: np.full((STAGES, 1, STEPS, 8), 0.5)}
    seconds[SCATTER][2, :, :2] = 9.0
    assert replay_steps(trace(seconds)).finding.cause == COMMUNICATION


def test_nothing_explains_jitter() -> None:
    seconds, rng = even(), np.random.default_rng(2)
    for op in (FORWARD, BACKWARD):
        seconds[op] *= rng.lognormal(0.0, 0.1, SHAPE)
    assert replay_steps(trace(seconds)).finding.cause == UNKNOWN


def test_transfers_are_told_from_waiting() -> None:
    """The norm takes 0.01 s once the last stage is there; what a stage waits before is not its transfer."""
    seconds = even()
    starts = {op: np.zeros_like(one) for op, one in seconds.items()}
    starts[CLIP] = np.broadcast_to(np.arange(STAGES, dtype=float)[:, None, None, None], seconds[CLIP].shape)
    seconds[CLIP] = STAGES - 1 - starts[CLIP] + 0.01
    found = replay_steps(replace(trace(seconds), starts=starts))
    assert found.transfers[CLIP] == pytest.approx(0.01)


def test_transfers_that_end_before_they_begin_are_none() -> None:
    seconds = even()
    starts = {op: np.zeros_like(one) for op, one in seconds.items()}
    starts[CLIP] = np.zeros_like(seconds[CLIP])
    starts[CLIP][0, 0, 0, 0] = 5.0
    found = replay_steps(replace(trace(seconds), starts=starts))
    assert found.transfers[CLIP] == pytest.approx(0.01)
    assert "set to 0" in " ".join(found.repairs)


def test_fewer_passes_than_chunks() -> None:
    with pytest.raises(InputError, match="multiple of 3"):
        trace(even(), "interleaved", 3)


def test_sends_without_receives() -> None:
    seconds = {**even(), **messages(0.01)}
    seconds[RECEIVES[FORWARD]][2] = np.nan
    with pytest.raises(InputError, match="as many of each"):
        replay_steps(trace(seconds))


def test_the_first_backward_message_waits_for_the_warm_up() -> None:
    """By hand: it starts with the last forward but one, at 20 s, and takes 25 s like those after it."""
    passes = {FORWARD: np.ones((2, 3, 1, 1)), BACKWARD: np.full((2, 3, 1, 1), 2.0)}
    passes[FORWARD][0] = 10.0
    empty, ways = np.full((3, 1, 1), np.nan), {op: np.zeros((3, 1, 1)) for op in (FORWARD, BACKWARD)}
    ways[BACKWARD][:] = 25.0
    seconds = passes | {
        SENDS[FORWARD]: np.stack([ways[FORWARD], empty]),
        RECEIVES[FORWARD]: np.stack([empty, ways[FORWARD]]),
    }
    seconds |= {
        SENDS[BACKWARD]: np.stack([empty, ways[BACKWARD]]),
        RECEIVES[BACKWARD]: np.stack([ways[BACKWARD], empty]),
    }
    order = (
        tuple(Turn(op, turn) for op in (FORWARD, BACKWARD) for turn in range(3)),
        tuple(Turn(op, turn) for turn in range(3) for op in (FORWARD, BACKWARD)),
    )
    made = replace(trace(seconds), order=order)
    assert replay_steps(made).actual == pytest.approx(20 + 3 * 25 + 3 * 2)


def test_parameters_are_gathered_chunk_by_chunk() -> None:
    """By hand: the second chunk's parameters are there after 2 x 5 s; then a forward of 1 s, two backwards of 2 s."""
    seconds = {FORWARD: np.ones((1, 2, 1, 1)), BACKWARD: np.full((1, 2, 1, 1), 2.0), GATHER: np.full((1, 2, 1, 1), 5.0)}
    made = trace(seconds, "interleaved", 2)
    found = replay_steps(replace(made, chunk={**made.chunk, GATHER: np.array([[0, 1]])}))
    assert found.actual == pytest.approx(2 * 5 + 1 + 2 * 2)


def test_gradients_leave_after_the_last_backward_of_their_chunk() -> None:
    """By hand: the second chunk's leave at 4 s, the first's after them at 7 s, 3 s each, and 1 s for the others."""
    seconds = {FORWARD: np.ones((1, 2, 1, 1)), BACKWARD: np.full((1, 2, 1, 1), 2.0)}
    seconds |= {SCATTER: np.full((1, 2, 1, 1), 3.0), SEPARATE: np.ones((1, 1, 1, 1))}
    made = trace(seconds, "interleaved", 2)
    found = replay_steps(replace(made, chunk={**made.chunk, SCATTER: np.array([[1, 0]])}))
    assert found.actual == pytest.approx(7 + 3 + 1)


def test_long_sequences_are_no_pauses() -> None:
    seconds, rng = even(), np.random.default_rng(3)
    length = np.where(rng.random((1, *SHAPE[1:])) < 0.02, 1.9, 1.0)
    for op in (FORWARD, BACKWARD):
        seconds[op] *= length
    found = replay_steps(trace(seconds))
    assert found.finding.cause == SEQUENCES
    assert found.shares["pauses"] == 0.0


def test_what_a_step_has_in_common_is_no_sequence() -> None:
    """Steps differ by 20 %, the passes of a micro-batch by 1 % of their own, in which the two are not alike."""
    seconds, rng = even(), np.random.default_rng(4)
    common = rng.lognormal(0, 0.2, (1, 1, STEPS, 1))
    found = alike(
        trace(seconds), {op: seconds[op] * common * rng.lognormal(0, 0.01, SHAPE) for op in (FORWARD, BACKWARD)}
    )
    assert abs(found.correlation) < 0.3
    assert found.spread == pytest.approx(0.01, rel=0.1)


def test_a_little_likeness_is_no_sequence() -> None:
    """Micro-batches differ by 1 % in both passes; the last stage takes twice as long."""
    seconds = even()
    length = np.random.default_rng(5).lognormal(0, 0.01, (1, *SHAPE[1:]))
    for op in (FORWARD, BACKWARD):
        seconds[op] *= length
        seconds[op][-1] *= 2
    assert replay_steps(trace(seconds)).finding.cause == LAST_STAGE


def test_a_replay_reads_as_a_sentence() -> None:
    seconds = even()
    seconds[FORWARD][-1] *= 2.0
    lines = str(replay_steps(trace(seconds))).splitlines()
    assert lines[0].startswith("made up: a step takes ")
    assert "a step takes 41.11 s" in lines[0]  # 3 x 3 s before the last stage, 8 x 4 s on it, what follows the passes
    assert lines[1] == "cause: last stage"
