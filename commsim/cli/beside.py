"""How is that shown which stands beside an estimate: a measured step, figures of the machine?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.markup import escape

from commsim.cli.output import points, table
from commsim.libraries.calibration import COPYING
from commsim.training.comparing.gap import Gap
from commsim.training.comparing.sensitivity import rest
from commsim.units import show

if TYPE_CHECKING:
    from rich.console import RenderableType

    from commsim.training.comparing.sensitivity import Sensitivity

MOST = 8
"""Figures, and reasons, that people are shown; JSON has them all."""
LEAST, SOME = 0.0005, 0.01
"""The least elasticity, and the least share of the step that depends on nothing, that people are shown."""
_CHANNELS = (
    "channels: the library's kernels copy more slowly than links carry, quicker links change nothing where they do"
)


def beside(found: Gap | tuple[Sensitivity, ...]) -> list[RenderableType]:
    """Return a gap, or sensitivities, as lines and tables."""
    return _gap(found) if isinstance(found, Gap) else _sensitivities(found)


def _gap(found: Gap) -> list[RenderableType]:
    longer = "longer" if found.ratio > 1 else "shorter"
    said = f"measured {show(found.measured, 's', 4)}, {abs(found.ratio - 1):.0%} {longer}"
    if found.quiet:
        return ["", f"[bold]{said}[/]: as runs differ from day to day"]
    if not found.reasons:
        return ["", f"[bold]{said}[/]: no single reason that commsim knows explains it"]
    listed = table("", "")
    listed.show_header = False
    for place, one in enumerate(found.reasons[:MOST], 1):
        left = f" ({one.left:.0%} left)" if one.left < 1 else ""
        listed.add_row(f"{place}.", f"[bold]{escape(one.reason.title)}[/]{left}: {show(one.seconds, 's', 4)}")
        listed.add_row("", f"[dim]try: {escape(one.reason.advice)}[/]")
    return ["", f"[bold]{said}; what would explain it alone[/]", listed]


def _sensitivities(found: tuple[Sensitivity, ...]) -> list[RenderableType]:
    listed = table("what the step depends on", ">1 % more of it", ">step with twice of it")
    shown = [one for one in found if abs(one.elasticity) >= LEAST][:MOST]
    for one in shown:
        listed.add_row(f"  {escape(one.figure)}", f"{one.elasticity:+.3f} %", show(one.doubled, "s", 4))
    limited = [_CHANNELS] if any(one.figure == COPYING for one in shown) else []
    left = [f"{rest(found):.0%} of the step depends on none: calls, messages, hosts"] if rest(found) > SOME else []
    return ["", listed, *points("which means", [*limited, *left])]
