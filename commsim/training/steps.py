"""How long are the optimizer steps of many plans, and where does the time go? One plan is an array of one."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from commsim.training.axes import AXES
from commsim.training.memory import Held, activations, held, owned
from commsim.training.once import Once, once, update
from commsim.training.pipeline import per_chunk, per_link, stage_ends
from commsim.training.stages import Stages, stages

if TYPE_CHECKING:
    from collections.abc import Mapping

    from commsim.training.chunks import Chunks
    from commsim.training.passes import Said
    from commsim.training.pipeline import Program
    from commsim.training.pipeline.course import Course
    from commsim.training.profile import Profile
    from commsim.training.recipe import Recipe
    from commsim.training.sync import Sync

Floats = NDArray[np.float64]
Places = NDArray[np.intp]
_ONE = np.zeros(1, dtype=np.intp)


@dataclass(frozen=True, eq=False)
class Step:
    """One optimizer step, s, and its parts: those of the stage that has most to do. Together they are the step.

    `bubble` is the time in which that stage waits for others, `exposed` what each axis adds. `said` is everything that
    was said.
    """

    seconds: float
    compute: float
    bubble: float
    exposed: Mapping[str, float]
    optimizer: float
    said: tuple[Said, ...] = ()


@dataclass(frozen=True, eq=False)
class Steps:
    """The steps of plans that run the same course over the same chunks, at once: every array has one entry a plan last.

    Plans that are alike until their last micro-batch share a run of the pipeline, which is solved once: `runs`[plan]
    numbers it, `first`[run] is one of its plans; `profile`, `delays`[stage, run], those of messages to the next stage,
    and `buffers`[run], the bytes for messages, have one entry a run. `memory` is how many B/s the optimizer moves.
    """

    course: Course
    chunks: Chunks
    recipe: Recipe
    profile: Profile
    sync: Sync
    delays: Floats
    buffers: Floats
    memory: float
    runs: Places = field(default_factory=lambda: _ONE)
    first: Places = field(default_factory=lambda: _ONE)

    @cached_property
    def run(self) -> Stages:
        """The passes of each kind of chunk, one entry a run."""
        return stages(self.chunks.kinds, self.profile, self.sync.of(self.first))

    @cached_property
    def rest(self) -> Once:
        """What comes once a step."""
        optimizer = update(self.recipe, owned(self.chunks, self.sync), self.memory)
        cover = self.chunks.of_stages(self.run.seconds)[..., self.runs] * self.recipe.overlap_data
        return once(self.chunks, self.sync, cover, optimizer)

    @cached_property
    def held(self) -> Held:
        """What the ranks keep in memory."""
        made = activations(self.course, self.chunks, self.profile)[:, self.runs]
        meanwhile = (self.profile.buffers + self.buffers)[self.runs] + self.sync.buffers
        return held(owned(self.chunks, self.sync), self.recipe, made, meanwhile)

    @property
    def microbatches(self) -> int:
        """Micro-batches of a step."""
        return self.course.microbatches * self.course.times

    @cached_property
    def seconds(self) -> Floats:
        """The steps, [plan]: the pipeline solved with its real stage times, and what comes once a step."""
        return self._whole(self._solved(self.course.program, self.delays))

    @cached_property
    def free(self) -> Floats:
        """The steps if messages took no time, [plan]."""
        return self._whole(self._solved(self.course.free.program, np.zeros_like(self.delays)))

    @cached_property
    def bound(self) -> Floats:
        """What no step is shorter than, [plan], without solving anything.

        A stage waits for the first micro-batch to come through the stages before it, then works through all of them;
        the gradients of the last then go through the stages before it, whose last operation is to take them. (Where
        weight gradients are split off, it may be another.)
        """
        first = self.chunks.each(self.run.seconds)[:, : self.chunks.stages]
        reached = np.cumsum(first, axis=1) - first
        done = reached[0] + self._busy
        drained = done + (0.0 if self._split else reached[1])
        last = (done[:, self.runs] + self.rest.after).max(axis=0)
        found: Floats = self.rest.before + np.maximum(last, drained.max(axis=0)[self.runs] + self.rest.after[0])
        return found

    def of(self, plans: Places) -> Steps:
        """Return the steps of some of the plans, by number."""
        runs, first, places = np.unique(self.runs[plans], return_index=True, return_inverse=True)
        ours = replace(self, profile=self.profile.of(runs), delays=self.delays[:, runs], buffers=self.buffers[runs])
        return replace(ours, sync=self.sync.of(plans), runs=places, first=first)

    def step(self, plan: int = 0, said: tuple[Said, ...] = ()) -> Step:
        """Return the step of one of the plans with its parts, those of the stage that has most to do."""
        run, rest = self.runs[plan], self.rest
        stage = int(np.argmax(self._busy[:, run] + rest.after[:, plan]))
        axes = self.chunks.of_stages(self.run.exposed.sum(axis=1))[:, stage, run]
        exposed = dict(zip(AXES, (axes * self.microbatches).tolist()))
        exposed["data"] += float(rest.before[plan] + rest.data[stage, plan])
        late, early = self.seconds[plan], self.free[plan]
        exposed["pipeline"] += float(late - early + rest.ends[stage, plan])
        compute = self.chunks.of_stages(self.run.compute.sum(axis=0))[stage, run] * self.microbatches
        waited = early - rest.before[plan] - self._busy[stage, run] - rest.after[stage, plan]
        return Step(
            seconds=float(late),
            compute=float(compute),
            bubble=max(0.0, float(waited)) if self.chunks.stages > 1 else 0.0,  # alone it waits for nobody
            exposed={axis: seconds for axis, seconds in exposed.items() if seconds},
            optimizer=float(rest.optimizer[stage, plan]),
            said=said,
        )

    @property
    def _split(self) -> bool:
        """Whether the gradients of weights are operations of their own."""
        return self.course.schedule in ("zero-bubble", "zb-h1")

    @cached_property
    def _busy(self) -> Floats:
        """What each stage does in all of its micro-batches, [stage, run]."""
        return self.chunks.of_stages(self.run.seconds.sum(axis=0)) * self.microbatches

    def _whole(self, ends: Floats) -> Floats:
        """The steps [plan] whose stages end their last operations so, [stage, run]."""
        found: Floats = self.rest.before + (ends[:, self.runs] * self.course.times + self.rest.after).max(axis=0)
        return found

    def _solved(self, program: Program, delays: Floats) -> Floats:
        """When each stage ends its last operation, [stage, run]."""
        forward, backward = self.run.seconds
        kinds = (forward, backward - self.run.weights, self.run.weights) if self._split else (forward, backward)
        seconds = (self.chunks.each(kind) for kind in kinds)
        return stage_ends(program, per_chunk(*seconds), per_link(program, delays))
