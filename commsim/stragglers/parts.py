"""Of what does an estimated step consist, before anything is late?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from commsim.libraries.calibration import NOMINAL
from commsim.training.compute import kernels
from commsim.training.links import links
from commsim.training.once import once
from commsim.training.passes import Machine, passes
from commsim.training.pipeline import compiled
from commsim.training.pipeline.costs import costs_of
from commsim.training.pipeline.solve import ends
from commsim.training.setting import UNFUSED
from commsim.training.stages import stages
from commsim.training.step import program_of

if TYPE_CHECKING:
    from commsim.stragglers.laws.law import Floats
    from commsim.training.estimate import Estimate
    from commsim.training.pipeline import Program
    from commsim.training.setting import Setting

_COLUMNS = 512
"""Pipelines solved at once."""


@dataclass(frozen=True, eq=False)
class Parts:
    """The parts of a step, s, in the axes in which they can be late.

    compute, said: [kind, turn, stage], one micro-batch's compute and exposed communication, turn being the chunk of the
    stage. delays: [stage], of a message to the next. before: the start of the step; data, rest: [stage], what data
    parallelism exposes once all replicas are there, and what follows.
    """

    program: Program
    compute: Floats
    said: Floats
    delays: Floats
    before: float
    data: Floats
    rest: Floats

    @property
    def seconds(self) -> float:
        """The step when nobody is late."""
        durations = (self.compute + self.said)[:, :, :, None, None, None]
        last = self.ends(durations, self.links(self.delays[:, None, None]))
        return float(self.finished(last[..., 0], 1.0)[0])

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
        ours = (self._chunked(array, kinds, chunks) for array in (durations, delays))
        costs = costs_of(self.program, *ours)
        last = self.program.order[:, -1]
        found = np.concatenate([ends(self.program, some, last) for _, some in costs.blocks(_COLUMNS)], axis=1)
        return found.reshape(len(found), *costs.batch)

    def finished(self, last: Floats, slower: Floats | float) -> Floats:
        """Return when the step is over, [trial] in s, from when the last replica of each stage ends, [stage, trial].

        `slower` is the factor [stage, trial] of what data parallelism says then.
        """
        later = self.data[:, None] * slower + self.rest[:, None]
        first = self.before * np.max(np.broadcast_to(slower, last.shape), axis=0)
        found: Floats = first + (last + later).max(axis=0)
        return found

    def _chunked(self, array: Floats, kinds: int, chunks: int) -> Floats:
        """The turns and stages as chunks: chunk c is on stage c modulo the stages."""
        shape = array.shape
        stages = self.program.shape.stages
        spread = np.broadcast_to(array, (kinds, chunks // stages, stages, *shape[3:]))
        return spread.reshape(kinds, chunks, *shape[3:])


def parts(estimate: Estimate) -> Parts:
    """Return the parts of an estimate's step at the nominal figures of the machine."""
    setting, machine = estimate.setting, _machine(estimate)
    chunks, program = setting.chunks, _program(setting)
    spoken = [machine.said(setting, piece) for piece in chunks.pieces]
    run = stages(chunks, [passes(machine, piece, said) for piece, said in zip(chunks.pieces, spoken)])
    _, delays = links(setting, machine)
    rest = once(setting, machine, spoken, run)
    shape = (program.shape.virtual, program.shape.stages)
    exposed = run.exposed.sum(axis=0)
    split = program.dims[0] > len(run.compute)
    compute = np.stack([run.compute[0], run.compute[1] - run.weights, run.weights]) if split else run.compute
    said = np.vstack([exposed, np.zeros((1, exposed.shape[1]))]) if split else exposed
    return Parts(
        program=program,
        compute=compute[: program.dims[0]].reshape(-1, *shape),
        said=said[: program.dims[0]].reshape(-1, *shape),
        delays=delays,
        before=rest.before,
        data=rest.data,
        rest=rest.ends + rest.optimizer,
    )


def _program(setting: Setting) -> Program:
    """The step's program with all of its micro-batches, which an estimate leaves out where they are alike."""
    known, plan = program_of(setting), setting.plan
    return compiled(
        known.schedule, plan.pipeline, setting.microbatches, plan.virtual, communication=known.communication
    )


def _machine(estimate: Estimate) -> Machine:
    recipe, accelerator = estimate.setting.recipe, estimate.setting.system.accelerator
    kernel = None if recipe.attention == UNFUSED else recipe.attention
    tuned = kernels(accelerator, NOMINAL, kernel=kernel, cuda_graphs=recipe.cuda_graphs)
    return Machine(tuned, estimate.library, NOMINAL)
