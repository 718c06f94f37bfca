"""Is a pass its operations one after another, and does communication stick out of it as it should?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from commsim.collectives.kinds import SEND_RECV
from commsim.training.axes import Axis, Context, Data, Expert, Pipeline, Tensor, Traffic
from commsim.training.overlap import CONTENTION
from commsim.training.passes import HOST, Pass, passes
from commsim.training.recipe import SCALINGS
from tests.training.clock import clockwork
from tests.training.settings import piece, setting

Passes = tuple[Pass, Pass]


def both(name: str, *axes: Axis, each: float = 1.0, of: str = "full-dense", **recipe: Any) -> Passes:  # noqa: ANN401
    """The passes of a layer when a kernel takes a second and a collective so many."""
    asked, clock = setting(name, *axes, **recipe), clockwork(each)
    one = piece(asked, of)
    return passes(clock, one, clock.said(asked, one))


LLAMA = "llama3.1-8b"
FORWARD = 11
"""Forward kernels of llama3.1-8b: two norms, two residual sums, four matmuls, rotation, attention, activation."""
BACKWARD = FORWARD + 4
"""A matmul has two gradients."""


def test_kernels_follow_each_other() -> None:
    forward, backward = both(LLAMA)
    assert (forward.compute, backward.compute) == (FORWARD, BACKWARD)
    assert (forward.free, backward.free) == (FORWARD, BACKWARD)
    assert backward.weights == 4
    assert forward.exposed == backward.exposed == {}


def test_recomputation_runs_forward_again() -> None:
    full, attention = both(LLAMA, recompute="full")[1], both(LLAMA, recompute="selective")[1]
    assert full.compute == BACKWARD + FORWARD
    assert attention.compute == BACKWARD + 1
    assert full.weights == 4


def test_recomputation_stops_before_what_nobody_reads() -> None:
    """Neither the last matmul of a layer nor the residual sum behind it runs again, and its result is not scattered."""
    whole, early = (both(LLAMA, Tensor(4), recompute="full", stops_early=stops)[1] for stops in (False, True))
    assert whole.compute - early.compute == 2
    assert whole.exposed["tensor"] - early.exposed["tensor"] == pytest.approx(1)
    assert [both(LLAMA, recompute=how)[1].compute - BACKWARD for how in ("matmul", "second_matmul")] == [4, 2]
    assert both(LLAMA, recompute="second_matmul", stops_early=True)[1].compute - BACKWARD == 1.5
    part = both(LLAMA, recompute="selective", stops_early=True)[1]
    assert part.compute == BACKWARD + 1, "what is chosen runs again as a whole"


@pytest.mark.parametrize("scaling", ["delayed", "tensorwise", "rowwise"])
def test_scales_are_found_before_a_cast(scaling: str) -> None:
    """All four matmuls cast their input; with 16-bit numbers there is nothing to scale."""
    for precision, each in (("fp8", SCALINGS[scaling]), ("bf16", 0.0)):
        one = piece(setting(LLAMA, precision=precision, scaling=scaling), "full-dense")
        assert [part.scales for part in one.work.operations if part.kind == "matmul"] == [each] * 4


def test_exposed_collectives_add_up() -> None:
    """Four forward; backward two gathers wait, four more hide behind two seconds of each column-split matmul."""
    forward, backward = both(LLAMA, Tensor(4))
    assert forward.exposed == {"tensor": 4.0}
    assert backward.exposed == {"tensor": pytest.approx(2 + 4 * CONTENTION)}
    assert backward.free == BACKWARD - 4


def test_what_does_not_fit_behind_sticks_out() -> None:
    """Four collectives of 2 s each behind 4 s of column-split matmuls."""
    backward = both(LLAMA, Tensor(4), each=2.0)[1]
    assert backward.exposed["tensor"] == pytest.approx(2 * 2 + (8 - 4) + 4 * CONTENTION)


def test_without_sequence_parallelism() -> None:
    forward, backward = both(LLAMA, Tensor(4, sequence=False))
    assert forward.exposed == {"tensor": 2.0}
    assert backward.exposed == {"tensor": pytest.approx(2 * CONTENTION)}


def test_full_recomputation_says_forward_again() -> None:
    plain, again = (both(LLAMA, Tensor(4), recompute=how)[1].exposed["tensor"] for how in ("none", "full"))
    assert again == pytest.approx(plain + 4)


def test_a_ring_hides_behind_attention_only() -> None:
    """One gather behind one second of attention; backward a gather and a scatter behind one second of its gradient."""
    forward, backward = both(LLAMA, Context(4))
    assert forward.exposed["context"] == pytest.approx(CONTENTION)
    assert backward.exposed["context"] == pytest.approx(1 + CONTENTION)
    gathered, _ = both(LLAMA, Context(4, by="all_gather"))
    assert gathered.exposed["context"] == 1.0


def test_what_hides_behind_the_chunk_is_left_for_it() -> None:
    forward, backward = both(LLAMA, Data(8, zero=3))
    assert (dict(forward.exposed), dict(forward.later)) == ({}, {"data": 1.0})
    assert dict(backward.later) == {"data": 2.0}
    exposed, _ = both(LLAMA, Data(8, zero=3), overlap_data=False)
    assert (dict(exposed.exposed), dict(exposed.later)) == ({"data": 1.0}, {})


def test_experts_wait_unless_they_overlap() -> None:
    waiting, _ = both("mixtral-8x7b", Data(8), Expert(8), of="full-moe")
    hidden, _ = both("mixtral-8x7b", Data(8), Expert(8), of="full-moe", overlap_expert=True)
    assert waiting.exposed["expert"] == 2.0
    assert hidden.later["expert"] == 2.0


def test_a_host_that_waits_for_counts_of_tokens_is_slower_than_quick_kernels() -> None:
    """A pass takes HOST s, backward twice that, of which two collectives of an eighth each leave three quarters.

    What the GPU idles meanwhile can hide something. A GPU with more to do than that waits for no host.
    """
    asked = setting("mixtral-8x7b", Data(8), Expert(8))
    quick, one = clockwork(HOST / 8, kernel=1e-9), piece(asked, "full-moe")
    forward, backward = passes(quick, one, quick.said(asked, one))
    assert forward.exposed == backward.exposed == {"expert": HOST / 4}
    assert forward.compute == forward.free == pytest.approx(HOST - HOST / 4)
    assert backward.compute == backward.free == pytest.approx(2 * HOST - HOST / 4)
    busy, free = (both("mixtral-8x7b", of="full-moe", dropless=waits)[0] for waits in (True, False))
    assert busy.compute == free.compute


def test_unfused_attention_multiplies_no_weights() -> None:
    """Its two products have gradients too, but none of a weight that could wait."""
    assert both(LLAMA, attention="unfused")[1].weights == 4


def test_said_asks_the_library_for_the_group() -> None:
    asked, clock = setting(LLAMA, Tensor(4), Data(2)), clockwork()
    said = clock.said(asked, piece(asked, "full-dense"))
    assert [(one.traffic.op.name, one.timing.ranks, one.kind) for one in said[:1]] == [("all_gather", 4, "full-dense")]
    assert said[0].seconds == 2.0, "of both parts of the layer"


def test_ranks_meet_before_they_speak() -> None:
    """Those of a collective; a message between stages waits in the schedule of the pipeline."""
    asked, late = setting(LLAMA, Tensor(4), Pipeline(2)), replace(clockwork(), assembly=0.5)
    assert late.said(asked, piece(asked, "full-dense"))[0].seconds == 2 * 1.5
    message = Traffic("pipeline", "pipeline", SEND_RECV, 8.0, "forward")
    assert late.timed(asked, message, "").seconds == 1.0
