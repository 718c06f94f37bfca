"""How long does each plan take that may be among the best, and which ones need not be asked?

What cannot be among the quickest, nor on the front of time and memory, is ruled out by what it takes at least: first by
its compute alone, which needs no price, then by a bound of its pipeline, which needs no solving.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from commsim.errors import InputError
from commsim.training.search.found import spelled
from commsim.training.search.front import beaten, front
from commsim.training.search.silent import Silent
from commsim.training.search.table import Table
from commsim.units import show

if TYPE_CHECKING:
    from commsim.training.search.job import Job
    from commsim.training.search.space import Space

Floats = NDArray[np.float64]
Places = NDArray[np.intp]
FIRST, GROWTH = 1024, 64
"""Plans that are priced first, and how many times as many come next."""
REACH = 2.0
"""How many times as long as the first a plan may take that is still of interest for its small memory."""


class Ranking(NamedTuple):
    """Plans that fit in memory, their bytes on the fullest rank, and their step times; NaN where ruled out."""

    space: Space
    memory: Floats
    seconds: Floats


def ranking(job: Job, plans: Space, top: int, *, every: bool = False) -> Ranking:
    """Return the plans that fit, with the time of each that may be among the `top` or on the front; of all if `every`.

    The front ends where plans take `REACH` times as long as the first. InputError when none fits: it names the one that
    is nearest to fitting.
    """
    memory, least = _unpriced(replace(job, library=Silent()), plans)
    fits = np.flatnonzero(memory <= float(job.system.accelerator.memory))
    if not len(fits):
        raise _too_large(job, plans, memory)
    found = Ranking(plans.of(fits), memory[fits], np.full(len(fits), np.nan))
    table = Table(job, found.space)
    if every:
        for alike in table.courses:
            found.seconds[alike.plans] = table.steps(alike).seconds
        return found
    least, asked = least[fits], np.zeros(len(fits), dtype=bool)
    size = FIRST
    while len(now := _next(found, least, asked, top)[:size]):
        _time(table, found, now, top)
        asked[now] = True
        size *= GROWTH
    return found


def _next(found: Ranking, least: Floats, asked: NDArray[np.bool_], top: int) -> Places:
    """The plans that were not asked and may be among the best, those first that take least."""
    left = np.flatnonzero(~asked)
    left = left[_Best.of(found, top).may(least[left], found.memory[left])]
    return left[np.argsort(least[left], kind="stable")]


class _Best(NamedTuple):
    """What is known of the best: the seconds of the last that is wanted, and the front of seconds and of memory."""

    last: float
    most: float
    seconds: Floats
    memory: Floats

    @classmethod
    def of(cls, found: Ranking, top: int) -> _Best:
        """Return what is known where the seconds of some plans are."""
        solved, best = np.sort(found.seconds[np.isfinite(found.seconds)]), front(found.seconds, found.memory)
        last = float(solved[top - 1]) if len(solved) >= top else np.inf
        most = float(solved[0]) * REACH if len(solved) else np.inf
        return cls(last, most, found.seconds[best], found.memory[best])

    def may(self, bound: Floats, memory: Floats) -> NDArray[np.bool_]:
        """Return whether plans that take at least so long may be among the best."""
        on_front = (bound < self.most) & ~beaten(bound, memory, (self.seconds, self.memory))
        found: NDArray[np.bool_] = (bound < self.last) | on_front
        return found


def _time(table: Table, found: Ranking, plans: Places, top: int) -> None:
    """Enter the seconds of those of the plans that may be among the best, those first that are by their bounds."""
    asked = np.zeros(len(found.space), dtype=bool)
    asked[plans] = True
    parts = [(alike, alike.plans[asked[alike.plans]]) for alike in table.courses]
    steps = [table.steps(alike, ours) for alike, ours in parts if len(ours)]
    plans = np.concatenate([ours for _, ours in parts])
    sizes = [len(one.runs) for one in steps]
    course, inside = np.repeat(np.arange(len(steps)), sizes), np.concatenate([np.arange(size) for size in sizes])
    bounds = np.concatenate([one.bound for one in steps])
    left, memory, size = np.arange(len(plans)), found.memory[plans], top
    while len(left := left[_Best.of(found, top).may(bounds[left], memory[left])]):
        now = _promising(bounds[left], memory[left], size)
        for number in np.unique(course[left[now]]):
            ours = left[now][course[left[now]] == number]
            found.seconds[plans[ours]] = steps[number].of(inside[ours]).seconds
        left, size = np.delete(left, now), size * 2


def _promising(bound: Floats, memory: Floats, count: int) -> Places:
    """Return the plans that would be among the best, so many or on the front, if bounds were times: few others are."""
    on_front = front(bound, memory)
    near = on_front[bound[on_front] < bound[on_front[0]] * REACH]
    return np.union1d(near, np.argsort(bound, kind="stable")[:count])


def _unpriced(job: Job, plans: Space) -> tuple[Floats, Floats]:
    """The memory of each plan, and what it takes at least where nothing that is said takes time; infinite if large."""
    table = Table(job, plans)
    memory, least = np.empty(len(plans)), np.full(len(plans), np.inf)
    most = float(job.system.accelerator.memory)
    for alike in table.courses:
        steps = table.steps(alike)
        memory[alike.plans] = steps.held.total
        fits = np.flatnonzero(memory[alike.plans] <= most)
        if len(fits) > len(alike.plans) / 2:  # all are sooner done than some chosen
            least[alike.plans[fits]] = steps.bound[fits]
        elif len(fits):
            least[alike.plans[fits]] = steps.of(fits).bound
    return memory, least


def _too_large(job: Job, plans: Space, memory: Floats) -> InputError:
    """The error that no plan fits."""
    nearest, most = int(np.argmin(memory)), float(job.system.accelerator.memory)
    needs = f"{show(memory[nearest], 'B', 3)} of {show(most, 'B', 3)}"
    way = job.choices.recompute[int(plans.recompute[nearest])]
    recipe = replace(job.recipe, micro_batch=int(plans.micro_batch[nearest]), recompute=way)
    plan = spelled(plans.plan(nearest, recipe), recipe)
    expected = f"none of {len(plans):,} plans fits; the nearest, {plan}, needs {needs}"
    return InputError(f"search: {job.model.name}", f"{job.system.gpus} GPUs of {job.system.name}", expected)
