"""Of what does an estimated step consist, before anything is late?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from commsim.training.pipeline import compiled
from commsim.training.pipeline.costs import costs_of
from commsim.training.pipeline.solve import ends
from commsim.training.step import program_of
from commsim.training.sync import ONCE

if TYPE_CHECKING:
    from commsim.stragglers.effects import Effect
    from commsim.stragglers.laws.law import Floats
    from commsim.training.estimate import Estimate
    from commsim.training.pipeline import Program
    from commsim.training.setting import Setting
    from commsim.training.steps import Steps

_COLUMNS = 512
"""Pipelines solved at once."""


class Ends(NamedTuple):
    """When each stage of each replica ends its last operation, how long that was, and how slow its groups speak.

    last, over: [stage, trial, replica] in s; slower: a factor [stage or 1, trial, replica or 1].
    """

    last: Floats
    over: Floats
    slower: Floats

    @property
    def alone(self) -> Ends:
        """The same replicas, none of which waits for another: each a trial of its own."""
        shape = (len(self.last), -1, 1)
        slower = np.broadcast_to(self.slower, self.last.shape)
        return Ends(self.last.reshape(shape), self.over.reshape(shape), slower.reshape(shape))


@dataclass(frozen=True, eq=False)
class Parts:
    """The parts of a step, s, in the axes in which they can be late.

    compute, said: [kind, turn, stage], one micro-batch's compute and exposed communication, turn being the chunk of the
    stage. delays: [stage], of a message to the next. before: the start of the step; data, rest: [stage], what data
    parallelism exposes once all replicas are there, and what follows. Where buckets of gradients go on their way behind
    the last backward pass, `whole` is all that they take, [stage], and `bucket` the last of them, which cannot.
    """

    program: Program
    compute: Floats
    said: Floats
    delays: Floats
    before: float
    data: Floats
    rest: Floats
    whole: Floats | None = None
    bucket: Floats | None = None

    @property
    def seconds(self) -> float:
        """The step when nobody is late."""
        last = self.ideal_ends[:, None, None]
        over = self.over((self.compute + self.said)[:, :, :, None, None, None])
        return float(self.finished(Ends(last, over, np.ones((1, 1, 1))))[0])

    @cached_property
    def ideal_ends(self) -> Floats:
        """When each stage ends its last operation when nobody is late, [stage] in s."""
        durations = (self.compute + self.said)[:, :, :, None, None, None]
        return self.ends(durations, self.links(self.delays[:, None, None]))[:, 0, 0]

    def links(self, delays: Floats) -> Floats:
        """Return delays of messages [kind, 1, stage, 1, trial, replica] from those of links [stage, trial, replica].

        Forward a message takes its stage's link, backward that of the stage before.
        """
        found = np.zeros((len(self.compute), 1, len(delays), 1, *delays.shape[1:]))
        found[0, 0, :, 0], found[1:2, 0, :, 0] = delays, np.roll(delays, 1, axis=0)
        return found

    def ends(self, durations: Floats, delays: Floats) -> Floats:
        """Return when each stage ends its last operation, [stage, trial, replica] in s.

        Both arrays are [kind, turn, stage, micro-batch, trial, replica], 1 where one stands for all.
        """
        kinds, chunks, _ = self.program.dims
        ours = (self.chunked(array, kinds, chunks) for array in (durations, delays))
        costs = costs_of(self.program, *ours)
        last = self.program.order[:, -1]
        found = np.concatenate([ends(self.program, some, last) for _, some in costs.blocks(_COLUMNS)], axis=1)
        return found.reshape(len(found), *costs.batch)

    def over(self, durations: Floats) -> Floats:
        """Return how long the last operation of each stage is, [stage, trial, replica] in s."""
        stages, microbatches = self.program.shape.stages, durations.shape[3]
        node = self.program.order[:, -1] % self.program.operations
        kind, chunk, microbatch = np.unravel_index(node, self.program.dims)
        where = (kind % len(durations), chunk // stages % durations.shape[1], np.arange(stages) % durations.shape[2])
        found: Floats = durations[(*where, microbatch % microbatches)]
        return found

    def finished(self, ends: Ends) -> Floats:
        """Return when the step is over, [trial] in s: each stage waits for the last of its replicas.

        Buckets of gradients go on their way while the last backward pass runs, as soon as all replicas have them: who
        is late within that pass holds up the last bucket alone, who began it late holds up all.
        """
        slower, last = ends.slower.max(axis=2), ends.last.max(axis=2)
        early, bucket, cost = self._buckets
        last = np.maximum(last, (ends.last - ends.over).max(axis=2) + early * slower) + cost if self.early else last
        first = self.before * np.max(np.broadcast_to(slower, last.shape), axis=0)
        found: Floats = first + (last + bucket * slower + self.rest[:, None]).max(axis=0)
        return found

    @property
    def early(self) -> bool:
        """Whether anything is synchronised before the last backward pass has ended."""
        return bool(self._buckets[0].any())

    def passes(self, effect: Effect) -> int:
        """Return how many passes an effect has to name to hit all that is computed: none for what comes once."""
        return min(len(self.compute), 2) if effect.unit == "factor" else 0

    @cached_property
    def _buckets(self) -> tuple[Floats, Floats, Floats]:
        """What can be synchronised since the last backward pass began, what only after it, and what hiding costs.

        [stage, 1] in s each; they make up `data` when nobody is late.
        """
        nothing = np.zeros_like(self.data)
        if self.whole is None or self.bucket is None:
            return nothing[:, None], self.data[:, None], nothing[:, None]
        over = self.over((self.compute + self.said)[:, :, :, None, None, None])[:, 0, 0]
        exposed = self.data - self.bucket
        early = np.minimum(self.whole - self.bucket, over + exposed)
        return early[:, None], self.bucket[:, None], (exposed - np.maximum(early - over, 0.0))[:, None]

    def chunked(self, array: Floats, kinds: int, chunks: int) -> Floats:
        """Return the turns and stages as chunks: chunk c is on stage c modulo the stages."""
        shape = array.shape
        stages = self.program.shape.stages
        spread = np.broadcast_to(array, (kinds, chunks // stages, stages, *shape[3:]))
        return spread.reshape(kinds, chunks, *shape[3:])


def parts(estimate: Estimate) -> Parts:
    """Return the parts of an estimate's step at the nominal figures of the machine."""
    setting, steps = estimate.setting, estimate.steps
    program, run, rest = _program(setting), steps.run, steps.rest
    shape = (program.shape.virtual, program.shape.stages)
    passes = run.exposed.sum(axis=0), run.compute, run.weights
    exposed, work, weights = (steps.chunks.each(one)[..., 0] for one in passes)
    split = program.dims[0] > len(work)
    compute = np.stack([work[0], work[1] - weights, weights]) if split else work
    said = np.vstack([exposed, np.zeros((1, exposed.shape[1]))]) if split else exposed
    return Parts(
        program=program,
        compute=compute[: program.dims[0]].reshape(-1, *shape),
        said=said[: program.dims[0]].reshape(-1, *shape),
        delays=steps.delays[:, 0],
        before=float(rest.before[0]),
        data=rest.data[:, 0],
        rest=(rest.ends + rest.optimizer)[:, 0],
        **(_buckets(steps) if setting.recipe.overlap_data else {}),
    )


