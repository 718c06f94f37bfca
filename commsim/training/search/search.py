"""Which plan is the best, and why not the others?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from commsim.errors import InputError
from commsim.libraries.own import own
from commsim.training.chunks import pieces
from commsim.training.estimate import Estimate, recipe_of
from commsim.training.fitting import modules, options
from commsim.training.plan import Plan
from commsim.training.search.choices import Choices
from commsim.training.search.cuts import Cuts
from commsim.training.search.found import Found
from commsim.training.search.front import front
from commsim.training.search.job import Job
from commsim.training.search.ranking import REACH, Ranking, ranking
from commsim.training.search.space import space
from commsim.training.search.why import why_slower
from commsim.training.setting import Setting, given
from commsim.units import counted, show

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from commsim.hardware.system import System
    from commsim.libraries.library import Library
    from commsim.training.model import Model

TOP = 10


@dataclass(frozen=True, eq=False)
class Search:
    """Every plan of a model on a system that divides, those that fit, and the best of them.

    `divide` plans divide; of the others the `ranking` knows the step time of each that can be among the `wanted`
    quickest, or on the front of time and memory.
    """

    job: Job
    divide: int
    ranking: Ranking
    wanted: int

    def top(self, count: int = TOP) -> tuple[Found, ...]:
        """Return the quickest plans; InputError for more than were searched for."""
        if not 1 <= count <= self.wanted:
            raise InputError("search: top", count, f"1 to {self.wanted} belong here; search with top={count} for more")
        return tuple(self.found(place) for place in self._order[:count].tolist())

    @property
    def shown(self) -> int:
        """How many plans there are to show: those wanted, or all that fit."""
        return min(self.wanted, len(self._order))

    @property
    def best(self) -> Found:
        """The quickest."""
        return self.top(1)[0]

    @cached_property
    def pareto(self) -> tuple[Found, ...]:
        """The plans that no other beats in time and in memory, the quickest first; up to twice as slow as that."""
        return tuple(self.found(place) for place in self.front.tolist())

    @cached_property
    def front(self) -> NDArray[np.intp]:
        """The numbers of the same in the ranking."""
        best = front(self.ranking.seconds, self.ranking.memory)
        seconds = self.ranking.seconds[best]
        near: NDArray[np.intp] = best[seconds < seconds[0] * REACH]
        return near

    def found(self, place: int) -> Found:
        """Return one plan of the ranking, by number."""
        made, first = self.estimate(place), self._first
        seconds, memory = float(self.ranking.seconds[place]), float(self.ranking.memory[place])
        why = "" if place == self._order[0] else why_slower(made.step, first.step)
        return Found(made.setting.plan, made.setting.recipe, seconds, memory, why)

    def estimate(self, place: int) -> Estimate:
        """Return the estimate of one plan of the ranking: what `commsim.estimate` says of it."""
        job, plans = self.job, self.ranking.space
        recompute = job.choices.recompute[int(plans.recompute[place])]
        recipe = replace(job.recipe, micro_batch=int(plans.micro_batch[place]), recompute=recompute)
        return Estimate(Setting(job.model, plans.plan(place, recipe), recipe, job.system), job.library)

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        """What is known of every plan that was timed, the quickest first: its sizes, step_time_s and memory_bytes."""
        plans, order = self.ranking.space, self._order
        sizes = {field.name: getattr(plans, field.name)[order] for field in fields(plans)}
        sizes["recompute"] = np.array(self.job.choices.recompute)[sizes["recompute"]]
        return sizes | {"step_time_s": self.ranking.seconds[order], "memory_bytes": self.ranking.memory[order]}

    def __str__(self) -> str:
        """The best plans, a line each."""
        job, timed = self.job, len(self._order)
        counts = f"{self.divide:,} plans divide, {len(self.ranking.space):,} fit, {timed:,} timed"
        best = self.top(self.shown)
        return "\n".join(
            [
                f"{job.model.name} on {counted(job.system.gpus, 'GPU')} of {job.system.name}: {counts}",
                *(f"{show(one.step_time, 's', 4):>10}  {show(one.memory, 'B', 3):>8}  {one}" for one in best),
            ]
        )

    @cached_property
    def _order(self) -> NDArray[np.intp]:
        """The plans whose time is known, the quickest first, of equals the smallest."""
        order = np.lexsort((self.ranking.memory, self.ranking.seconds))
        timed: NDArray[np.intp] = order[np.isfinite(self.ranking.seconds[order])]
        return timed

    @cached_property
    def _first(self) -> Estimate:
        return self.estimate(int(self._order[0]))


def search(
    model: Model,
    system: System,
    *,
    library: Library | None = None,
    top: int = TOP,
    every: bool = False,
    **choices: Any,  # noqa: ANN401 - the fields of Choices and of Recipe
) -> Search:
    """Return the best of all plans that divide; the keywords limit what is chosen, or are fields of `Recipe`.

    `tensor`, `context`, `expert`, `pipeline`, `virtual`, `data`, `zero`, `micro_batch` and `recompute` are what each
    may be, one or several; `global_batch` must be given. `every` times all plans, also those that cannot be among the
    best. InputError when no plan divides, when none fits, and for what no plan could do.
    """
    names = [field.name for field in fields(Choices)]
    chosen = Choices(**{name: _several(choices.pop(name)) for name in names if name in choices})
    if choices.get("recompute_layers") is not None:
        expected = "all layers of a plan are recomputed alike; leave it out"
        raise InputError("search: recompute_layers", choices["recompute_layers"], expected)
    if not isinstance(top, int) or isinstance(top, bool) or top < 1:
        raise InputError("search: top", top, "a whole number of at least 1 belongs here")
    recipe = recipe_of("search", model, system, choices)
    job = _checked(Job(model, system, own(system, library), recipe, chosen))
    plans = space(model, job.recipe, system.gpus, job.choices)
    return Search(job, len(plans), ranking(job, plans, top, every=every), top)


def _several(value: object) -> Any:  # noqa: ANN401 - Choices looks at it
    """One or several as several."""
    if value is None or isinstance(value, str) or not isinstance(value, Iterable):
        return value if value is None else (value,)
    return tuple(value)


def _checked(job: Job) -> Job:
    """The job without ways to recompute what the model does not have; InputError for what no plan could do."""
    setting = Cuts(job.model, Plan(), job.recipe, job.system, given(job.recipe, 1.0, 1.0, 1.0, 1.0))
    for error in options(setting):
        raise error
    present = modules(pieces(setting))
    ways = [way for way in job.choices.recompute if replace(job.recipe, recompute=way).recomputed <= present]
    if not ways:
        expected = f"{job.model.name} has no such module"
        raise InputError("recompute", job.choices.recompute[0], expected, among=sorted(present))
    choices = replace(job.choices, recompute=tuple(ways))
    return replace(job, choices=choices, recipe=replace(job.recipe, recompute=ways[0]))
