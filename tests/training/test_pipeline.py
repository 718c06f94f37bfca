"""Is a pipeline solved rightly, whatever its schedule, its cut and its costs?"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.errors import InputError
from commsim.training.pipeline import (
    COMMUNICATION,
    KINDS,
    SCHEDULES,
    Program,
    bubble,
    compiled,
    critical_path,
    makespan,
    per_link,
    solve,
)
from commsim.training.pipeline import steps as pipeline_steps

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

ONE_CHUNK = {"1f1b", "zero-bubble", "zb-h1"}
SPLIT = {"zero-bubble", "zb-h1"}


@st.composite
def programs(draw: st.DrawFn, communication: tuple[str, ...] = ("asynchronous", "blocking")) -> Program:
    """Any schedule of the table, cut in any way that it takes."""
    schedule = draw(st.sampled_from(sorted(SCHEDULES)))
    stages = draw(st.integers(1, 6))
    least = stages if schedule == "interleaved" else 1
    microbatches = draw(st.integers(least, 14))
    virtual = 1 if schedule in ONE_CHUNK else draw(st.integers(1 + (schedule == "interleaved"), 3))
    fitting = [g for g in range(stages, microbatches + 1) if not 0 < microbatches % g < stages]
    group = draw(st.sampled_from([None, *fitting])) if schedule == "interleaved" else None
    way = draw(st.sampled_from(communication))
    return compiled(schedule, stages, microbatches, virtual, group=group, communication=way)


def costs(program: Program, seed: int, batch: tuple[int, ...] = ()) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    return rng.random((*program.dims, *batch)), rng.random((*program.dims, *batch))


def operation(program: Program, number: int) -> tuple[int, int, int]:
    kind, chunk, microbatch = np.unravel_index(number, program.dims)
    return int(kind), int(chunk), int(microbatch)


def source(program: Program, kind: int, chunk: int, microbatch: int) -> tuple[int, int, int] | None:
    """Whose output an operation takes, said once more and in other words than the program's."""
    chunks = program.dims[1]
    if kind == 2:
        return 1, chunk, microbatch
    if kind == 1:
        return (1, chunk + 1, microbatch) if chunk < chunks - 1 else (0, chunk, microbatch)
    return (0, chunk - 1, microbatch) if chunk else None


def walked(program: Program, durations: Floats, delays: Floats) -> dict[tuple[int, int, int], float]:
    """The end of every operation, found by walking the stages until nothing moves."""
    stages = program.shape.stages
    queues = [[operation(program, number) for number in row] for row in program.order]
    clock, ends, arrives = [0.0] * stages, dict[tuple[int, int, int], float](), dict[tuple[int, int, int], float]()
    while any(queues):
        left = sum(map(len, queues))
        for stage, queue in enumerate(queues):
            while queue and ((needed := source(program, *queue[0])) is None or needed in ends):
                op = queue.pop(0)
                local = needed is None or needed[1] % stages == stage
                arrival = 0.0 if needed is None else ends[needed] if local else arrives[needed]
                clock[stage] = ends[op] = max(clock[stage], arrival) + float(durations[op])
                onward = (op[0] == 0 and op[1] < program.dims[1] - 1) or (op[0] == 1 and op[1] > 0)
                arrives[op] = ends[op] + float(delays[op])
                if program.communication == "blocking" and onward and stages > 1:
                    clock[stage] = arrives[op]
        assert sum(map(len, queues)) < left, "deadlock"
    return ends


@given(programs())
def test_every_operation_runs_once_on_its_stage(program: Program) -> None:
    assert sorted(program.order.ravel()) == list(range(program.operations))
    for stage, row in enumerate(program.order):
        assert {operation(program, number)[1] % program.shape.stages for number in row} == {stage}


@given(programs(), st.integers(0, 2**32))
def test_solved_as_walked(program: Program, seed: int) -> None:
    durations, delays = costs(program, seed)
    finish = solve(program, durations, delays)
    assert {op: pytest.approx(end) for op, end in walked(program, durations, delays).items()} == dict(
        np.ndenumerate(finish)
    )
    assert makespan(program, durations, delays) == finish.max()


