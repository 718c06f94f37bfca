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
from commsim.training.sync import SPEAKS, Sync, sync

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commsim.training.operations import Array
    from commsim.training.passes import Machine
    from commsim.training.pieces import Piece
    from commsim.training.search.job import Job

Ints = NDArray[np.int64]


def syncs(job: Job, machine: Machine, held: Ints) -> Sync:
    """Return what comes of each of the ways to hold weights, [way] of held[way, (tensor, expert, pipeline, zero)].

    Dense weights do not depend on the expert ranks, nor experts on the tensor ranks, so each is asked for alone. Ranks
    of the context axis hold the same weights as those of the data axis: only their product counts.
    """
    tensor, expert, rest = held[:, :1], held[:, 1:2], held[:, 2:]
    dense = _each(job, machine, np.hstack([tensor, np.ones_like(expert), rest]))
    if job.model.experts is None:
        return dense
    return _together(dense, _each(job, machine, np.hstack([np.ones_like(tensor), expert, rest]), experts=True))


def _together(dense: Sync, experts: Sync) -> Sync:
    """What is said of both kinds of weights; pieces that say something do so for either."""
    either = np.maximum(dense.values, experts.values)
    values = dense.values + experts.values
    values[SPEAKS] = either[SPEAKS]
    return Sync(values, np.stack([dense.shares[:, 0], experts.shares[:, 1]], axis=1), dense.buffers + experts.buffers)


def _each(job: Job, machine: Machine, held: Ints, *, experts: bool = False) -> Sync:
    """The same of the dense weights, or of the experts', alone."""
    ways, of = np.unique(held, axis=0, return_inverse=True)
    sizes, size = np.unique(ways[:, :2], axis=0, return_inverse=True)
    lone, staged = (_lights(job, sizes, Plan(*axes), experts=experts) for axes in ((), (Pipeline(2),)))
    parts = [
        _sync(job, machine, (staged if way[2] > 1 else lone)[place], way)
        for place, way in zip(size.reshape(-1).tolist(), ways.tolist())
    ]
    found = Sync(
        np.concatenate([one.values for one in parts], axis=2),
        np.concatenate([one.shares for one in parts], axis=2),
        np.concatenate([one.buffers for one in parts]),
    )
    return found.of(of.reshape(-1))


def _lights(job: Job, sizes: Ints, plan: Plan, *, experts: bool) -> list[tuple[Piece, ...]]:
    """The pieces for each pair of tensor and expert ranks, with their dense or their experts' weights alone."""
    tensor, expert = sizes.T.astype(float)
    every = pieces(Cuts(job.model, plan, job.recipe, job.system, given(job.recipe, 1.0, tensor, 1.0, expert)))
    kept = [(0.0, one.work.expert_weights, 0.0) if experts else (one.work.weights, 0.0, one.tied) for one in every]
    return [tuple(_light(*both, place, len(sizes)) for both in zip(every, kept)) for place in range(len(sizes))]


def _light(piece: Piece, weights: tuple[Array, Array, Array], place: int, many: int) -> Piece:
    dense, experts, tied = (float(np.broadcast_to(one, (many,))[place]) for one in weights)
    return replace(piece, work=Work((), (), dense, experts), joins=(), exchanged=0.0, sent=0.0, tied=tied)


def _sync(job: Job, machine: Machine, lights: Sequence[Piece], way: Sequence[int]) -> Sync:
    """The same of one way."""
    tensor, expert, pipeline, zero = way
    ranks = job.system.gpus // (tensor * pipeline)
    plan = Plan(Tensor(tensor), Expert(expert), Data(ranks, zero=zero), Pipeline(pipeline))
    setting = Cuts(job.model, plan, job.recipe, job.system, given(job.recipe, 1.0, tensor, 1.0, expert))
    said = [machine.said(setting, light) for light in lights]
    return sync(machine, plan, lights, said, buffers(one.traffic for some in said for one in some))
