"""How many steps are drawn, of how many jobs, from which seed?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from commsim.errors import InputError
from commsim.stragglers.cast import Cast, Drawn
from commsim.stragglers.parts import parts
from commsim.stragglers.simulate import Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from commsim.stragglers.kinds import Straggler
    from commsim.stragglers.laws.law import Floats
    from commsim.stragglers.parts import Ends
    from commsim.stragglers.simulate import Work
    from commsim.training.estimate import Estimate

MOST = 10**8
"""Steps at most."""
_OPERATIONS = 3 * 10**7
"""Operations drawn for an answer that needs fewer draws than a run."""
_FEWEST = 20


@dataclass(frozen=True)
class Drawing:
    """So many steps of so many jobs, as many of each: what lasts for a job is drawn once for it."""

    number: int
    jobs: int
    seed: int

    def __post_init__(self) -> None:
        """Refuse no steps, and more jobs than steps; InputError."""
        bounds = (("steps", self.number, 1, MOST), ("seed", self.seed, 0, MOST), ("jobs", self.jobs, 1, self.number))
        for name, given, least, most in bounds:
            if not isinstance(given, int) or isinstance(given, bool) or not least <= given <= most:
                raise InputError(name, given, f"a whole number from {least} to {most} belongs here")

    def fewer(self, stage: Stage, most: int = 1000) -> Drawing:
        """Return a drawing of no more steps than that, and of fewer where they are large; jobs are as long."""
        most = min(most, self.number, max(_FEWEST, _OPERATIONS // stage.operations))
        return Drawing(most, max(1, self.jobs * most // self.number), self.seed)

    def steps(self, stage: Stage, causes: Sequence[Straggler], some: Iterable[int] | None = None) -> Floats:
        """Return the time of each step with some of the causes at work, or all of them, [step] in s."""
        return np.concatenate(list(self.finished(stage, causes, some)))

    def finished(
        self,
        stage: Stage,
        causes: Sequence[Straggler],
        some: Iterable[int] | None = None,
        finish: Callable[[Ends], Floats] | None = None,
    ) -> Iterator[Floats]:
        """Yield the times of some steps after the others, [step] in s, by the step's own end or another one."""
        ended = finish or stage.parts.finished
        for work in self.work(stage, causes, some):
            yield ended(stage.ends(work))

    def work(self, stage: Stage, causes: Sequence[Straggler], some: Iterable[int] | None = None) -> Iterator[Work]:
        """Yield the work of some steps after the others; those of a job are never mixed with another's."""
        drawn = self._drawn(causes, range(len(causes)) if some is None else some)
        if self.jobs == self.number:
            yield from stage.blocks(drawn, self.number)
            return
        for part in np.array_split(np.arange(self.number), self.jobs):
            yield from stage.blocks([_of_a_job(one) for one in drawn], len(part))

    def _drawn(self, causes: Sequence[Straggler], some: Iterable[int]) -> list[Drawn]:
        """Each effect with a generator of its own, whoever else is there."""
        seeds = np.random.SeedSequence(self.seed).spawn(len(causes))
        found = []
        for one in some:
            effects = causes[one].effects
            children = seeds[one].spawn(len(effects))
            found += [Drawn(effect, np.random.default_rng(child)) for effect, child in zip(effects, children)]
        return found


def staged(estimate: Estimate) -> Stage:
    """Return where the steps of an estimate are drawn."""
    known = parts(estimate)
    return Stage(known, Cast.of(estimate.setting.plan), known.seconds)


def _of_a_job(one: Drawn) -> Drawn:
    """What draws once for a job what lasts for it, and differently for the next."""
    return Drawn(one.effect, one.rng.spawn(1)[0], once=True) if one.effect.persistence == "job" else one
