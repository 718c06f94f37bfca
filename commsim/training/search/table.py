"""What is each plan of a search made of: its terms, worked out once, and the course of its pipeline?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from commsim.training.axes import Context, Data, Pipeline, Tensor
from commsim.training.chunks import Chunks, counted
from commsim.training.links import links
from commsim.training.memory import buffers
from commsim.training.plan import Plan
from commsim.training.search.cuts import Cuts
from commsim.training.search.profiles import Ranks, profiles
from commsim.training.search.syncs import syncs
from commsim.training.setting import given
from commsim.training.step import course_of, machine_of
from commsim.training.steps import Steps

if TYPE_CHECKING:
    from commsim.training.operations import Shard
    from commsim.training.passes import Machine
    from commsim.training.pipeline import Course
    from commsim.training.profile import Profile
    from commsim.training.search.job import Job
    from commsim.training.search.space import Space
    from commsim.training.sync import Sync

Places = NDArray[np.intp]
Floats = NDArray[np.float64]


class Alike(NamedTuple):
    """Plans that run the same course."""

    course: Course
    chunks: Chunks
    plans: Places


@dataclass(frozen=True, eq=False)
class Table:
    """The plans of a space with their terms; `steps` makes of them what an estimate makes of one."""

    job: Job
    space: Space

    @cached_property
    def machine(self) -> Machine:
        """What times compute and collectives."""
        return machine_of(self._cuts(Plan()), self.job.library)

    @cached_property
    def courses(self) -> tuple[Alike, ...]:
        """The plans by their course."""
        space, job = self.space, self.job
        batches = job.recipe.global_batch // (space.data * space.micro_batch)
        which, of = _distinct(space.pipeline, space.virtual, batches)
        order = np.argsort(of, kind="stable")
        parts = np.split(order, np.flatnonzero(np.diff(of[order])) + 1)
        return tuple(self._course(one, plans) for one, plans in zip(which.tolist(), parts))

    def _course(self, shape: tuple[int, int, int], plans: Places) -> Alike:
        pipeline, virtual, microbatches = shape
        recipe = replace(self.job.recipe, global_batch=microbatches, micro_batch=1)
        setting = replace(self._cuts(Plan(Pipeline(pipeline, virtual))), recipe=recipe)
        counts, assumption = counted(setting)
        return Alike(course_of(setting), Chunks((), counts, pipeline, assumption), plans)

    def steps(self, one: Alike, plans: Places | None = None) -> Steps:
        """Return the steps of plans of one course; of all of them unless it is said of which."""
        plans = one.plans if plans is None else plans
        ways, sync = self._profile_of[plans], self._sync_of[plans]
        alike = ways * (len(self._speaks) + 1) + np.where(self._speaks[sync], sync + 1, 0)
        _, first, runs = np.unique(alike, return_index=True, return_inverse=True)
        delays, needed = self._links[one.course.stages]
        sent = self._link_of[plans[first]]
        return Steps(
            one.course,
            one.chunks,
            self.job.recipe,
            self._profiles.of(ways[first]),
            self._syncs.of(sync),
            delays[:, sent],
            needed[sent],
            self.machine.kernels.memory,
            runs,
            first,
        )

    @cached_property
    def _ranks(self) -> tuple[Ranks, Places]:
        """The ways to cut a micro-batch, and which of them each plan has."""
        which, of = _distinct(self.space.tensor, self.space.context, self.space.expert, self.space.micro_batch)
        return Ranks(*which.T), of

    @cached_property
    def _profiles(self) -> Profile:
        """[plan] numbered by `_profile_of`."""
        return profiles(self.job, self.machine, self._ranks[0])

    @cached_property
    def _profile_of(self) -> Places:
        ranks, of = self._ranks
        return self.space.recompute * len(ranks.tensor) + of

    @cached_property
    def _held(self) -> tuple[Places, Places]:
        """The ways to hold weights, [way, (tensor, expert, pipeline, zero)], and which of them each plan has."""
        return _distinct(self.space.tensor, self.space.expert, self.space.pipeline, self.space.zero)

    @cached_property
    def _syncs(self) -> Sync:
        """[plan] numbered by `_sync_of`."""
        return syncs(self.job, self.machine, self._held[0])

    @property
    def _sync_of(self) -> Places:
        return self._held[1]

    @cached_property
    def _speaks(self) -> NDArray[np.bool_]:
        """Whether something is said in each micro-batch, [way to hold weights]."""
        found: NDArray[np.bool_] = np.any(self._syncs.values[:4] > 0, axis=(0, 1))
        return found

    @cached_property
    def _sent(self) -> tuple[dict[int, list[tuple[int, int, int]]], Places]:
        """For each number of stages the messages (tensor, context, micro-batch), and which of them each plan has."""
        space = self.space
        which, of = _distinct(space.pipeline, space.tensor, space.context, space.micro_batch)
        stages = which[:, 0]
        first = {int(one): int(np.argmax(stages == one)) for one in np.unique(stages)}
        found = {one: [tuple(row) for row in which[stages == one, 1:].tolist()] for one in first}
        begin = np.array([first[int(one)] for one in stages])
        return found, of - begin[of]

    @property
    def _link_of(self) -> Places:
        return self._sent[1]

    @cached_property
    def _links(self) -> dict[int, tuple[Floats, Floats]]:
        """Delays of messages [stage, message] and the buffers for them [message], for each number of stages."""
        return {stages: self._linked(stages, sent) for stages, sent in self._sent[0].items()}

    def _linked(self, stages: int, sent: list[tuple[int, int, int]]) -> tuple[Floats, Floats]:
        if stages == 1:
            return np.zeros((1, len(sent))), np.zeros(len(sent))
        parts, at = [], np.array(sent)
        _, of = _distinct(at[:, 0], at[:, 1])
        for mesh in np.split(at, np.flatnonzero(np.diff(of)) + 1):
            tensor, context = map(int, mesh[0, :2])
            data = self.job.system.gpus // (tensor * context * stages)
            plan = Plan(Tensor(tensor), Context(context), Data(data), Pipeline(stages))
            shard = given(self.job.recipe, mesh[:, 2].astype(float), float(tensor), float(context), 1.0)
            message, delays = links(self._cuts(plan, shard), self.machine)
            parts.append((delays, np.broadcast_to(buffers(one.traffic for one in message), (len(mesh),))))
        return np.concatenate([one for one, _ in parts], axis=1), np.concatenate([one for _, one in parts])

    def _cuts(self, plan: Plan, shard: Shard | None = None) -> Cuts:
        job = self.job
        return Cuts(job.model, plan, job.recipe, job.system, shard or given(job.recipe, 1.0, 1.0, 1.0, 1.0))


def _distinct(*columns: Places) -> tuple[Places, Places]:
    """The rows that differ [row, column], in order, and which of them each plan has."""
    key = columns[0].astype(np.int64)
    bases = [int(column.max()) + 1 for column in columns]
    for column, base in zip(columns[1:], bases[1:]):
        key = key * base + column
    _, first, of = np.unique(key, return_index=True, return_inverse=True)
    return np.stack([column[first] for column in columns], axis=1), of
