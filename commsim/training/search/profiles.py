"""What do ranks do with a micro-batch, by every way to cut it: the profiles of all plans of a search?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from commsim.training.axes import Context, Data, Expert, Tensor
from commsim.training.chunks import pieces
from commsim.training.memory import buffers
from commsim.training.operations import Work
from commsim.training.passes import passes
from commsim.training.plan import Plan
from commsim.training.profile import Profile, profile
from commsim.training.search.cuts import Cuts
from commsim.training.setting import given
from commsim.training.step import of_weights

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commsim.training.axes import Traffic
    from commsim.training.operations import Array
    from commsim.training.passes import Machine, Said
    from commsim.training.pieces import Piece
    from commsim.training.search.job import Job

Ints = NDArray[np.int64]
_NO_WORK = Work((), (), 0.0)


class Heard(NamedTuple):
    """A collective with its time in every cut."""

    traffic: Traffic
    seconds: Array


@dataclass(frozen=True, eq=False)
class Ranks:
    """Every way to cut a micro-batch, one entry each: tensor, context and expert ranks, sequences at once.

    Those of one mesh stand next to each other.
    """

    tensor: Ints
    context: Ints
    expert: Ints
    micro_batch: Ints

    def of(self, places: NDArray[np.intp]) -> Ranks:
        """Return some of them, by number."""
        return Ranks(*(column[places] for column in self._columns))

    def alike(self) -> list[NDArray[np.intp]]:
        """Return the numbers of those along whose meshes the same axes speak, and of each mesh."""
        speak = (self.tensor > 1) + 2 * (self.context > 1) + 4 * (self.expert > 1)
        return [np.flatnonzero(speak == which) for which in np.unique(speak)]

    @cached_property
    def meshes(self) -> list[slice]:
        """Where the ways of each mesh stand."""
        sizes = np.stack(self._columns[:3])
        ends = np.flatnonzero(np.append((np.diff(sizes, axis=1) != 0).any(axis=0), True)) + 1
        return [slice(first, end) for first, end in zip([0, *ends.tolist()], ends.tolist())]

    @property
    def _columns(self) -> tuple[Ints, Ints, Ints, Ints]:
        return self.tensor, self.context, self.expert, self.micro_batch


def profiles(job: Job, machine: Machine, ranks: Ranks, recompute: str) -> Profile:
    """Return the profile of each of the ways, when that is computed again."""
    found, parts = None, ranks.alike()
    for places in parts:
        part = _profiles(replace(job, recipe=replace(job.recipe, recompute=recompute)), machine, ranks.of(places))
        if found is None:
            found = Profile(np.empty((*part.values.shape[:2], len(ranks.tensor))), np.empty(len(ranks.tensor)))
        found.values[:, :, places], found.buffers[places] = part.values, part.buffers
    if found is None:
        raise ValueError(ranks)  # a search without plans ends earlier
    return found


def _profiles(job: Job, machine: Machine, ranks: Ranks) -> Profile:
    """The same of ways along whose meshes the same axes speak, so that they say the same things in other sizes."""
    sizes = (column.astype(float) for column in (ranks.tensor, ranks.context, ranks.expert))
    every = Cuts(job.model, Plan(), job.recipe, job.system, given(job.recipe, ranks.micro_batch.astype(float), *sizes))
    held = pieces(every)
    said = [_said(job, machine, held, ranks, place) for place in ranks.meshes]
    spoken = [_joined([of_mesh[number] for of_mesh in said], ranks) for number in range(len(held))]
    both = [passes(machine, piece, heard) for piece, heard in zip(held, spoken)]
    needed = [buffers(one.traffic for some in of_mesh for one in some) for of_mesh in said]
    return profile(held, both, _stretched(needed, ranks))


def _said(job: Job, machine: Machine, held: Sequence[Piece], ranks: Ranks, place: slice) -> list[list[Said]]:
    """What each piece says in one mesh, with sizes and times for all of its micro-batches."""
    first = place.start
    tensor, context, expert = (int(of[first]) for of in (ranks.tensor, ranks.context, ranks.expert))
    axes = Tensor(tensor), Context(context), Expert(expert), Data(job.system.gpus // (tensor * context))
    shard = given(job.recipe, ranks.micro_batch[place].astype(float), float(tensor), float(context), float(expert))
    setting = Cuts(job.model, Plan(*axes), job.recipe, job.system, shard)
    lights = [replace(one, work=_NO_WORK, exchanged=_at(one.exchanged, first), tied=0.0) for one in held]
    return [[one for one in machine.said(setting, light) if not of_weights(one.traffic)] for light in lights]


def _at(value: Array, place: int) -> float:
    return float(value[place]) if isinstance(value, np.ndarray) and value.ndim else float(value)


def _joined(said: Sequence[Sequence[Said]], ranks: Ranks) -> list[Heard]:
    """The same things said in all meshes, each once with all of its times."""
    return [
        Heard(alike[0].traffic, _stretched([one.seconds for one in alike], ranks)) for alike in zip(*said, strict=True)
    ]


def _stretched(values: Sequence[Array], ranks: Ranks) -> NDArray[np.float64]:
    """The values of each mesh, one after the other, where one may stand for all of its ways."""
    sizes = [place.stop - place.start for place in ranks.meshes]
    return np.concatenate([np.broadcast_to(value, (size,)) for value, size in zip(values, sizes)])
