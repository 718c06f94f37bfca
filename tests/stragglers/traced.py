"""Steps of made-up jobs, for the tests of replays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commsim.measurement.traces.steps import BACKWARD, CLIP, FORWARD, OPTIMIZER, RECEIVES, SENDS, StepTrace
from commsim.stragglers.replay.scenarios import Scenarios
from commsim.stragglers.replay.schedule import ordered

if TYPE_CHECKING:
    from commsim.measurement.traces.steps import Floats

STAGES, MICROBATCHES, STEPS, REPLICAS = 4, 8, 6, 8
SHAPE = (STAGES, MICROBATCHES, STEPS, REPLICAS)


def even(forward: float = 1.0, backward: float = 2.0) -> dict[str, Floats]:
    """Return what a job without lateness takes: passes, the norm of the gradients, the optimizer."""
    once = (STAGES, 1, STEPS, REPLICAS)
    return {
        FORWARD: np.full(SHAPE, forward),
        BACKWARD: np.full(SHAPE, backward),
        CLIP: np.full(once, 0.01),
        OPTIMIZER: np.full(once, 0.1),
    }


def messages(seconds: float) -> dict[str, Floats]:
    """Return messages that take so long, where stages send and receive them."""
    found = {op: np.full(SHAPE, seconds) for op in (*SENDS.values(), *RECEIVES.values())}
    found[RECEIVES[FORWARD]][0] = found[SENDS[FORWARD]][-1] = np.nan
    found[RECEIVES[BACKWARD]][-1] = found[SENDS[BACKWARD]][0] = np.nan
    return found


def trace(seconds: dict[str, Floats], schedule: str = "1f1b", virtual: int = 1) -> StepTrace:
    """Return the trace of a job."""
    stages, _, steps, replicas = seconds[FORWARD].shape
    ranks = np.arange(stages * replicas).reshape(stages, replicas)
    return ordered(StepTrace(seconds, ranks, tuple(range(steps)), source="made up"), schedule, virtual)


def rows(made: StepTrace) -> list[str]:
    """Return the lines of a table of operations, as a profiler would see this trace, by one clock."""
    scenarios = Scenarios(made)
    found = ["dp_rank,stage,rank,step,optype,start_ts,duration,seq_id,mc"]
    for step, replica in np.ndindex(*made.shape):
        for (op, stage, turn), span in scenarios.spans([scenarios.everything], step, replica).items():
            if op in made.seconds:
                start, end = (float(one) + 100.0 * step for one in span[:, 0])
                chunk = made.chunk[op][stage, turn] // made.stages if op in made.chunk else 0
                place = f"{replica},{stage},{made.ranks[stage, replica]},{step}"
                number = made.turns(op, stage).index(turn)
                found.append(f"{place},{op},{start!r},{end - start!r},{number},{chunk}")
    return found
