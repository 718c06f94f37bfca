"""Why is a collective slower than it should be? Known causes, each held against the measured curve."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from commsim.measurement.check.causes.cause import Suspect, suspect
from commsim.measurement.check.causes.table import CAUSES

if TYPE_CHECKING:
    from commsim.measurement.check.expected import Expected

__all__ = ["CAUSES", "Suspect", "suspects"]
OPEN = 0.06
"""What each e-fold of freedom costs a cause, as a share of what is missing."""
WORTH_SAYING = 0.5
"""The share of what is missing that a cause must explain; one that the run's own settings name need not."""


def suspects(of: Expected) -> tuple[Suspect, ...]:
    """Return the causes that explain a low curve: those that the run's settings name first, then by how well they do.

    What a cause leaves open counts against it: a share that may be anything explains anything. What a named change of
    the library costs is known: where that is little it is not why, and comes with the others.
    """
    settings = " ".join(f"{name}={value}" for name, value in of.table.settings.items())
    found = [suspect(cause, of, settings) for cause in CAUSES if cause.applies(of) and not cause.ruled_out(settings)]
    named = [one for one in found if one.evidence or one.explained >= WORTH_SAYING]
    return tuple(sorted(named, key=_doubt))


def _doubt(one: Suspect) -> tuple[bool, float]:
    """What cause comes before another: the lesser."""
    told = one.evidence and (one.cause.without is None or one.explained >= WORTH_SAYING)
    return not told, OPEN * math.log(one.freedom) - one.explained
