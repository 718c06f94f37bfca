"""How long is a step with a mitigation, and what is lost for it?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from commsim.stragglers.drawing import Drawing
from commsim.stragglers.mitigations.balance import UnevenLayers
from commsim.stragglers.mitigations.mitigation import Case, Ended, Mitigation
from commsim.stragglers.parts import Ends

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commsim.stragglers.laws.law import Floats
    from commsim.stragglers.run import Run

_STEPS = 1000


@dataclass(frozen=True, eq=False)
class Outcome:
    """Steps without and with a mitigation, [step] in s, and what is lost for it.

    lost: the share of the samples, or of the GPUs, whose work does not count.
    """

    mitigation: Mitigation
    before: Floats
    after: Floats
    lost: float

    @property
    def speedup(self) -> float:
        """The mean step without over that with it."""
        return float(self.before.mean() / self.after.mean())

    @property
    def gain(self) -> float:
        """The same in samples that count, for each GPU."""
        return self.speedup * (1 - self.lost)


def mitigate(run: Run, mitigation: Mitigation) -> Outcome:
    """Return what a mitigation does to the steps of a run, which are drawn anew from its seed.

    Where it looks at several steps together, both are steps of jobs as long. InputError when it mends nothing there is.
    """
    if isinstance(mitigation, UnevenLayers) and mitigation.layers is None:
        mitigation = replace(mitigation, layers=len(run.estimate.setting.model.layers) // run.stage.cast.stages)
    return outcome(Case(run.stage, run.causes), mitigation, run.drawing.fewer(run.stage, _STEPS))


def outcome(case: Case, mitigation: Mitigation, few: Drawing) -> Outcome:
    """Return what a mitigation does to a step with causes, over so many steps; errors as in `mitigate`."""
    jobs = max(1, few.number // mitigation.steps)
    drawing = few if mitigation.steps == 1 else Drawing(jobs * mitigation.steps, jobs, few.seed)
    before = list(_ended(case, Mitigation(), drawing, mitigation.steps))
    after = list(_ended(mitigation.mended(case), mitigation, drawing, mitigation.steps))
    dropped = float(np.mean([np.mean(one.dropped) for one in after]))
    lost = 1 - (1 - mitigation.lost(case)) * (1 - dropped)
    seconds = [np.concatenate([one.seconds for one in some]) for some in (before, after)]
    return Outcome(mitigation, seconds[0], seconds[1], lost)


def _ended(case: Case, mitigation: Mitigation, drawing: Drawing, steps: int) -> Iterator[Ended]:
    """The steps of one job after the other, or of many jobs of one step."""
    held: list[Ends] = []
    for work in drawing.work(case.stage, case.causes):
        held.append(case.stage.ends(mitigation.dealt(work)))
        if sum(one.last.shape[1] for one in held) >= steps:
            yield mitigation.ended(case.stage, _joined(held))
            held = []


def _joined(ends: list[Ends]) -> Ends:
    """The ends of some steps and then of others."""
    full = [Ends(one.last, one.over, np.broadcast_to(one.slower, one.last.shape)) for one in ends]
    return full[0] if len(full) == 1 else Ends(*(np.concatenate(part, axis=1) for part in zip(*full)))
