"""What is a trace of training steps, cut by stage, micro-batch and replica?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from commsim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FORWARD, BACKWARD = "forward-compute", "backward-compute"
PASSES = (FORWARD, BACKWARD)
SENDS = {FORWARD: "forward-send", BACKWARD: "backward-send"}
RECEIVES = {FORWARD: "forward-recv", BACKWARD: "backward-recv"}
GATHER, SCATTER, SEPARATE = "params-all-gather", "grads-reduce-scatter", "separate-grads-all-reduce"
LAYERNORM, EMBEDDING = "layernorm-grads-all-reduce", "embedding-grads-all-reduce"
CLIP, OPTIMIZER, PAUSE = "optimizer-clip-main-grad", "optimizer", "gc"
MESSAGES = (*SENDS.values(), *RECEIVES.values())
ONCE = (GATHER, LAYERNORM, EMBEDDING, SCATTER, SEPARATE, CLIP, OPTIMIZER, PAUSE)
COMMUNICATION = frozenset({*MESSAGES, GATHER, SCATTER, SEPARATE, LAYERNORM, EMBEDDING, CLIP})
OPERATIONS = (*PASSES, *MESSAGES, *ONCE)
"""The operations of a step under the names of ByteDance's traces (StragglerAnalysis, OSDI 2025)."""


class Turn(NamedTuple):
    """The n-th time that a stage does an operation in a step."""

    op: str
    number: int


@dataclass(frozen=True, eq=False)
class StepTrace:
    """Steps of a job, by operation: arrays [stage, turn, step, replica], NaN where a stage has no such operation.

    `seconds` are durations if there are `starts`, and then those of communication hold the waiting for peers; without
    starts they are transfers alone. `order[stage]` is what a stage computes, in turn (empty: not known); `chunk[op]`
    [stage, turn] numbers the chunk of the model that an operation belongs to (chunk c is on stage c modulo stages).
    `ranks` [stage, replica] are the numbers of workers, `replica_numbers` those of replicas where they are not counted
    from 0, `measured` [step] what a step took by the clock. `repairs` say what was left out or mended.
    """

    seconds: Mapping[str, Floats]
    ranks: Ints
    steps: tuple[int, ...]
    order: tuple[tuple[Turn, ...], ...] = ()
    chunk: Mapping[str, Ints] = field(default_factory=dict)
    starts: Mapping[str, Floats] | None = None
    measured: Floats | None = None
    replica_numbers: tuple[int, ...] = ()
    source: str = ""
    repairs: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        """Refuse a trace without a forward pass of every stage in every step; InputError."""
        forward = self.seconds.get(FORWARD)
        if forward is None or not forward.size or np.isnan(forward).any():
            raise InputError(self.source, FORWARD, "one of each stage, micro-batch, step and replica belongs in it")

    @property
    def stages(self) -> int:
        """The number of stages of the pipeline."""
        return int(self.ranks.shape[0])

    @property
    def replicas(self) -> int:
        """The number of whole pipelines."""
        return int(self.ranks.shape[1])

    @property
    def numbers(self) -> tuple[int, ...]:
        """What each replica is called: its rank on the data axis."""
        return self.replica_numbers or tuple(range(self.replicas))

    @property
    def shape(self) -> tuple[int, int]:
        """Steps and replicas."""
        return len(self.steps), self.replicas

    @property
    def chunks(self) -> int:
        """The number of chunks of the model."""
        return int(max(chunk.max() for chunk in self.chunk.values())) + 1

    def turns(self, op: str, stage: int) -> list[int]:
        """Return the turns in which a stage does an operation, in their order."""
        if op not in self.seconds:
            return []
        found: list[int] = np.flatnonzero(~np.isnan(self.seconds[op][stage, :, 0, 0])).tolist()
        return found
