"""How long do steps take in which causes are at work?

Everything is drawn in [kind, turn, stage, micro-batch, trial, replica], 1 where one stands for all, then run through
the pipeline's solver; replicas wait for each other at the end of each stage's work.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from commsim.stragglers.cast import Cast, struck, together
from commsim.stragglers.parts import Ends

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.random import Generator

    from commsim.stragglers.cast import Drawn
    from commsim.stragglers.effects import Effect
    from commsim.stragglers.laws import Law
    from commsim.stragglers.laws.law import Floats
    from commsim.stragglers.parts import Parts

_CELLS = 2**19
"""Operations drawn at a time."""
_PASSES = {"forward": slice(0, 1), "backward": slice(1, None)}


class Work(NamedTuple):
    """What is to be done in some steps: operations and messages [kind, turn, stage, micro-batch, trial, replica] in s.

    `slower` is the factor of what groups say, [stage, trial, replica]; 1 where one stands for all.
    """

    durations: Floats
    delays: Floats
    slower: Floats


@dataclass(frozen=True, eq=False)
class Stage:
    """Where steps are drawn: the parts of the step, who takes part, and how long the step is when nobody is late."""

    parts: Parts
    cast: Cast
    seconds: float

    @property
    def operations(self) -> int:
        """How many operations a step has, over all replicas."""
        kinds, chunks, microbatches = self.parts.program.dims
        return kinds * chunks * microbatches * self.cast.replicas

    def steps(self, drawn: Sequence[Drawn], number: int) -> Floats:
        """Return the time of so many steps, [step] in s; each generator serves its own effect."""
        return np.concatenate([self.parts.finished(self.ends(one)) for one in self.blocks(drawn, number)])

    def blocks(self, drawn: Sequence[Drawn], number: int) -> Iterator[Work]:
        """Yield so many steps, some at a time, before anybody waits: each generator serves its own effect."""
        block = max(1, _CELLS // self.operations)
        for first in range(0, number, block):
            yield self._work([one.again() for one in drawn], min(block, number - first))

    def ends(self, work: Work) -> Ends:
        """Return when each stage of each replica is done with its work."""
        over, trials = self.parts.over(work.durations), work.slower.shape[1]
        last = self.parts.ends(work.durations, work.delays)
        shape = (len(last), trials, last.shape[2])
        return Ends(np.broadcast_to(last, shape), np.broadcast_to(over, shape), work.slower)

    def _work(self, drawn: Sequence[Drawn], trials: int) -> Work:
        lasting = [one for one in drawn if one.effect.persistence != "operation"]
        each = [one for one in drawn if one.effect.persistence == "operation"]
        slower = self._slower(lasting, trials)
        durations = self._durations(lasting, each, slower, trials)
        return Work(durations, self._delays(lasting, each, slower, trials), slower)

    def _slower(self, lasting: list[Drawn], trials: int) -> Floats:
        """The factor of what groups say, [stage, trial, replica]."""
        found = np.ones((1, trials, 1))
        alike = [one for one in lasting if one.effect.place == "bandwidth" and one.effect.target.each != "link"]
        return found * together(self.cast, alike, trials) if alike else found

    def _durations(self, lasting: list[Drawn], each: list[Drawn], slower: Floats, trials: int) -> Floats:
        """[kind, turn, stage, micro-batch, trial, replica] in s."""
        durations = self.parts.compute[:, :, :, None, None, None] * self._factors(lasting, trials)
        for effect, rng, _ in each:
            if effect.unit == "factor" and effect.place in {"compute", "host"}:
                durations = self._multiplied(durations, effect, self._operations(effect, trials, rng))
        durations = _plus(durations, self._said(each, slower, trials))
        for effect, rng, _ in each:
            if effect.unit == "s" and effect.place in {"compute", "host"}:
                durations = self._added(durations, effect, trials, rng)
        return self._interrupted(durations, lasting, trials)

    def _said(self, each: list[Drawn], slower: Floats, trials: int) -> Floats:
        """What is said in each operation and hidden by nothing."""
        found = self.parts.said[:, :, :, None, None, None] * slower[:, None]
        for effect, rng, _ in each:
            if effect.place == "bandwidth" and effect.target.each != "link":
                found = self._multiplied(found, effect, self._operations(effect, trials, rng))
        return found

    def _factors(self, lasting: list[Drawn], trials: int) -> Floats:
        """The factors of compute that last a step, [kind, 1, stage, 1, trial, replica]."""
        found = np.ones((len(self.parts.compute), 1, 1, 1, 1, 1))
        for passes, alike in _alike(lasting, "factor"):
            factor = together(self.cast, alike, trials)[:, None]
            found = np.broadcast_to(found, np.broadcast_shapes(found.shape, factor.shape)).copy()
            for name in passes:
                found[_PASSES[name]] *= factor
        return found

    def _operations(self, effect: Effect, trials: int, rng: Generator) -> Floats:
        """What is drawn anew for each operation, or for each micro-batch where all stages of a pipeline are alike."""
        kinds, chunks, microbatches = self.parts.program.dims
        stages, members, replicas = self.cast.shape(effect.target)
        alone = effect.target.each in {"replica", "all"}
        kinds, turns = (1, 1) if alone else (kinds, chunks // self.cast.stages)
        shape = (kinds, turns, stages, microbatches, trials, replicas)
        if not effect.target.chosen:
            return self.cast.slowest(effect.law, members, rng, shape)
        share = struck(self.cast, effect.target, trials, rng)[:, None]
        found = effect.nothing + share * (effect.law.sample(rng, shape) - effect.nothing)
        return np.maximum(found, effect.nothing) if members > 1 and self.cast.waits else found

    def _multiplied(self, durations: Floats, effect: Effect, factor: Floats) -> Floats:
        """The durations of the passes that an effect hits, multiplied."""
        if set(effect.passes) == set(_PASSES):
            return _times(durations, factor)
        found = np.broadcast_to(durations, np.broadcast_shapes(durations.shape, factor.shape)).copy()
        for name in effect.passes:
            found[_PASSES[name]] *= factor[_PASSES[name]] if len(factor) > 1 else factor
        return found

    def _added(self, durations: Floats, effect: Effect, trials: int, rng: Generator) -> Floats:
        """Seconds of each operation, or of each interruption while it works."""
        if not effect.rate:
            return durations + self._operations(effect, trials, rng)
        kinds, chunks, microbatches = self.parts.program.dims
        stages, members, replicas = self.cast.shape(effect.target)
        shape = (kinds, chunks // self.cast.stages, stages, microbatches, trials, replicas)
        often = durations * effect.rate
        if effect.target.chosen:
            often = often * struck(self.cast, effect.target, trials, rng)[:, None]
        often = np.broadcast_to(often, shape)
        each = [_sum_of(effect.law, rng.poisson(often).astype(float), rng) for _ in range(members)]
        found: Floats = durations + self.cast.gathered(np.stack(each)[None])[0]
        return found

    def _interrupted(self, durations: Floats, lasting: list[Drawn], trials: int) -> Floats:
        """The durations, and what comes once a step: with one operation of each that it hits."""
        for unit, scale in (("s", 1.0), ("step", self.seconds)):
            for passes, alike in _alike(lasting, unit):
                seconds = together(self.cast, alike, trials) * scale
                seconds = np.broadcast_to(seconds, (len(seconds), trials, seconds.shape[2]))
                if seconds.any():
                    durations = self._once(durations, seconds, alike[0], passes[0])
        return durations

    def _once(self, durations: Floats, seconds: Floats, one: Drawn, name: str) -> Floats:
        """Seconds [stage, trial, replica] put before one micro-batch of the first turn.

        What holds up whole pipelines, or everybody at once, does so on stage 0: the others wait for it.
        """
        effect, rng, _ = one
        microbatches = self.parts.program.dims[2]
        shape = (*durations.shape[:2], self.cast.stages, microbatches, seconds.shape[1], self.cast.replicas)
        found = np.broadcast_to(durations, shape).copy()
        whole = effect.target.each in {"replica", "all"}
        stages = 1 if whole else self.cast.stages
        seconds = np.broadcast_to(seconds, (stages, seconds.shape[1], self.cast.replicas))
        stage, trial, replica = np.nonzero(seconds)
        first = effect.moment == "first" or effect.target.each == "all"
        microbatch = np.zeros_like(stage) if first else rng.integers(microbatches, size=stage.size)
        kind = 0 if name == "forward" else 1
        found[kind, 0, stage, microbatch, trial, replica] += seconds[stage, trial, replica]
        return found

    def _delays(self, lasting: list[Drawn], each: list[Drawn], slower: Floats, trials: int) -> Floats:
        """Delays of messages, [kind, turn, stage, micro-batch, trial, replica] in s."""
        stages = self.cast.stages
        both = np.maximum(slower, np.roll(slower, -1, axis=0)) if len(slower) == stages else slower
        links = self.parts.delays[:, None, None] * both
        late = [one for one in lasting if one.effect.place == "latency" or one.effect.target.each == "link"]
        factors, seconds = ([one for one in late if one.effect.unit == unit] for unit in ("factor", "s"))
        links = links * together(self.cast, factors, trials) if factors else links
        links = links + together(self.cast, seconds, trials) if seconds else links
        found = self.parts.links(links)
        for effect, rng, _ in each:
            if effect.place == "latency" or effect.target.each == "link":
                more = self._operations(effect, trials, rng)
                found = found * more if effect.unit == "factor" else found + more
        return found


def _times(durations: Floats, factor: Floats) -> Floats:
    """The product, in the factor's own memory where it has the shape, for it is the largest there is."""
    shape = np.broadcast_shapes(durations.shape, factor.shape)
    return np.multiply(durations, factor, out=factor if factor.shape == shape else None)


def _plus(durations: Floats, more: Floats) -> Floats:
    """The sum, in the durations' own memory where they have the shape."""
    shape = np.broadcast_shapes(durations.shape, more.shape)
    return np.add(durations, more, out=durations if durations.shape == shape else None)


def _alike(lasting: list[Drawn], unit: str) -> Iterator[tuple[tuple[str, ...], list[Drawn]]]:
    """The effects on what is computed that last a step, by the passes and the moment that they hit."""
    found = defaultdict[tuple[object, ...], list["Drawn"]](list)
    for one in lasting:
        effect = one.effect
        if effect.unit == unit and effect.place in {"compute", "host"}:
            once = unit != "factor"
            key = (effect.passes, effect.moment, effect.target.each if once else "")
            found[key].append(one)
    for alike in found.values():
        yield alike[0].effect.passes, alike


def _sum_of(law: Law, times: Floats, rng: Generator) -> Floats:
    """Sums of so many draws: gamma draws with the mean and variance of the sum, exact for none."""
    if not law.sd:
        return times * law.mean
    shape = (law.mean / law.sd) ** 2
    drawn = rng.standard_gamma(np.maximum(times, 1.0) * shape) * (law.sd**2 / law.mean)
    return np.where(times > 0, drawn, 0.0)
