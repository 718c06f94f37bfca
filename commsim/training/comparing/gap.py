"""A step takes longer, or shorter, than was estimated: which single reason explains it best?"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from commsim.errors import InputError
from commsim.libraries.calibration import Case
from commsim.training.comparing.reasons import REASONS, Reason
from commsim.training.estimate import Estimate

if TYPE_CHECKING:
    from commsim.units import Seconds, Share

STEPS = 12
"""Shares that are tried between the least and the most that may be left."""
WORTH_SAYING = 0.3
"""The share of the gap that a reason must explain."""
OPEN = 0.05
"""What a reason costs, as a share of the gap, where it is as strong as usual: what can be anything explains anything;
one that is twice as strong, on the scale of logarithms, costs twice as much."""
QUIET = 0.03
"""A gap of 3 % is none: runs differ by as much from day to day."""


@dataclass(frozen=True)
class Explained:
    """A reason with the step time that it gives, s, the share of the gap that it explains, and what it leaves."""

    reason: Reason
    seconds: Seconds
    share: Share
    left: Share = 1.0


@dataclass(frozen=True)
class Gap:
    """A measured step time beside the estimated one, s, and the reasons that explain the difference, the best first."""

    measured: Seconds
    estimated: Seconds
    reasons: tuple[Explained, ...]

    @property
    def ratio(self) -> float:
        """The measured time over the estimated one."""
        return self.measured / self.estimated

    @property
    def quiet(self) -> bool:
        """Whether the two agree as well as two runs do."""
        return abs(math.log(self.ratio)) <= QUIET


def gap(estimate: Estimate, measured: Seconds) -> Gap:
    """Return why a step that was estimated takes `measured` seconds, if it does; InputError when that is no time."""
    if not 0 < measured < math.inf:
        raise InputError("measured", measured, "a time above 0 s belongs here")
    found = Gap(measured, estimate.step_time, ())
    if found.quiet:
        return found
    tried = [_best(estimate, reason, measured) for reason in REASONS if reason.applies(estimate.setting)]
    told = [one for one in tried if one and one.share >= WORTH_SAYING]
    return dataclasses.replace(found, reasons=tuple(sorted(told, key=_cost)))


def _cost(one: Explained) -> float:
    return (OPEN * math.log(one.left) / math.log(one.reason.usual) if one.left < 1 else 0.0) - one.share


def _best(estimate: Estimate, reason: Reason, measured: Seconds) -> Explained | None:
    """The reason with the share left that comes nearest; None when the plan does not go with its options."""
    try:
        low, high = reason.left
        coarse = _nearest(estimate, reason, measured, (low, high))
        step = (high / low) ** (1 / (STEPS - 1))
        return _nearest(estimate, reason, measured, (max(low, coarse.left / step), min(high, coarse.left * step)))
    except InputError:
        return None


def _nearest(estimate: Estimate, reason: Reason, measured: Seconds, ends: tuple[Share, Share]) -> Explained:
    tried = [_explained(estimate, reason, left, measured) for left in _shares(*ends)]
    return max(tried, key=lambda one: one.share)


def _explained(estimate: Estimate, reason: Reason, left: Share, measured: Seconds) -> Explained:
    other = _with(estimate, reason.options(estimate.setting))
    slower = Case(faster=tuple((kind, left) for kind in reason.resources(estimate.setting)))
    seconds = other.at(slower).seconds
    missing = math.log(measured / estimate.step_time)
    return Explained(reason, seconds, max(0.0, 1 - abs(math.log(measured / seconds) / missing)), left)


def _with(estimate: Estimate, options: dict[str, Any]) -> Estimate:
    """The estimate with other options of the recipe; InputError where the setting does not go with them."""
    if not options:
        return estimate
    setting = estimate.setting
    changed = dataclasses.replace(setting, recipe=dataclasses.replace(setting.recipe, **options))
    return Estimate(changed, estimate.library)


def _shares(low: Share, high: Share) -> list[Share]:
    return [high] if low == high else [low * (high / low) ** (n / (STEPS - 1)) for n in range(STEPS)]
