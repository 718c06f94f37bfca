"""What does a collective reach at each size, and what could it?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commsim.errors import InputError
from commsim.plots.canvas import INK, PALE, PALETTE, canvas, scale_by_size, sign
from commsim.units import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from commsim.libraries.library import Timing
    from commsim.libraries.sweep import Sweep

DASHES = {"Simple": "-", "LL128": "--", "LL": ":"}
FEWEST = 2
"""Sizes that make a line."""


def busbw(sweep: Sweep, *, every: bool = True) -> Figure:
    """Return bus bandwidth against size: what the library takes, what the wire would allow and, if asked, all else.

    InputError for a single size, and for a single rank.
    """
    sizes, timing = sweep.sizes, sweep.timing
    if len(sizes) < FEWEST:
        raise InputError("plot", f"{len(sizes)} size", "a line needs more, such as --sizes 1KiB..8GiB")
    if not timing.op.factor(timing.ranks):
        raise InputError("plot", f"{timing.ranks} rank", "a group of more has a bus bandwidth")
    figure, axes = canvas(8.0, 5.0)
    axes.plot(sizes, sweep.limit.busbw / 1e9, color=PALE, lw=1.5, ls=(0, (6, 2, 1, 2)), label="the wire allows")
    broad = {"lw": 6, "alpha": 0.25} if every else {"lw": 2}  # behind the candidates, of which it is the quickest
    axes.plot(sizes, timing.busbw / 1e9, color=INK, **broad, label=f"chosen by {sweep.library.name}")
    if sweep.ends:
        fast, slow = (end.busbw / 1e9 for end in sweep.ends)
        axes.fill_between(sizes, slow, fast, color=INK, alpha=0.12, lw=0, label="its range, of uncertain figures")
    if every:
        _draw_candidates(axes, timing)
    scale_by_size(axes, sizes)
    axes.set_ylabel("bus bandwidth, GB/s")
    axes.set_title(
        f"{timing.op.name} of {counted(timing.ranks, 'GPU')} of {sweep.system.name}", loc="left", weight="bold"
    )
    axes.legend(frameon=False, fontsize=8, loc="lower right")
    sign(figure, f"bus bandwidth as nccl-tests counts it; size is {timing.op.size}")
    return figure


def _draw_candidates(axes: Axes, timing: Timing) -> None:
    """A line for every candidate: its algorithm is the colour, its protocol the dashes; of one name the quickest."""
    factor = timing.op.factor(timing.ranks) / 1e9
    algorithms = list(dict.fromkeys(one.algorithm for one in timing.candidates))
    names = dict.fromkeys((one.algorithm, one.protocol) for one in timing.candidates)
    for algorithm, protocol in names:
        named = [one.seconds for one in timing.candidates if (one.algorithm, one.protocol) == (algorithm, protocol)]
        colour, dashes = PALETTE[algorithms.index(algorithm) % len(PALETTE)], DASHES.get(protocol, "-")
        rate = timing.sizes * factor / np.min(named, axis=0)
        axes.plot(timing.sizes, rate, color=colour, ls=dashes, lw=1.4, label=f"{algorithm} {protocol}".strip())