def expert_shares(estimate: Estimate) -> tuple[float, float]:
    """Return the share of experts in what is computed, and of their exchange in what is said and hidden by nothing.

    They are by what grows when the fullest rank has a mean rank's tokens more; 0 where no experts are dealt out.
    """
    setting = estimate.setting
    if setting.plan.expert == 1 or not any(block.experts for block in setting.model.blocks):
        return 0.0, 0.0
    recipe = replace(setting.recipe, imbalance=setting.recipe.imbalance + 1.0)
    known, fuller = parts(estimate), parts(replace(estimate, setting=replace(setting, recipe=recipe)))
    said, more = float(known.said.sum()), float(fuller.said.sum())
    return float(fuller.compute.sum() / known.compute.sum()) - 1, more / said - 1 if said else 0.0


def _buckets(steps: Steps) -> dict[str, Floats]:
    """What is synchronised after the last backward pass of each stage, and one piece of it, [stage] in s."""
    chunks, last = steps.chunks, steps.sync.once[ONCE.index("last backward")]
    whole, pieces = (chunks.by_stage(of)[:, 0] for of in (last, (last > 0).astype(float)))
    return {"whole": whole, "bucket": np.minimum(steps.rest.data[:, 0], whole / np.maximum(pieces, 1))}


def _program(setting: Setting) -> Program:
    """The step's program with all of its micro-batches, which an estimate leaves out where they are alike."""
    known, plan = program_of(setting), setting.plan
    return compiled(
        known.schedule, plan.pipeline, setting.microbatches, plan.virtual, communication=known.communication
    )
