"""What does a formula say of one cause alone, where there is one?

Without a pipeline all replicas do their micro-batches one after the other and wait for each other once, so that a step
is a maximum: exact by its integral for what stays within a step, near by the central limit for what is drawn anew.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from commsim.stragglers.laws import Constant, Normal
from commsim.stragglers.maxima import Maximum

if TYPE_CHECKING:
    from commsim.stragglers.effects import Effect
    from commsim.stragglers.kinds import Straggler
    from commsim.stragglers.simulate import Stage


class Closed(NamedTuple):
    """A slowdown by a formula: its name, and whether it is exact."""

    slowdown: float
    how: str
    exact: bool


def closed(stage: Stage, cause: Straggler) -> Closed | None:
    """Return the slowdown of one cause alone by a formula; None where there is none.

    There is one for a single stage whose synchronisation hides behind nothing that is late, and a single effect on what
    is computed or on what holds processes up.
    """
    if not cause.effects:
        return Closed(1.0, "no effect on a step", exact=True)
    if stage.cast.stages > 1 or len(cause.effects) > 1 or stage.parts.early:
        return None
    (effect,) = cause.effects
    if effect.place not in {"compute", "host"} or effect.rate or len(effect.passes) < stage.parts.passes(effect):
        return None
    found = _times(stage, effect) if effect.unit == "factor" else _added(stage, effect)
    return found and found._replace(slowdown=1 + found.slowdown / stage.seconds)


def _times(stage: Stage, effect: Effect) -> Closed | None:
    """What a factor adds to the step, s."""
    microbatches, compute = stage.parts.program.dims[2], stage.parts.compute
    whole = float(compute.sum()) * microbatches
    if effect.persistence != "operation":
        found = _largest(stage, effect)
        return found and found._replace(slowdown=(found.slowdown - 1) * whole)
    if effect.target.chosen or effect.target.each in {"rank", "stage", "link"}:
        return None
    one_draw = effect.target.each in {"replica", "all"}
    squares = float(compute.sum()) ** 2 if one_draw else float((compute**2).sum())
    many = 1 if effect.target.each == "all" else stage.cast.replicas
    members = stage.cast.shape(effect.target)[1]
    law = Maximum(effect.law, members) if members > 1 else effect.law
    spread = math.sqrt(microbatches * squares) * law.sd * Maximum(Normal(), many).mean
    return Closed((law.mean - 1) * whole + spread, f"central limit, largest of {many}", exact=False)


def _added(stage: Stage, effect: Effect) -> Closed | None:
    """What seconds, or parts of a step, add to it."""
    scale = stage.seconds if effect.unit == "step" else 1.0
    found = None if effect.persistence == "operation" else _largest(stage, effect)
    return found and found._replace(slowdown=found.slowdown * scale)


def _largest(stage: Stage, effect: Effect) -> Closed | None:
    """What is expected of the slowest of those that an effect hits."""
    target, law = effect.target, effect.law
    of = math.prod(stage.cast.shape(target))
    if not target.chosen:
        return Closed(Maximum(law, of).mean, f"E[largest of {of:,}]" if of > 1 else "mean", exact=True)
    if isinstance(law, Constant):
        hit = max(law.value, effect.nothing) if target.count != of else law.value
        return Closed(hit, "the step waits for whom it hits", exact=True)
    return None
