"""Why is a plan slower than the first?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commsim.units import show

if TYPE_CHECKING:
    from commsim.training.steps import Step

_FEW, _SMALL, _NOTHING = 3, 0.001, 0.0005
"""So many reasons are told, none that is a smaller share of the step; what is less than the last share is nothing."""


def why_slower(step: Step, first: Step) -> str:
    """Return by how much a step is slower than the first, and what of it takes longer, on one line."""
    more = step.seconds - first.seconds
    if more < _NOTHING * first.seconds:
        return "as fast as the first"
    ours, theirs = _parts(step), _parts(first)
    differ = {name: ours.get(name, 0.0) - theirs.get(name, 0.0) for name in {**theirs, **ours}}
    told = {name: by for name, by in differ.items() if abs(by) > _SMALL * first.seconds}
    longer = sorted((name for name, by in told.items() if by > 0), key=lambda name: -told[name])[:_FEW]
    shorter = min((name for name, by in told.items() if by < 0), key=lambda name: told[name], default="")
    reasons = [f"{name} +{show(told[name], 's', 3)}" for name in longer]
    reasons += [f"{shorter} -{show(-told[shorter], 's', 3)}"] if shorter else []
    return f"+{more / first.seconds:.1%}: {', '.join(reasons) or 'a little of everything'}"


def _parts(step: Step) -> dict[str, float]:
    """The parts of a step by the names that people know."""
    parts = {"compute": step.compute, "bubble": step.bubble, "optimizer": step.optimizer}
    return parts | {f"exposed {axis}": seconds for axis, seconds in step.exposed.items()}
