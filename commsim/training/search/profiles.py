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


def profiles(job: Job, machine: Machine, ranks: Ranks) -> Profile:
    """Return the profile of each of the ways for each choice of what is computed again, choice after choice."""
    count = len(ranks.tensor)
    parts = {tuple(places.tolist()): _profiles(job, machine, ranks.of(places)) for places in ranks.alike()}
    numbers, several, _ = next(iter(parts.values()))[0].values.shape
    values = np.empty((numbers, several, count * len(job.choices.recompute)))
    needed = np.empty(values.shape[2])
    for places, found in parts.items():
        for choice, part in enumerate(found):
            there = np.array(places) + choice * count
            values[:, :, there], needed[there] = part.values, part.buffers
    return Profile(values, needed)


def _profiles(job: Job, machine: Machine, ranks: Ranks) -> list[Profile]:
    """The same, by choice, of ways along whose meshes the same axes speak: they say the same things in other sizes.

    What is said takes as long whatever is computed again; only whether it is said again then depends on that. Where
    more is said than with the first choice, it is asked for anew.
    """
    every = [_pieces(job, ranks, recompute) for recompute in job.choices.recompute]
    said = [_said(job, machine, every[0], ranks, place) for place in ranks.meshes]
    needed = _stretched([buffers(one.traffic for some in of_mesh for one in some) for of_mesh in said], ranks)
    spoken = _spoken(said, ranks)
    found = []
    for held in every:
        first = _said(job, machine, held, ranks, ranks.meshes[0])
        if list(map(len, first)) == list(map(len, spoken)):
            heard = [[Heard(one.traffic, other.seconds) for one, other in zip(*both)] for both in zip(first, spoken)]
        else:
            heard = _spoken([_said(job, machine, held, ranks, place) for place in ranks.meshes], ranks)
        found.append(profile(held, [passes(machine, *both) for both in zip(held, heard)], needed))
    return found


def _spoken(said: Sequence[Sequence[Sequence[Said]]], ranks: Ranks) -> list[list[Heard]]:
    """What each piece says in all meshes, of said[mesh][piece]."""
    return [_joined(of_piece, ranks) for of_piece in zip(*said)]


def _pieces(job: Job, ranks: Ranks, recompute: str) -> tuple[Piece, ...]:
    """The pieces of the model in all ways to cut a micro-batch, when that is computed again."""
    sizes = (column.astype(float) for column in (ranks.micro_batch, ranks.tensor, ranks.context, ranks.expert))
    recipe = replace(job.recipe, recompute=recompute)
    return pieces(Cuts(job.model, Plan(), recipe, job.system, given(recipe, *sizes)))


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
