"""When does each stage do what, in a step with causes and in an ideal one?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from commsim.stragglers.drawing import Drawing
from commsim.stragglers.waits import alone, last_of
from commsim.training.pipeline.explain import Operation
from commsim.training.pipeline.schedules import KINDS
from commsim.training.pipeline.solve import solve

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commsim.stragglers.kinds import Straggler
    from commsim.stragglers.laws.law import Floats
    from commsim.stragglers.simulate import Stage


@dataclass(frozen=True)
class Timeline:
    """The operations of one replica in one step, that for which the others wait, and the same when nobody is late.

    ends: [actual, ideal], when the whole step is over, s.
    """

    replica: int
    actual: tuple[Operation, ...]
    ideal: tuple[Operation, ...]
    ends: tuple[float, float]


def timeline(stage: Stage, causes: Sequence[Straggler], seed: int) -> Timeline:
    """Return the first step of the first job of a run, of the replica for which the others wait."""
    work = next(Drawing(1, 1, seed).work(stage, causes))
    ends = stage.ends(work)
    replica = int(last_of(stage, ends)[0])
    nothing = next(Drawing(1, 1, seed).work(stage, ()))
    actual, ideal = (_operations(stage, *alone(stage, one, 0, replica)) for one in (work, nothing))
    return Timeline(replica, actual, ideal, (float(stage.parts.finished(ends)[0]), stage.seconds))


def _operations(stage: Stage, durations: Floats, delays: Floats) -> tuple[Operation, ...]:
    """Every operation with its start and end, s."""
    program = stage.parts.program
    finish = solve(program, durations, delays)
    kinds, chunks, microbatches = program.dims
    return tuple(
        Operation(
            KINDS[kind],
            chunk % program.shape.stages,
            chunk,
            microbatch,
            float(finish[kind, chunk, microbatch] - durations[kind, chunk, microbatch % durations.shape[2]]),
            float(finish[kind, chunk, microbatch]),
        )
        for kind in range(kinds)
        for chunk in range(chunks)
        for microbatch in range(microbatches)
    )
