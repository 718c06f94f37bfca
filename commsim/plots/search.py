"""Which plans are quick, which are small, and which are neither?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commsim.plots.canvas import INK, PALE, PALETTE, canvas, sign
from commsim.units import counted, show

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from commsim.training.search.search import Search

GIGA = 1e9
_NAMED = 4
"""Plans of the front that are named."""
_RECOMPUTE = {"none": PALETTE[0], "selective": PALETTE[4], "full": PALETTE[5]}


def front(search: Search) -> Figure:
    """Return step time against memory of every plan that was timed, with the front of those that none beats."""
    figure, axes = canvas(8.0, 5.5)
    columns, job = search.columns, search.job
    seconds, memory = columns["step_time_s"], columns["memory_bytes"] / GIGA
    for way in job.choices.recompute:
        ours = columns["recompute"] == way
        label = f"recompute {way}" if ours.any() else None
        axes.scatter(memory[ours], seconds[ours], s=9, alpha=0.5, lw=0, color=_RECOMPUTE.get(way, PALE), label=label)
    best = search.ranking.memory[search.front] / GIGA, search.ranking.seconds[search.front]
    axes.plot(
        *best, color=INK, lw=1.2, marker="o", ms=3, drawstyle="steps-pre", label="no other is quicker and smaller"
    )
    axes.axvline(float(job.system.accelerator.memory) / GIGA, color=INK, lw=1, ls=":", label="memory of a GPU")
    _name(axes, search)
    axes.set(xlabel="memory of the fullest GPU, GB", ylabel="step time, s", ylim=(0, float(seconds[0]) * 2.05))
    title = f"{job.model.name} on {counted(job.system.gpus, 'GPU')} of {job.system.name}: {search.best.plan.text}"
    axes.set_title(f"{title}, {show(float(seconds[0]), 's', 3)}", loc="left", weight="bold", fontsize=9)
    axes.legend(frameon=False, fontsize=8, loc="lower left")
    sign(figure, f"{search.divide:,} plans divide, {len(search.ranking.space):,} fit; drawn are those timed")
    return figure


def _name(axes: Axes, search: Search) -> None:
    """Number a few plans of the front, from the quickest to the smallest, and list them where no plan can be."""
    places = search.front[:: max(1, len(search.front) // _NAMED)][:_NAMED]
    lines = []
    for number, place in enumerate(places.tolist(), start=1):
        where = search.ranking.memory[place] / GIGA, search.ranking.seconds[place]
        axes.annotate(str(number), where, xytext=(-9, -9), textcoords="offset points", fontsize=8, color=INK)
        lines.append(f"{number}  {search.found(place)}")
    listed = "\n".join(lines)
    axes.text(0.02, 0.33, listed, transform=axes.transAxes, fontsize=7, color=INK, va="bottom", linespacing=1.5)