@given(programs(), st.integers(0, 2**32))
def test_a_batch_is_its_singles(program: Program, seed: int) -> None:
    durations, delays = costs(program, seed, (2, 3))
    together, longest = solve(program, durations, delays), makespan(program, durations, delays)
    for index in np.ndindex(2, 3):
        alone = solve(program, durations[:, :, :, *index], delays[:, :, :, *index])
        assert np.array_equal(alone, together[:, :, :, *index])
        assert longest[index] == alone.max()


@given(programs(COMMUNICATION[:2]), st.integers(0, 2**32))
def test_many_columns_are_solved_as_few(program: Program, seed: int) -> None:
    durations, delays = costs(program, seed, (5,))
    few = makespan(program, durations, delays)
    wide = 5000
    assert wide > 2 * 2048  # more than two blocks
    many = makespan(program, durations[..., np.arange(wide) % 5], delays[..., np.arange(wide) % 5])
    assert np.array_equal(many, few[np.arange(wide) % 5])


@given(programs(), st.integers(0, 2**32))
def test_longer_operations_never_shorten_the_step(program: Program, seed: int) -> None:
    durations, delays = costs(program, seed)
    more_work, more_delay = costs(program, seed + 1)
    before = makespan(program, durations, delays)
    assert makespan(program, durations + more_work, delays) >= before
    assert makespan(program, durations, delays + more_delay) >= before


@given(programs(), st.integers(0, 2**32))
def test_one_entry_stands_for_all(program: Program, seed: int) -> None:
    durations, delays = (array[:, :, :1] for array in costs(program, seed, (3,)))
    every = np.ones(program.dims)[..., None]
    assert np.array_equal(solve(program, durations, delays), solve(program, durations * every, delays * every))
    assert np.array_equal(makespan(program, 2.0, 1.0), makespan(program, 2 * every[..., 0], every[..., 0]))


@given(programs(), st.integers(0, 2**32))
def test_the_critical_path_has_no_gap(program: Program, seed: int) -> None:
    durations, delays = costs(program, seed)
    path = critical_path(program, durations, delays)
    assert path[0].start == 0
    assert path[-1].finish == makespan(program, durations, delays)
    assert all(one.finish == other.start for one, other in pairwise(path))
    for op in path:
        table = delays if op.kind == "message" else durations[KINDS.index(op.kind)]
        if op.kind != "message":
            assert op.finish - op.start == pytest.approx(table[op.chunk, op.microbatch])
        assert op.stage == op.chunk % program.shape.stages


@given(programs(), st.integers(0, 2**32))
def test_a_stage_computes_or_is_idle(program: Program, seed: int) -> None:
    durations, delays = costs(program, seed, (2,))
    chunk_stage = np.arange(program.dims[1]) % program.shape.stages
    busy = [durations[:, chunk_stage == stage].sum(axis=(0, 1, 2)) for stage in range(program.shape.stages)]
    idle = bubble(program, durations, delays)
    assert np.allclose(idle + busy, makespan(program, durations, delays))
    assert idle.min() >= -1e-9
    mean, single = durations[:, :, :1], durations[..., 0]
    assert np.allclose(bubble(program, mean), bubble(program, np.broadcast_to(mean, durations.shape)))
    assert np.allclose(bubble(program, single, delays)[:, 1], bubble(program, single, delays[..., 1]))
    assert np.allclose(bubble(program, 1.0), makespan(program, 1.0) - program.operations / program.shape.stages)


@given(st.integers(1, 8), st.integers(1, 12), st.integers(0, 2**32))
def test_rendezvous_waits_at_least_as_long(stages: int, microbatches: int, seed: int) -> None:
    ways = [compiled("1f1b", stages, microbatches, communication=way) for way in COMMUNICATION]
    durations, delays = costs(ways[0], seed)
    lengths = [float(makespan(program, durations, delays)) for program in ways]
    assert lengths[0] <= lengths[1] + 1e-9
    assert lengths[0] <= lengths[2] + 1e-9
    assert lengths[2] <= lengths[3] + 1e-9
    free = [float(makespan(program, durations)) for program in ways]
    assert free[0] == free[1]


