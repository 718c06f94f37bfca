"""Who takes part in a step, by which number, and what is drawn for each?"""

from __future__ import annotations

import math
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from commsim.errors import InputError
from commsim.stragglers.maxima import Maximum

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.random import Generator

    from commsim.stragglers.effects import Effect, Target
    from commsim.stragglers.laws import Law
    from commsim.stragglers.laws.law import Floats
    from commsim.training.plan import Plan

Ints = NDArray[np.int64]


class Drawn(NamedTuple):
    """An effect with the generator of its draws; `once`: one draw serves all steps, for they are of one job."""

    effect: Effect
    rng: Generator
    once: bool = False

    def again(self) -> Drawn:
        """Return what draws the same once more, if one draw serves all, else itself."""
        return self._replace(rng=deepcopy(self.rng)) if self.once else self


@dataclass(frozen=True)
class Cast:
    """The ranks of a plan: `members` of each of `stages` x `replicas` groups wait for each other in every operation.

    These are tensor and context ranks and, where experts are dealt out over several pipelines, those of as many
    `lanes`: they exchange tokens in each layer, and go through a step as one replica. Where nobody `waits`, each group
    has the mean of its members instead: what they would take if work could be shared.
    """

    stages: int
    replicas: int
    members: int
    dims: tuple[tuple[str, int, int], ...]
    waits: bool = True
    lanes: int = 1

    @classmethod
    def of(cls, plan: Plan) -> Cast:
        """Return who takes part in a plan."""
        dims = tuple((name, extent, stride) for name, (extent, stride) in plan.dims().items())
        inner = plan.tensor * plan.context
        lanes = math.lcm(plan.expert * plan.expert_tensor, inner) // inner
        return cls(plan.pipeline, plan.data // lanes, inner * lanes, dims, lanes=lanes)

    def of_replicas(self, replicas: int) -> Cast:
        """Return it with so many replicas, the axes in the same order."""
        dims, stride = [], 1
        for name, extent, _ in self.dims:
            dims.append((name, replicas * self.lanes if name == "data" else extent, stride))
            stride *= dims[-1][1]
        return replace(self, replicas=replicas, dims=tuple(dims))

    @property
    def ranks(self) -> int:
        """All of them."""
        return self.stages * self.replicas * self.members

    def shape(self, target: Target) -> tuple[int, int, int]:
        """Return how many of a target there are: [stage, member, replica], 1 where it is not told apart."""
        stages, members, replicas = {
            "rank": (self.stages, self.members, self.replicas),
            "group": (self.stages, self.lanes, self.replicas),
            "link": (self.stages, self.lanes, self.replicas),
            "replica": (1, self.lanes, self.replicas),
            "stage": (self.stages, 1, 1),
            "all": (1, 1, 1),
        }[target.each]
        return stages, members, replicas

    def has(self, target: Target) -> bool:
        """Return whether there are as many of a target as it names or counts."""
        return max((target.count or 1) - 1, *target.which, 0) < math.prod(self.shape(target))

    def numbered(self, target: Target) -> Ints:
        """Return where the target's numbers stand in its shape, flat; InputError for one that is not there."""
        size = math.prod(self.shape(target))
        for number in target.which:
            least = -size if target.each == "stage" else 0
            if not isinstance(number, int) or not least <= number < size:
                raise InputError(target.each, number, f"one of the {size}, numbered from 0, belongs here")
        numbers = np.array(target.which, dtype=np.int64) % size
        if target.each == "rank":
            return self._places(numbers)
        if target.each in {"group", "link"}:
            return numbers % self.stages * self.lanes * self.replicas + self._lanes(numbers // self.stages)
        return self._lanes(numbers) if target.each == "replica" else numbers

    def gathered(self, of_each: Floats) -> Floats:
        """Return what [stage, member, ...] comes to for each group, [stage, ...]: its slowest member, or their mean."""
        found: Floats = of_each.max(axis=1) if self.waits else of_each.mean(axis=1)
        return found

    def slowest(self, law: Law, members: int, rng: Generator, shape: tuple[int, ...]) -> Floats:
        """Return draws of that shape of what so many members with a law come to."""
        if members == 1:
            return law.sample(rng, shape)
        if self.waits:
            return Maximum(law, members).sample(rng, shape)
        found: Floats = np.mean([law.sample(rng, shape) for _ in range(members)], axis=0)
        return found

    def ranks_of(self, stage: int, replica: int) -> Ints:
        """Return the ranks of a group, by the order of the plan's axes."""
        every = np.arange(self.ranks)
        group = stage * self.replicas + replica
        place = self._places(every)
        found: Ints = every[place // (self.members * self.replicas) * self.replicas + place % self.replicas == group]
        return found

    def _places(self, ranks: Ints) -> Ints:
        """Where ranks stand in [stage, member, replica], by the order of the plan's axes."""
        place = {name: ranks // stride % extent for name, extent, stride in self.dims}
        sizes = {name: extent for name, extent, _ in self.dims}
        none = np.zeros_like(ranks)
        member = place.get("tensor", none) + sizes.get("tensor", 1) * place.get("context", none)
        stage, pipelines = place.get("pipeline", none), place.get("data", none)
        lane = pipelines % self.lanes * (self.members // self.lanes)
        found: Ints = (stage * self.members + lane + member) * self.replicas + pipelines // self.lanes
        return found

    def _lanes(self, pipelines: Ints) -> Ints:
        """Where pipelines stand in [lane, replica]: those in a row are the lanes of one replica."""
        return pipelines % self.lanes * self.replicas + pipelines // self.lanes


def together(cast: Cast, drawn: Sequence[Drawn], trials: int) -> Floats:
    """Return what effects alike in all but target and law come to for each group, [stage, trial or 1, replica].

    Factors multiply and times add up for each rank; a group waits for its slowest. One effect that hits every rank is
    drawn as a maximum directly.
    """
    (effect, rng, once), *others = drawn
    if not others and effect.target.each == "rank" and not effect.target.chosen:
        return cast.slowest(effect.law, cast.members, rng, (cast.stages, 1 if once else trials, cast.replicas))
    total = _of_each(cast, effect, 1 if once else trials, rng)
    for other in others:
        more = _of_each(cast, other.effect, 1 if other.once else trials, other.rng)
        total = total * more if effect.unit == "factor" else total + more
    return cast.gathered(total)


def struck(cast: Cast, target: Target, trials: int, rng: Generator) -> Floats:
    """Return which groups have one of the targets that are named or counted, [stage, trial, replica]: 1, or a share."""
    shape = cast.shape(target)
    flat = np.zeros((math.prod(shape), trials))
    flat[_hit(cast, target, trials, rng), np.arange(trials)] = 1.0
    return cast.gathered(np.moveaxis(flat.reshape(*shape, trials), 3, 2))


def _hit(cast: Cast, target: Target, trials: int, rng: Generator) -> Ints:
    """Where those stand that are named, or counted, [one, trial or 1]."""
    if target.which:
        return cast.numbered(target)[:, None]
    return _at_random(math.prod(cast.shape(target)), target, trials, rng)


def _of_each(cast: Cast, effect: Effect, trials: int, rng: Generator) -> Floats:
    """What an effect does to each of its target, [stage, member, trial, replica]."""
    target, shape = effect.target, cast.shape(effect.target)
    if not target.chosen:
        stages, members, replicas = shape
        return effect.law.sample(rng, (stages, members, trials, replicas))
    hit = _hit(cast, target, trials, rng)
    flat = np.full((math.prod(shape), trials), effect.nothing)
    flat[hit, np.arange(trials)] = effect.law.sample(rng, (hit.shape[0], trials))
    found: Floats = np.moveaxis(flat.reshape(*shape, trials), 3, 2)
    return found


def _at_random(size: int, target: Target, trials: int, rng: Generator) -> Ints:
    """So many different ones, [one, trial]."""
    count = target.count or 1
    if count > size:
        raise InputError(f"{target.each}: count", count, f"there are {size}")
    if count == 1:
        return rng.integers(size, size=(1, trials))
    return np.array([rng.choice(size, count, replace=False) for _ in range(trials)]).T
