"""Does what few micro-batches show hold for many?"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from commsim.training.pipeline import Course, compiled, makespan, solve, stage_ends
from commsim.training.pipeline.course import _highest
from commsim.training.pipeline.periods import fewer, longer
from commsim.training.pipeline.rounds import in_rounds
from commsim.training.pipeline.schedules import FORWARD, SCHEDULES, Shape

WAYS = st.sampled_from(["asynchronous", "blocking", "rendezvous"])


@st.composite
def courses(draw: st.DrawFn) -> Course:
    """A course with more micro-batches than are needed to see what repeats."""
    schedule = draw(st.sampled_from(["1f1b", "interleaved", "zero-bubble", "gpipe"]))
    stages = draw(st.integers(1 if schedule != "interleaved" else 2, 8))
    virtual = draw(st.integers(2, 4)) if schedule == "interleaved" else 1
    communication = draw(WAYS) if schedule != "interleaved" else draw(st.sampled_from(["asynchronous", "blocking"]))
    return Course(schedule, stages, draw(st.integers(stages, 70)), virtual, communication)


@settings(max_examples=40)
@given(courses())
def test_what_is_in_flight(course: Course) -> None:
    """As counted over the whole schedule."""
    shape = Shape(course.stages, course.microbatches, course.virtual)
    order = SCHEDULES[course.schedule](shape)
    kind, rest = np.divmod(order, shape.chunks * shape.microbatches)
    made = (kind == FORWARD).astype(np.int32) - (kind == kind.max())
    turn = rest // (shape.microbatches * shape.stages)
    for peaks, ours, chunks in zip(course.peaks, made, turn, strict=True):
        assert np.array_equal(peaks, _highest(ours, chunks, course.virtual))


@settings(max_examples=40)
@given(courses())
def test_rounds_of_a_long_program(course: Course) -> None:
    """Those of a short one, repeated: all nodes run, none before what it follows; solved alike in the exact rounds."""
    shape = Shape(course.stages, course.microbatches, course.virtual)
    few = fewer(course.schedule, shape)
    assume(course.schedule != "gpipe" and few != shape)
    program = course.program
    short = compiled(
        course.schedule, few.stages, few.microbatches, few.virtual, group=few.group, communication=course.communication
    )
    depth = longer(short, program.order, program.before, program.needs)
    runs, sizes = in_rounds(program.before, program.needs)
    assert sorted(program.run) == sorted(runs)
    assert program.sizes.sum() == sizes.sum() == runs.size
    if depth is not None:
        assert (np.append(depth, -1)[program.before[runs]] < depth[runs]).all()
        assert (np.append(depth, -1)[program.needs[runs]] < depth[runs]).all()


@settings(max_examples=30)
@given(courses(), st.integers(1, 900), st.integers(0, 99))
def test_ends_of_stages_are_the_last_of_all_ends(course: Course, columns: int, seed: int) -> None:
    """However many columns there are, and to the last bit."""
    assume(course.stages * course.virtual * course.microbatches < 300)
    program, random = course.program, np.random.default_rng(seed)
    kinds, chunks, _ = program.dims
    durations, delays = random.random((kinds, chunks, 1, columns)), random.random((kinds, chunks, 1, columns)) / 9
    found = stage_ends(program, durations, delays)
    every = solve(program, durations, delays).max(axis=(0, 2))
    assert np.array_equal(found, every.reshape(-1, course.stages, columns).max(axis=0))
    assert np.array_equal(found.max(axis=0), makespan(program, durations, delays))


def test_a_long_program_is_compiled_from_a_short_one() -> None:
    shape = Shape(8, 512)
    assert fewer("1f1b", shape).microbatches == 16
    assert (
        fewer("interleaved", Shape(4, 130, 2)) == Shape(4, 14, 2, group=5)
        or fewer("interleaved", Shape(4, 130, 2)).microbatches < 30
    )
    assert fewer("1f1b", Shape(8, 9)).microbatches == 9
    assert len(compiled("1f1b", 8, 512, communication="rendezvous").sizes) < 3000


@pytest.mark.parametrize("schedule", ["1f1b", "gpipe"])
def test_a_lone_stage_repeats(schedule: str) -> None:
    assert [peak.tolist() for peak in Course(schedule, 1, 4).peaks] == [[[1 if schedule == "1f1b" else 4]]]