# What is refused


@pytest.mark.parametrize(
    ("given", "line"),
    [
        (("1f1c", 4, 8), r"pipeline: schedule: '1f1c'.*did you mean '1f1b'"),
        (("1f1b", 0, 8), "pipeline: stages: 0; a whole number of at least 1"),
        (("1f1b", 4, 2.5), "pipeline: microbatches: 2.5"),
        (("1f1b", 4, 8, True), "pipeline: virtual: True"),
        (("1f1b", 4, 8, 2), "pipeline: virtual: 2; this schedule has one chunk a stage; interleaved has several"),
        (("interleaved", 4, 8, 1), "pipeline: virtual: 1; interleaved needs 2 or more"),
        (("interleaved", 4, 3, 2), r"pipeline: microbatches: 3; interleaved needs at least as many as stages \(4\)"),
    ],
)
def test_what_cannot_be_cut(given: tuple[str, int, int], line: str) -> None:
    with pytest.raises(InputError, match=line):
        compiled(*given)


@pytest.mark.parametrize(
    ("schedule", "group"), [("1f1b", 4), ("gpipe", 4), ("interleaved", 3), ("interleaved", 6), ("interleaved", 9)]
)
def test_groups_that_do_not_fit(schedule: str, group: int) -> None:
    with pytest.raises(InputError, match=f"pipeline: group: {group}; "):
        compiled(schedule, 4, 8, 2 if schedule != "1f1b" else 1, group=group)


def test_more_than_is_compiled() -> None:
    with pytest.raises(InputError, match="more than 1048576 chunks x micro-batches"):
        compiled("1f1b", 100_000, 100_000)


def test_a_deadlock_is_refused() -> None:
    with pytest.raises(InputError, match="'rendezvous'; interleaved deadlocks"):
        compiled("interleaved", 4, 8, 2, communication="rendezvous")
    with pytest.raises(InputError, match="did you mean 'blocking'"):
        compiled("1f1b", 4, 8, communication="bloking")


@pytest.mark.parametrize("wrong", [-1.0, np.nan, np.inf])
def test_figures_that_are_no_times(wrong: float) -> None:
    program = compiled("1f1b", 2, 2)
    durations = np.ones(program.dims)
    durations[1, 1, 1] = wrong
    with pytest.raises(InputError, match=f"pipeline: durations: {wrong}; seconds that are finite"):
        makespan(program, durations)
    with pytest.raises(InputError, match="pipeline: delays: "):
        solve(program, 1.0, durations)


def test_shapes_that_do_not_fit() -> None:
    program = compiled("1f1b", 4, 8)
    with pytest.raises(InputError, match=r"shape of durations: \(3, 4, 8\); \[2 kinds, 4 chunks, 8 micro-batches"):
        solve(program, np.ones((3, 4, 8)))
    with pytest.raises(InputError, match=r"shape of delays: \(4,\)"):
        solve(program, 1.0, np.ones(4))
    with pytest.raises(InputError, match=r"pipeline: links: \(3,\)"):
        per_link(program, np.ones(3))
    with pytest.raises(InputError, match=r"pipeline: batch axes: \(5,\); a critical path is that of one step"):
        critical_path(program, np.ones((2, 4, 8, 5)))


def test_no_columns_no_times() -> None:
    assert makespan(compiled("1f1b", 2, 2), np.ones((2, 2, 2, 0))).shape == (0,)


def test_programs_are_remembered_and_reuse_rows() -> None:
    assert compiled("1f1b", 4, 8) is compiled("1f1b", 4, 8)
    program = compiled("1f1b", 16, 32)
    assert pipeline_steps.one_by_one(program).size < 100 < program.operations
