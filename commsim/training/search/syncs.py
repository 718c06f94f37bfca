"""What do ranks say that hold the same weights, in every plan of a search?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from commsim.training.axes import Data, Expert, Pipeline, Tensor
from commsim.training.chunks import pieces
from commsim.training.memory import buffers
from commsim.training.operations import Work
from commsim.training.plan import Plan
from commsim.training.search.cuts import Cuts
from commsim.training.setting import given
from commsim.training.sync import Sync, sync

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commsim.training.passes import Machine
    from commsim.training.pieces import Piece
    from commsim.training.search.job import Job

Ints = NDArray[np.int64]


def syncs(job: Job, machine: Machine, held: Ints) -> Sync:
    """Return what comes of each of the ways to hold weights, [way] of held[way, (tensor, expert, pipeline, zero)].

    Ranks of the context axis hold the same weights as those of the data axis: only their product counts.
    """
    sizes, of = np.unique(held[:, :2], axis=0, return_inverse=True)
    lone, staged = (_lights(job, sizes, Plan(*axes)) for axes in ((), (Pipeline(2),)))
    parts = [
        _sync(job, machine, (staged if way[2] > 1 else lone)[place], way)
        for place, way in zip(of.reshape(-1).tolist(), held.tolist())
    ]
    return Sync(
        np.concatenate([one.values for one in parts], axis=2),
        np.concatenate([one.shares for one in parts], axis=2),
        np.concatenate([one.buffers for one in parts]),
    )


def _lights(job: Job, sizes: Ints, plan: Plan) -> list[tuple[Piece, ...]]:
    """The pieces for each pair of tensor and expert ranks, with their weights and nothing else."""
    tensor, expert = sizes.T.astype(float)
    every = pieces(Cuts(job.model, plan, job.recipe, job.system, given(job.recipe, 1.0, tensor, 1.0, expert)))
    return [tuple(_light(one, place, len(sizes)) for one in every) for place in range(len(sizes))]


def _light(piece: Piece, place: int, many: int) -> Piece:
    weights, experts, tied = (
        float(np.broadcast_to(one, (many,))[place])
        for one in (piece.work.weights, piece.work.expert_weights, piece.tied)
    )
    return replace(piece, work=Work((), (), weights, experts), joins=(), exchanged=0.0, sent=0.0, tied=tied)


def _sync(job: Job, machine: Machine, lights: Sequence[Piece], way: Sequence[int]) -> Sync:
    """The same of one way."""
    tensor, expert, pipeline, zero = way
    ranks = job.system.gpus // (tensor * pipeline)
    plan = Plan(Tensor(tensor), Expert(expert), Data(ranks, zero=zero), Pipeline(pipeline))
    setting = Cuts(job.model, plan, job.recipe, job.system, given(job.recipe, 1.0, tensor, 1.0, expert))
    said = [machine.said(setting, light) for light in lights]
    return sync(machine, plan, lights, said, buffers(one.traffic for some in said for one in some))
