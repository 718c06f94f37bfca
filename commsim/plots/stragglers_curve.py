"""What do causes cost on ever more GPUs?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commsim.errors import InputError
from commsim.plots.canvas import PALETTE, canvas, sign

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.figure import Figure

    from commsim.stragglers.curve import Point


_MOST = 4.0
"""What failures lose is drawn up to so many times the step."""


def slowdown_by_gpus(curves: Mapping[str, Sequence[Point]]) -> Figure:
    """Return the mean slowdown against the number of GPUs for each system, with p50 to p99; InputError without any."""
    if not any(curves.values()):
        raise InputError("plot", "no curve", "at least one system belongs here")
    figure, axes = canvas(8.0, 5.0)
    for number, (name, points) in enumerate(curves.items()):
        colour = PALETTE[number % len(PALETTE)]
        gpus = [point.gpus for point in points]
        mean, error = (np.array([getattr(point, what) for point in points]) for what in ("slowdown", "error"))
        axes.errorbar(gpus, mean, yerr=error, color=colour, lw=2, marker="o", ms=4, label=name)
        low, high = ([getattr(point, level) for point in points] for level in ("p50", "p99"))
        axes.fill_between(gpus, low, high, color=colour, alpha=0.15, lw=0)
        if any(point.lost for point in points):
            whole = np.array([point.slowdown * (1 + point.lost) for point in points])
            axes.plot(
                gpus,
                np.where(whole < _MOST * mean, whole, np.nan),
                color=colour,
                lw=1,
                ls="--",
                label=f"{name}, with what failures lose",
            )
    axes.axhline(1.0, color="#777777", lw=0.8)
    axes.set_xscale("log", base=10)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set(xlabel="GPUs", ylabel="step time over the ideal one")
    axes.set_title("slowdown by stragglers", loc="left", weight="bold")
    axes.grid(color="#dddddd", lw=0.6)
    axes.legend(frameon=False, fontsize=8, loc="upper left")
    sign(figure, "mean with its standard error, p50 to p99 shaded; each replica as estimated, ever more of them")
    return figure
