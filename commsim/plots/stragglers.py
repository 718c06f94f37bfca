"""What do stragglers look like: the steps, the causes, the ranks, one step in time?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commsim.plots.canvas import INK, PALE, PALETTE, canvas, sign
from commsim.stragglers.causes import written
from commsim.stragglers.timeline import timeline
from commsim.stragglers.waits import STEPS, waits
from commsim.units import UNITS, counted, show

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from commsim.stragglers.run import Run
    from commsim.training.pipeline.explain import Operation

LEVELS = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
COLOURS = {"forward": PALETTE[0], "backward": PALETTE[1], "weight": PALETTE[2]}
_BINS = 80
_LONGEST = 46
"""Letters of a cause that are written."""
_FEW = 8
"""Replicas whose cells have numbers, stages as well."""


def distribution(run: Run) -> Figure:
    """Return the times of the steps with their quantiles, over the ideal one."""
    figure, axes = canvas(8.0, 4.5)
    slowdown = run.seconds / run.ideal
    span = (min(1.0, float(slowdown.min())), float(np.quantile(slowdown, 0.999)))
    axes.hist(slowdown, bins=_BINS, range=span if span[0] < span[1] else None, color=PALETTE[4], lw=0)
    axes.axvline(1.0, color=INK, lw=1.5, label=f"nobody late  {show(run.ideal, 's', 4)}")
    axes.axvline(run.slowdown(), color=PALETTE[1], lw=2, label=f"mean  {show(run.mean, 's', 4)}, {run.slowdown():.3f}")
    for (name, level), dashes in zip(LEVELS.items(), ("-", "--", ":")):
        value = run.slowdown(level)
        label = f"{name}  {show(run.quantile(level), 's', 4)}, {value:.3f}"
        axes.axvline(value, color=PALETTE[0], lw=1.5, ls=dashes, label=label)
    axes.set(xlabel="step time over the ideal one", ylabel=f"steps, of {run.seconds.size:,}")
    axes.legend(fontsize=8, framealpha=1.0, edgecolor="w")
    _title(axes, run, "")
    sign(figure, f"{counted(len(run.causes), 'cause')}, {counted(run.jobs, 'job')}, seed {run.seed}; up to p99.9")
    return figure


def tornado(run: Run) -> Figure:
    """Return what each cause costs both ways, the one that saves most when it is fixed above."""
    rows = sorted(run.by_cause, key=lambda one: one.saved)
    figure, axes = canvas(9.0, 1.6 + 0.5 * len(rows))
    place = np.arange(len(rows))
    saved, alone = ([100 * value for value in some] for some in zip(*((one.saved, one.alone - 1) for one in rows)))
    axes.barh(place + 0.2, saved, height=0.36, color=PALETTE[0], label="fixing only this saves")
    axes.barh(place - 0.2, alone, height=0.36, color=PALETTE[5], label="only this costs")
    for at, one in enumerate(rows):
        if one.closed and one.closed.how != "no effect on a step":
            label = "only this, by a formula" if at == next(i for i, row in enumerate(rows) if row.closed) else None
            axes.plot(100 * (one.closed.slowdown - 1), at - 0.2, "o", color=INK, ms=4, label=label)
    axes.axvline(0, color=INK, lw=1)
    axes.set_yticks(place, [_short(written(one.cause)) for one in rows])
    axes.set_xlabel("% of the ideal step")
    axes.legend(frameon=False, fontsize=8, loc="lower right")
    _title(axes, run, f": all together {100 * (run.slowdown() - 1):.2g} %")
    sign(figure, "the same draws with a cause alone, and without it; they do not add up")
    return figure


def heatmap(run: Run) -> Figure:
    """Return how slow the groups of each stage and replica are in one job, and how long they wait."""
    late = waits(run.stage, run.causes, run.seed)
    wide = float(np.clip(1.5 + 0.45 * late.slower.shape[1], 7.0, 12.0))
    figure, (upper, lower) = canvas(wide, 3.4 + 0.5 * late.slower.shape[0], heights=(1, 1))
    scale = UNITS["s"][show(max(float(late.idle.max()), 1e-9), "s", 3).split()[1]]
    unit = show(max(float(late.idle.max()), 1e-9), "s", 3).split()[1]
    _cells(figure, upper, late.slower, "YlOrRd", "own work over the ideal", least=1.0)
    _cells(figure, lower, late.idle / scale, "Blues", f"waits for the last replica, {unit}", least=0.0)
    lower.set_xlabel("replica (data-parallel)")
    _title(upper, run, "")
    sign(figure, f"one job, mean of its first {STEPS} steps, seed {run.seed}")
    return figure


def timeline_of(run: Run) -> Figure:
    """Return one step of the replica for which the others wait, stage by stage, above the step when nobody is late."""
    shown = timeline(run.stage, run.causes, run.seed)
    figure, (upper, lower) = canvas(11.0, 3.0 + 0.5 * run.stage.cast.stages, heights=(1, 1))
    for axes, operations, end, what in (
        (upper, shown.actual, shown.ends[0], f"actual, replica {shown.replica}"),
        (lower, shown.ideal, shown.ends[1], "nobody late"),
    ):
        _bars(axes, operations)
        axes.axvline(end, color=INK, lw=1.5)
        axes.set(ylabel=f"{what}\nstage", xlim=(0, 1.02 * max(shown.ends)))
        axes.set_yticks(range(run.stage.cast.stages))
        axes.invert_yaxis()
    handles, labels = upper.get_legend_handles_labels()
    figure.legend(handles, labels, frameon=False, fontsize=8, loc="outside upper right", ncols=3)
    lower.set_xlabel("s from the start of the step; the line is its end, with data parallelism and optimizer")
    _title(upper, run, f": {show(shown.ends[0], 's', 4)} over {show(shown.ends[1], 's', 4)}")
    sign(figure, f"the first step of one job, seed {run.seed}")
    return figure


FIGURES: dict[str, Callable[[Run], Figure]] = {
    "distribution": distribution,
    "curve": distribution,  # drawn by `stragglers_curve`, from curves
    "heatmap": heatmap,
    "timeline": timeline_of,
    "tornado": tornado,
}
"""What can be drawn of a run."""


def _title(axes: Axes, run: Run, more: str) -> None:
    setting = run.estimate.setting
    title = f"{setting.model.name} on {counted(setting.system.gpus, 'GPU')} of {setting.system.name}{more}"
    axes.set_title(title, loc="left", weight="bold")


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _cells(figure: Figure, axes: Axes, values: np.ndarray, colours: str, label: str, *, least: float) -> None:
    """Draw [stage, replica] as coloured cells, with numbers where there are few."""
    most = max(float(values.max()), least + 1e-3)
    drawn = axes.imshow(values, cmap=colours, vmin=least, vmax=most, aspect="auto", interpolation="nearest")
    figure.colorbar(drawn, ax=axes, label=label)
    axes.set_ylabel("pipeline stage")
    axes.set_yticks(range(0, values.shape[0], max(1, values.shape[0] // _FEW)))
    if max(values.shape) <= 2 * _FEW:
        for (stage, replica), value in np.ndenumerate(values):
            dark = value > least + 0.6 * (most - least)
            axes.text(replica, stage, f"{value:.3g}", ha="center", va="center", fontsize=7, color="w" if dark else INK)


def _bars(axes: Axes, operations: Sequence[Operation]) -> None:
    """Draw operations as bars on the lines of their stages."""
    for kind in dict.fromkeys(one.kind for one in operations):
        ours = [one for one in operations if one.kind == kind]
        stages, starts = [one.stage for one in ours], [one.start for one in ours]
        widths = [one.finish - one.start for one in ours]
        axes.barh(stages, widths, left=starts, height=0.8, color=COLOURS.get(kind, PALE), ec="w", lw=0.3, label=kind)
