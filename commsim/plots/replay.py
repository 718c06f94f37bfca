"""What do a step as it was and as it would be look like, and where is it slow?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commsim import __version__
from commsim.plots.canvas import INK, PALE, PALETTE, canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from commsim.stragglers.replay.result import Replay, Waiting

_BLUE, _RED, _GREEN, _PINK, _SKY, _ORANGE = PALETTE
COLOURS = {"forward-compute": _BLUE, "backward-compute": _ORANGE}
COOL, HOT = 1.0, 1.5
"""Slowdowns between which the heatmap has its colours (as in OSDI 2025, figure 14)."""
_ROOM, _FEW = 0.3, 24
_WIDTH = 9.0


def replayed(replay: Replay) -> Figure:
    """Return the timeline, the heatmap of workers, and the slowdown by operation: those that the trace can tell.

    Without stages the heatmap gives way to how ranks work and wait.
    """
    panels = [
        (draw, height)
        for draw, height, there in (
            (_timeline, 0.9 + 0.34 * (len(replay.by_stage) or 1), bool(replay.timeline)),
            (_heatmap, 0.9 + _ROOM * (len(replay.by_stage) or 1), bool(replay.by_stage)),
            (_meetings, 0.9 + _ROOM * min(len(replay.waiting), _FEW), bool(replay.waiting)),
            (_operations, 0.9 + 0.24 * len(replay.by_op), bool(replay.by_op)),
        )
        if there
    ] or [(_nothing, 1.5)]
    heights = tuple(height for _, height in panels)
    figure, axes = canvas(_WIDTH, sum(heights) + 0.4, heights=heights)
    for (draw, _), one in zip(panels, np.ravel(axes)):
        draw(one, replay)
    said = f": slowdown {replay.slowdown:.3f}" if replay.slowdown is not None else ""
    np.ravel(axes)[0].set_title(f"{replay.source}{said}; {replay.finding.cause}", loc="left", weight="bold")
    note = f"a trace, replayed by commsim {__version__}; ideal: mean of what computes, median of what communicates"
    figure.supxlabel(note, fontsize=7, color=PALE, x=0.01, ha="left")
    return figure


def _timeline(axes: Axes, replay: Replay) -> None:
    """Each stage as it was, and below it as it would be."""
    for span in replay.timeline:
        colour = COLOURS.get(span.op, PALE)
        for row, (begin, end) in ((-0.2, span.actual), (0.2, span.ideal)):
            axes.barh(span.stage + row, end - begin, left=begin, height=0.34, color=colour, ec="white", lw=0.2)
    for name, colour in (*COLOURS.items(), ("other", PALE)):
        axes.barh(0, 0, color=colour, label=name)
    for seconds, style in ((replay.actual, "-"), (replay.ideal, "--")):
        axes.axvline(seconds or 0.0, color=INK, ls=style, lw=1, label="actual" if style == "-" else "ideal")
    axes.set_yticks(range(len(replay.by_stage)), [f"stage {stage}" for stage in range(len(replay.by_stage))])
    axes.invert_yaxis()
    axes.set_xlabel("s, the median step of the slowest replica: as it was over as it would be")
    axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))


def _heatmap(axes: Axes, replay: Replay) -> None:
    """The slowdown of each worker: stages below each other, data ranks beside."""
    replicas = sorted({one.replica for one in replay.workers})
    values = np.full((len(replay.by_stage), len(replicas)), np.nan)
    for one in replay.workers:
        values[one.stage, replicas.index(one.replica)] = one.slowdown
    image = axes.imshow(values, cmap="YlOrRd", vmin=COOL, vmax=HOT, aspect="auto")
    if len(replicas) <= _FEW:
        axes.set_xticks(range(len(replicas)), [str(one) for one in replicas])
        for (stage, place), value in np.ndenumerate(values):
            ink = "white" if value > (COOL + HOT) / 2 else INK
            axes.text(place, stage, f"{value:.3f}", ha="center", va="center", fontsize=8, color=ink)
    else:
        axes.figure.colorbar(image, ax=axes, label="slowdown by this worker", extend="max", fraction=0.03)
    axes.set_yticks(range(len(values)), [f"stage {stage}" for stage in range(len(values))])
    axes.set_xlabel("data rank; the slowdown that each worker makes alone")


def _meetings(axes: Axes, replay: Replay) -> None:
    """What each rank works and waits before collectives, those who come last on top."""
    shown: list[Waiting] = list(replay.waiting[:_FEW])
    work = np.array([one.work or 0.0 for one in shown]) * 1e3
    waits = np.array([one.waits for one in shown]) * 1e3
    rows = np.arange(len(shown))
    if work.any():
        axes.barh(rows, work, color=_BLUE, height=0.7, label="works")
    axes.barh(rows, waits, left=work, color="#BBBBBB", height=0.7, label="waits for others")
    axes.set_yticks(rows, [f"rank {one.rank}" for one in shown])
    axes.invert_yaxis()
    axes.set_xlabel("ms before and in a collective, in the mean")
    axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))


def _operations(axes: Axes, replay: Replay) -> None:
    """The slowdown that each operation makes alone."""
    names = list(replay.by_op)
    axes.barh(range(len(names)), [replay.by_op[name] - 1 for name in names], color=_RED, height=0.7)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.axvline(0, color=INK, lw=0.8)
    axes.set_xlabel("slowdown of the ideal step by this operation alone, less 1")


def _nothing(axes: Axes, replay: Replay) -> None:
    axes.set_axis_off()
    axes.text(0.0, 0.5, "\n".join(replay.finding.evidence), va="center", wrap=True, fontsize=9)
