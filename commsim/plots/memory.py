"""How far from the memory that there is are runs that fitted, and runs that did not?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commsim.errors import InputError
from commsim.plots.canvas import INK, PALETTE, canvas, sign

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from commsim.validation.memory import Validation

WIDEST = 2.5
"""Shares of the memory that are drawn; what needs more stands at the end."""


def shares(validation: Validation) -> Figure:
    """Return how many runs need which share of the memory, by what happened to them; InputError without any."""
    if not validation.cases:
        raise InputError("plot", "no runs", "at least one that was compared belongs here")
    figure, axes = canvas(7.0, 4.0)
    bins = np.linspace(0, WIDEST, 51)
    for fits, name, colour in ((True, "fitted", PALETTE[0]), (False, "ran out of memory", PALETTE[1])):
        drawn = [min(case.share, WIDEST) for case in validation.cases if case.fits == fits]
        told = validation.told(fits=fits)
        label = f"{name}: {told.right:,} of {told.count:,} told rightly"
        axes.hist(drawn, bins=bins.tolist(), color=colour, alpha=0.6, label=label)
    axes.axvline(1, color=INK, lw=1)
    axes.set(xlabel="estimated share of the memory that there is", ylabel="runs", xlim=(0, WIDEST))
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1 / WIDEST, 1.0))
    axes.set_title(f"{len(validation.cases):,} runs: does it fit?", loc="left", weight="bold")
    sign(figure, f"right of the line is said not to fit; at the end what needs {WIDEST:g} times and more")
    return figure
