"""Which figure of the machine matters most to a step, and how much of it depends on none?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from commsim.libraries.calibration import COPYING, Case

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from commsim.training.estimate import Estimate
    from commsim.units import Seconds

NUDGE = 1.01
RATES = ("compute", "memory", COPYING)
"""Rates that are no link's: of matrix and vector units, of memory, of the blocks in which a library's kernels copy."""


@dataclass(frozen=True)
class Sensitivity:
    """A figure of the machine: the elasticity of the step time to it, and the step with twice of it, s.

    Elasticity is d log(step time) / d log(figure): -0.7 means that 1 % more of it makes the step 0.7 % shorter.
    """

    figure: str
    what: str
    elasticity: float
    doubled: Seconds


def sensitivity(estimate: Estimate) -> tuple[Sensitivity, ...]:
    """Return how the step time depends on compute, memory, channels and each kind of link, the strongest first.

    Of links bandwidth and latency are told apart; half the latency stands for twice of the figure. Where channels copy
    more slowly than links carry, quicker links change nothing. What is not used is left out.
    """
    found = [_sensitivity(estimate, figure, what, case) for figure, what, case in _figures(estimate)]
    return tuple(sorted((one for one in found if abs(one.elasticity) > _NONE), key=lambda one: one.elasticity))


_NONE = 1e-5


def rest(found: Iterable[Sensitivity]) -> float:
    """Return the share of the step that depends on no figure of the machine: calls, messages, hosts."""
    return 1 + sum(one.elasticity for one in found)


def _figures(estimate: Estimate) -> Iterator[tuple[str, str, str]]:
    for name in RATES:
        yield name, name, "faster"
    for link in estimate.setting.system.topology.kinds:
        yield f"{link.kind} bandwidth", link.kind, "faster"
        yield f"{link.kind} latency", link.kind, "sooner"


def _sensitivity(estimate: Estimate, figure: str, what: str, how: str) -> Sensitivity:
    cases = [Case(faster=pair) if how == "faster" else Case(sooner=pair) for pair in (((what, NUDGE),), ((what, 2.0),))]
    nudged, doubled = (estimate.at(case).seconds for case in cases)
    elasticity = math.log(nudged / estimate.step_time) / math.log(NUDGE)
    return Sensitivity(figure, what, elasticity, doubled)
