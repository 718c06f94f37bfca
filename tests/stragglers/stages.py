"""On which steps do tests let causes work: of small models, and of bare pipelines whose times are known?"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from commsim.stragglers.cast import Cast, Drawn
from commsim.stragglers.parts import Parts
from commsim.stragglers.simulate import Stage
from commsim.training.axes import Data, Pipeline, Tensor
from commsim.training.pipeline import compiled
from tests.training.settings import estimated

if TYPE_CHECKING:
    from commsim.stragglers.kinds import Straggler
    from commsim.training.estimate import Estimate


FLAT, PIPED, TURNED, SPLIT, APART = "flat", "piped", "interleaved", "zero-bubble", "nothing overlapped"
KINDS_OF_STEP = (FLAT, PIPED, TURNED, SPLIT, APART)


@cache
def step(kind: str) -> Estimate:
    """A small model on 32 GPUs, in the ways in which a step can be cut."""
    if kind in {FLAT, APART}:
        return estimated("llama3.1-8b", Tensor(2), Data(16), global_batch=64, overlap_data=kind == FLAT)
    pipeline = Pipeline(4, virtual=2 if kind == TURNED else 1)
    schedule = "zero-bubble" if kind == SPLIT else None
    return estimated("llama3.1-8b", Tensor(2), Data(4), pipeline, global_batch=32, schedule=schedule)


def bare(stages: int, microbatches: int, replicas: int, forward: float = 1.0, backward: float = 1.0) -> Stage:
    """A pipeline that does nothing but its passes, with messages that take no time."""
    program = compiled("1f1b", stages, microbatches)
    compute = np.stack([np.full((1, stages), forward), np.full((1, stages), backward)])
    nothing = np.zeros(stages)
    known = Parts(program, compute, np.zeros_like(compute), nothing, 0.0, nothing, nothing)
    dims = (("pipeline", stages, 1), ("data", replicas, stages))
    return Stage(known, Cast(stages, replicas, 1, dims), known.seconds)


def drawn(stage: Stage, cause: Straggler, steps: int) -> np.ndarray:
    return stage.steps([Drawn(effect, np.random.default_rng(31)) for effect in cause.effects], steps)
