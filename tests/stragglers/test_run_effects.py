"""Do effects hit whom they name, and what they name alone?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from commsim.stragglers.effects import Effect, Target
from commsim.stragglers.kinds import (
    Congestion,
    Effected,
    Jitter,
    SharedJitter,
)
from commsim.stragglers.laws import Constant
from commsim.stragglers.parts import Ends, parts
from commsim.stragglers.run import run
from tests.stragglers.stages import APART, FLAT, PIPED, bare, drawn, step


def test_only_those_are_hit_that_are_named() -> None:
    """One stage of 4 twice as slow in each operation is the same drawn once, or in each operation."""
    stage = bare(4, 8, 2, 1.0, 2.0)
    for target in (Target("group", (1,)), Target("rank", (1,)), Target("stage", (1,))):
        lasting = Effect("compute", "job", Constant(2.0), target)
        once, always = (
            drawn(stage, Effected((effect,)), 2) for effect in (lasting, replace(lasting, persistence="operation"))
        )
        assert once == pytest.approx(always)
        assert once.min() > stage.seconds


def test_interruptions_of_one_group_alone() -> None:
    noise = Effect("host", "operation", Constant(0.01), Target("group", (0,)), "s", rate=10.0)
    found = drawn(bare(1, 8, 2), Effected((noise,)), 1000)
    assert found.mean() == pytest.approx(16 * 1.1, abs=3 * found.std() / 1000**0.5)


def test_latency_of_all_links_alike_however_it_is_said() -> None:
    """Seconds on every link for the step, for each message, or on each link by its number."""
    stage = bare(3, 6, 2)
    ways = [
        Effect("latency", "step", Constant(0.2), Target("all"), "s"),
        Effect("latency", "operation", Constant(0.2), Target("link"), "s"),
        Effect("latency", "job", Constant(0.2), Target("link", tuple(range(6))), "s"),
    ]
    first, second, third = (drawn(stage, Effected((one,)), 2) for one in ways)
    assert first == pytest.approx(second)
    assert first == pytest.approx(third)
    assert first.min() > stage.seconds


def test_messages_twice_as_long_by_any_name() -> None:
    known = step(PIPED)
    ways = [
        Effect("latency", "job", Constant(2.0), Target("all")),
        Effect("bandwidth", "job", Constant(2.0), Target("link", tuple(range(16)))),
        Effect("bandwidth", "operation", Constant(2.0), Target("link")),
    ]
    first, second, third = (run(known, [Effected((one,))], steps=2).mean for one in ways)
    assert first == pytest.approx(second)
    assert first == pytest.approx(third)
    assert first > known.step_time


def test_what_is_said_in_each_operation_is_part_of_all_that_is_said() -> None:
    often = Effected((Effect("bandwidth", "operation", Constant(2.0), Target("group")),))
    always = Effected((Effect("bandwidth", "job", Constant(2.0), Target("all")),))
    known, found = parts(step(APART)), run(step(APART), [often], steps=2)
    once = known.before + float(known.data[0])
    assert run(step(APART), [always], steps=2).mean - found.mean == pytest.approx(once)


def test_a_shared_factor_makes_no_straggler() -> None:
    found = run(step(PIPED), [SharedJitter(0.02)], steps=2000)
    compute = parts(step(PIPED)).compute
    assert compute.sum() > 0
    assert found.slowdown() == pytest.approx(1.0, abs=4 * found.error / found.ideal)


def test_congestion_slows_what_is_said_alone() -> None:
    always = Congestion(per_hour=1e9, factor=Constant(2.0))
    known, found = parts(step(APART)), run(step(APART), [always], steps=2)
    said = known.before + float(known.data[0]) + known.program.dims[2] * float(known.said.sum())
    assert found.mean - found.ideal == pytest.approx(said)


def overlapped(late: float, within: float, slower: float = 1.0) -> float:
    """When the step of three replicas is over, one of which is late, partly within its last backward pass."""
    known = bare(1, 4, 3).parts
    known = replace(known, data=np.array([0.25]), whole=np.array([1.0]), bucket=np.array([0.25]))
    last, over = np.full((1, 1, 3), 8.0), np.full((1, 1, 3), 1.0)
    last[0, 0, 1] += late
    over[0, 0, 1] += within
    return float(known.finished(Ends(last, over, np.full((1, 1, 1), slower)))[0])


def test_who_is_late_within_the_last_pass_holds_up_the_last_bucket_alone() -> None:
    """Four buckets of 0.25 s behind a pass of 1 s: all but the last are through when it ends."""
    assert overlapped(0.0, 0.0) == 8.25
    assert overlapped(0.5, 0.5) == 8.75
    assert overlapped(0.5, 0.0) == 8.75
    assert overlapped(0.5, -0.75) == 9.25  # began late, then was quick: the buckets queue
    assert overlapped(0.0, 0.0, slower=2.0) == 9.0  # 2 s of buckets since the pass began at 7 s


def test_a_slow_network_exposes_what_was_hidden() -> None:
    slow = Effected((Effect("bandwidth", "job", Constant(8.0), Target("all")),))
    hidden, apart = (run(step(kind), [slow], steps=1) for kind in (FLAT, APART))
    assert hidden.ideal < apart.ideal
    assert hidden.mean - hidden.ideal > 7 * float(parts(step(FLAT)).data[0])
    assert hidden.mean < apart.mean


def test_more_replicas_never_help() -> None:
    means = [drawn(bare(2, 4, replicas), Jitter(0.2), 400).mean() for replicas in (1, 4, 16, 64)]
    assert np.all(np.diff(means) > 0)
