"""How near do predictions come to measurements?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from commsim.errors import InputError
from commsim.plots.canvas import INK, MARKERS, PALETTE, canvas, sign

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from commsim.validation.collectives import Validation as Collectives
    from commsim.validation.moe import Validation as Moe
    from commsim.validation.training import Validation


class Compared(Protocol):
    """What was measured beside what is predicted, s."""

    @property
    def measured(self) -> float:
        """What others measured."""
        ...

    @property
    def predicted(self) -> float:
        """What commsim predicts."""
        ...


def agreement(validation: Validation) -> Figure:
    """Return predicted against measured step times, a colour for each GPU; InputError when nothing was compared."""
    return _drawn(validation.cases_by("GPU"), "step time", "published training results", "published")


def collective_agreement(validation: Collectives) -> Figure:
    """Return predicted against measured times of collectives, a colour for each machine; InputError without any."""
    return _drawn(validation.cases_by("machine"), "time of a collective", "measured collectives")


def moe_agreement(validation: Moe) -> Figure:
    """Return predicted against measured times of dispatch and combine, a colour for each mode; InputError without."""
    return _drawn(validation.cases_by("mode"), "time of a dispatch or combine", "measured dispatches and combines")


def _drawn(named: Mapping[str, Sequence[Compared]], what: str, title: str, how: str = "measured") -> Figure:
    figure, axes = canvas(7.0, 6.0)
    _scatter(axes, named, what)
    axes.set_title(f"{sum(map(len, named.values())):,} {title}", loc="left", weight="bold")
    sign(figure, f"to the right: as its source {how} it; upwards: as estimated")
    return figure


def _scatter(axes: Axes, named: Mapping[str, Sequence[Compared]], what: str) -> None:
    """Draw cases, predicted (s) over measured (s), a colour and marker for each name; InputError without any."""
    every = [case.measured for cases in named.values() for case in cases]
    if not every:
        raise InputError("plot", "no results", "at least one that was compared belongs here")
    for number, (name, cases) in enumerate(named.items()):
        measured, predicted = [case.measured for case in cases], [case.predicted for case in cases]
        colour, marker = PALETTE[number % len(PALETTE)], MARKERS[number // len(PALETTE) % len(MARKERS)]
        axes.scatter(measured, predicted, s=14, alpha=0.7, lw=0, color=colour, marker=marker, label=name)
    ends = np.array(axes.get_xlim()).clip(min=min(every) / 2)
    axes.plot(ends, ends, color=INK, lw=1, label="as measured")
    axes.fill_between(ends, ends / 1.2, ends * 1.2, color=INK, alpha=0.08, lw=0, label="20 % off")
    axes.set(xscale="log", yscale="log", xlabel=f"{what} published, s", ylabel=f"{what} estimated, s")
    axes.legend(frameon=False, fontsize=8, loc="lower right")
