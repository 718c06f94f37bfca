"""What made the steps of a pipeline slow?

The measures are those of "Understanding Stragglers in Large Model Training Using What-if Analysis" (OSDI 2025):
S = T / T_ideal (equation 1), S of an operation, stage or replica with those alone as they were (2), S of a worker as
the smaller of its stage's and its replica's (4), M_W and M_S as the part of T - T_ideal that mending wins (5).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from commsim.errors import InputError
from commsim.measurement.traces.steps import COMMUNICATION, MESSAGES, OPERATIONS
from commsim.stragglers.replay.causes import Signs, recognised
from commsim.stragglers.replay.passes import alike, without_pauses
from commsim.stragglers.replay.result import Replay, Span, Worker
from commsim.stragglers.replay.scenarios import Scenarios
from commsim.stragglers.replay.schedule import ordered

if TYPE_CHECKING:
    from collections.abc import Mapping

    from commsim.measurement.traces.steps import Floats, StepTrace
    from commsim.stragglers.replay.scenarios import Kept

Key = TypeVar("Key", int, str)
WORST = 0.03
"""The share of the workers that are mended together for M_W."""


def replay_steps(trace: StepTrace, schedule: str = "1f1b", virtual: int = 1) -> Replay:
    """Return what the trace says; a schedule with so many chunks a stage is taken where it holds no order.

    InputError where the trace contradicts itself or the schedule, and where nothing takes any time.
    """
    found = _WhatIf(Scenarios(ordered(trace, schedule, virtual)))
    if not found.ideal > 0:
        raise InputError(trace.source, "steps of 0 s", "operations that take time belong in a trace")
    return found.replay()


@dataclass(frozen=True, eq=False)
class _WhatIf:
    """Scenarios, and the mean step of each."""

    scenarios: Scenarios

    @property
    def trace(self) -> StepTrace:
        return self.scenarios.trace

    def replay(self) -> Replay:
        trace, parts, numbers = self.trace, self.scenarios.parts, self.trace.numbers
        named = tuple(replace(one, replica=numbers[one.replica]) for one in self.workers)
        worst = named[: len(self.worst)]
        return Replay(
            source=trace.source,
            finding=recognised(Signs(self.slowdown, self.shares, alike(trace, parts.seconds), trace.replicas, worst)),
            actual=self.actual,
            ideal=self.ideal,
            by_stage=self.by_stage,
            by_rank={numbers[replica]: slowdown for replica, slowdown in self.by_replica.items()},
            by_op=self.by_op,
            workers=named,
            worst=worst,
            shares=self.shares,
            by_step=tuple((self._ends[0] / self._ends[1]).tolist()),
            measured=None if trace.measured is None else float(trace.measured.mean()),
            transfers={op: seconds for op, seconds in parts.ideal.items() if op in COMMUNICATION},
            timeline=self._timeline(),
            repairs=(*trace.repairs, *parts.repairs),
        )

    def _timeline(self) -> tuple[Span, ...]:
        """The passes and what follows them, of the step in the middle of all, in the replica that is slowest."""
        steps = self._ends[0]
        step = int(np.argsort(steps, kind="stable")[steps.size // 2])
        every = self.scenarios.everything
        spans = self.scenarios.spans([every, ~every], step, self.worst[0].replica)
        return tuple(
            Span(node.op, node.stage, *((float(begin), float(end)) for begin, end in both.T))
            for node, both in spans.items()
            if node.op not in MESSAGES
        )

    @cached_property
    def _ends(self) -> Floats:
        """The steps as they were, and as they would be, [2, step]."""
        every = self.scenarios.everything
        return self.scenarios.steps([every, ~every])

    @property
    def actual(self) -> float:
        return float(self._ends[0].mean())

    @property
    def ideal(self) -> float:
        return float(self._ends[1].mean())

    @property
    def slowdown(self) -> float:
        return self.actual / self.ideal

    @cached_property
    def by_stage(self) -> Mapping[int, float]:
        return self._sorted({stage: self._only(stage=stage) for stage in range(self.trace.stages)})

    @cached_property
    def by_replica(self) -> Mapping[int, float]:
        return self._sorted({replica: self._only(replica=replica) for replica in range(self.trace.replicas)})

    @cached_property
    def by_op(self) -> Mapping[str, float]:
        return self._sorted({name: self._only(ops=ops) for name, ops in self._operations().items()})

    def _sorted(self, kept: Mapping[Key, Kept]) -> Mapping[Key, float]:
        """The slowdowns of scenarios, the largest first."""
        means = self.scenarios.steps(list(kept.values())).mean(axis=1) / self.ideal
        return dict(sorted(zip(kept, means.tolist()), key=lambda item: -item[1]))

    def _only(self, *, ops: tuple[str, ...] = OPERATIONS, stage: int | None = None, replica: int | None = None) -> Kept:
        """Only these operations as they were."""
        kept = ~self.scenarios.everything
        places = [OPERATIONS.index(op) for op in ops]
        kept[places, slice(None) if stage is None else stage, slice(None) if replica is None else replica] = True
        return kept

    def _operations(self) -> dict[str, tuple[str, ...]]:
        """The operations of the trace under the names of the answer: both ends of a message are one."""
        found: dict[str, tuple[str, ...]] = {}
        for op in OPERATIONS:
            name = f"{op.split('-')[0]}-pp-comm" if op in MESSAGES else op
            if op in self.trace.seconds or op == OPERATIONS[-1]:
                found[name] = (*found.get(name, ()), op)
        return found

    @cached_property
    def workers(self) -> tuple[Worker, ...]:
        """Each worker, the slowest first; of two as slow the one with the lower rank."""
        found = [
            Worker(int(rank), stage, replica, min(self.by_stage[stage], self.by_replica[replica]))
            for (stage, replica), rank in np.ndenumerate(self.trace.ranks)
        ]
        return tuple(sorted(found, key=lambda one: (-(one.slowdown or 0.0), one.rank)))

    @property
    def worst(self) -> tuple[Worker, ...]:
        return self.workers[: math.ceil(len(self.workers) * WORST)]

    @cached_property
    def shares(self) -> Mapping[str, float]:
        """Which part of the time lost is won by mending one thing alone; without time lost, none of it."""
        lost = self.actual - self.ideal
        if not lost > 0:
            return {}
        workers = ~self.scenarios.everything
        for one in self.worst:
            workers[:, one.stage, one.replica] = True
        stages = {f"stage {stage}": self._only(stage=stage) for stage in range(self.trace.stages)}
        said = self._only(ops=tuple(sorted(COMMUNICATION)))
        mended = {"M_W": workers, "M_S": stages[f"stage {self.trace.stages - 1}"], **stages, "communication": said}
        left = self.scenarios.steps([~one for one in mended.values()]).mean(axis=1)
        calm = Scenarios(self.trace, without_pauses(self.trace, self.scenarios.parts)).steps(
            [self.scenarios.everything]
        )
        won = {name: (self.actual - one) / lost for name, one in zip(mended, left.tolist())}
        return {**won, "pauses": (self.actual - float(calm.mean())) / lost}
