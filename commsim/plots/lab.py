"""What did the lab measure, beside what the model says?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commsim import __version__
from commsim.lab.faults import written
from commsim.plots.canvas import INK, PALE, PALETTE, canvas
from commsim.units import show_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from commsim.lab.experiment import Compared

_NEAR = 0.1
"""The share by which predictions may be off and still stand on the shaded bars."""


def beside(done: Sequence[Compared], name: str) -> Figure:
    """Return, for each trial, every iteration that was measured, their middle, and what was predicted."""
    figure, axes = canvas(8.0, 1.6 + 0.34 * len(done))
    for place, one in enumerate(done):
        middle, told = one.typical, one.trial.prediction.typical
        axes.barh(place, 2 * _NEAR * middle, left=middle * (1 - _NEAR), height=0.7, color="#eeeeee")
        axes.plot(one.seconds, np.full(len(one.seconds), place), "o", ms=4, mfc="none", mec=PALETTE[0], alpha=0.7)
        axes.plot([middle] * 2, [place - 0.33, place + 0.33], color=PALETTE[0], lw=2)
        axes.plot(told, place, "D", ms=6, color=PALETTE[1])
    axes.plot([], [], "o", ms=4, mfc="none", mec=PALETTE[0], label="measured, each iteration")
    axes.plot([], [], color=PALETTE[0], lw=2, label="their middle, with 10 % on both sides")
    axes.plot([], [], "D", ms=6, color=PALETTE[1], label="predicted")
    _name(axes, done)
    figure.suptitle(f"Collectives on {name}, a network on one machine", x=0.01, ha="left", weight="bold", fontsize=12)
    axes.legend(fontsize=8, loc="best", framealpha=0.9)
    note = f"gloo over TCP between network namespaces; predicted by commsim {__version__}"
    figure.supxlabel(note, fontsize=7, color=PALE, x=0.01, ha="left")
    return figure


def _name(axes: Axes, done: Sequence[Compared]) -> None:
    """Write on the axes what each row is."""
    labels = [_label(one) for one in done]
    axes.set_yticks(range(len(done)), labels, fontsize=8, color=INK)
    axes.invert_yaxis()
    axes.set_xlim(left=0)
    axes.set_xlabel("seconds")
    axes.grid(axis="x", color="#dddddd", lw=0.6)
    axes.set_axisbelow(True)


def _label(one: Compared) -> str:
    asked, fault = one.trial.asked, written(one.trial.fault)
    return f"{asked.op.name} {show_size(asked.size)}" + (f"\n{fault}" if fault else "")
