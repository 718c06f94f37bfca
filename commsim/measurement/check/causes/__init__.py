"""Why is a collective slower than it should be? Known causes, each held against the measured curve."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commsim.measurement.check.causes.cause import Suspect, suspect
from commsim.measurement.check.causes.table import CAUSES

if TYPE_CHECKING:
    from commsim.measurement.check.expected import Expected

__all__ = ["CAUSES", "Suspect", "suspects"]
WORTH_SAYING = 0.5
"""The share of what is missing that a cause must explain; one that the run's own settings name need not."""


def suspects(of: Expected) -> tuple[Suspect, ...]:
    """Return the causes that explain a low curve: those that the run's settings name first, then by how well they do.

    Of two that explain it alike, the one that leaves less open comes first, as in the table.
    """
    settings = " ".join(f"{name}={value}" for name, value in of.table.settings.items())
    found = [suspect(cause, of, settings) for cause in CAUSES if cause.applies(of)]
    named = [one for one in found if one.evidence or one.explained >= WORTH_SAYING]
    return tuple(sorted(named, key=lambda one: (not one.evidence, round(1 - one.explained, 1))))
