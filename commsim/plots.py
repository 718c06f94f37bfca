"""What does a value look like? Figures of what was computed elsewhere; nothing is computed here."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from commsim import __version__
from commsim.errors import InputError
from commsim.libraries.calibration import Case
from commsim.tables import memory_parts, time_parts
from commsim.units import UNITS, counted, show, show_size

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from commsim.libraries.library import Floats, Timing
    from commsim.libraries.sweep import Sweep
    from commsim.training.estimate import Estimate
    from commsim.validation.collectives import Validation as Collectives
    from commsim.validation.training import Validation

SUFFIXES = (".png", ".svg", ".pdf")
INK, PALE = "#222222", "#777777"
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
"""Okabe and Ito's: told apart by people of any colour vision."""
_BLUE, _RED, _GREEN, _PINK, _SKY, _ORANGE = PALETTE
COLOURS = {
    "compute": _BLUE,
    "pipeline bubble": "#BBBBBB",
    "tensor": _RED,
    "context": _ORANGE,
    "expert": _PINK,
    "data": _GREEN,
    "pipeline": _SKY,
    "weights": _BLUE,
    "gradients": _SKY,
    "optimizer": "#F0E442",
    "activations": _ORANGE,
}
MARKERS = "o^sDv"
DASHES = {"Simple": "-", "LL128": "--", "LL": ":"}
FEWEST = 2
"""Sizes that make a line."""
FEW_DECADES = 200.0
"""An axis that spans less has ticks at 1, 2 and 5 as well."""


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


def save(figure: Figure, path: Path | str) -> None:
    """Write the figure; InputError for a kind of file that is not drawn and for a place that cannot be written."""
    need_drawable(path)
    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise InputError("plot", str(path), f"it cannot be written: {error.strerror}") from None


def need_drawable(path: Path | str) -> None:
    """Raise InputError for a kind of file that is not drawn."""
    if Path(path).suffix.lower() not in SUFFIXES:
        raise InputError("plot", str(path), f"a file that ends in one of {', '.join(SUFFIXES)} belongs here")


def busbw(sweep: Sweep, *, every: bool = True) -> Figure:
    """Return bus bandwidth against size: what the library takes, what the wire would allow and, if asked, all else.

    InputError for a single size, and for a single rank.
    """
    sizes, timing = sweep.sizes, sweep.timing
    if len(sizes) < FEWEST:
        raise InputError("plot", f"{len(sizes)} size", "a line needs more, such as --sizes 1KiB..8GiB")
    if not timing.op.factor(timing.ranks):
        raise InputError("plot", f"{timing.ranks} rank", "a group of more has a bus bandwidth")
    figure, axes = _canvas(8.0, 5.0)
    axes.plot(sizes, sweep.limit.busbw / 1e9, color=PALE, lw=1.5, ls=(0, (6, 2, 1, 2)), label="the wire allows")
    broad = {"lw": 6, "alpha": 0.25} if every else {"lw": 2}  # behind the candidates, of which it is the quickest
    axes.plot(sizes, timing.busbw / 1e9, color=INK, **broad, label=f"chosen by {sweep.library.name}")
    if sweep.ends:
        fast, slow = (end.busbw / 1e9 for end in sweep.ends)
        axes.fill_between(sizes, slow, fast, color=INK, alpha=0.12, lw=0, label="its range, of uncertain figures")
    if every:
        _draw_candidates(axes, timing)
    _scale_by_size(axes, sizes)
    axes.set_ylabel("bus bandwidth, GB/s")
    axes.set_title(
        f"{timing.op.name} of {counted(timing.ranks, 'GPU')} of {sweep.system.name}", loc="left", weight="bold"
    )
    axes.legend(frameon=False, fontsize=8, loc="lower right")
    _sign(figure, f"bus bandwidth as nccl-tests counts it; size is {timing.op.size}")
    return figure


def breakdown(estimate: Estimate) -> Figure:
    """Return where the time of a step and the memory of its fullest GPU go, a bar each.

    Where figures are uncertain, the fast and the slow end stand below the nominal step.
    """
    setting, memory, steps = estimate.setting, estimate.memory, {"step time": estimate.step}
    if estimate.range:
        steps |= {"fast end": estimate.at(Case("high")), "slow end": estimate.at(Case("low"))}
    figure, (upper, lower) = _canvas(8.0, 3.0 + 0.5 * len(steps), heights=(len(steps) + 0.4, 1.2))
    _stack(upper, {name: time_parts(step) for name, step in steps.items()}, "s")
    scale = _stack(lower, {"memory": memory_parts(memory)}, "B")
    lower.axvline(memory.capacity / scale, color=INK, lw=2, label=f"of  {show(memory.capacity, 'B', 3)}")
    for axes in (upper, lower):
        axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    title = f"{setting.model.name} on {counted(setting.system.gpus, 'GPU')} of {setting.system.name}"
    upper.set_title(f"{title}: {show(estimate.step_time, 's', 3)}, MFU {estimate.mfu:.1%}", loc="left", weight="bold")
    _sign(figure, ",".join(f"{axis.name}={axis.size}" for axis in setting.plan.axes))
    return figure


def agreement(validation: Validation) -> Figure:
    """Return predicted against measured step times, a colour for each GPU; InputError when nothing was compared."""
    figure, axes = _canvas(7.0, 6.0)
    _scatter(axes, validation.cases_by("GPU"), "step time")
    axes.set_title(f"{len(validation.cases):,} published training results", loc="left", weight="bold")
    _sign(figure, "to the right what its source published, upwards what is")
    return figure


def collective_agreement(validation: Collectives) -> Figure:
    """Return predicted against measured times of collectives, a colour for each machine; InputError without any."""
    figure, axes = _canvas(7.0, 6.0)
    _scatter(axes, validation.cases_by("machine"), "time of a collective")
    axes.set_title(f"{len(validation.cases):,} measured collectives", loc="left", weight="bold")
    _sign(figure, "to the right what its source measured, upwards what is")
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


def _stack(axes: Axes, bars: dict[str, dict[str, float]], dimension: str) -> float:
    """Draw bars of parts one after another, named with the values of the first; return the unit of the axis in SI."""
    unit = show(sum(next(iter(bars.values())).values()), dimension, 3).split()[1]
    scale = UNITS[dimension][unit]
    for row, parts in enumerate(bars.values()):
        left = 0.0
        for name, value in parts.items():
            if not value:
                continue
            label = f"{name}  {show(value, dimension, 3)}" if row == 0 else None
            colour = COLOURS.get(name.removeprefix("exposed: "), PALE)
            axes.barh(row, value / scale, left=left, color=colour, height=0.6, label=label)
            left += value / scale
    axes.set_yticks(range(len(bars)), list(bars))
    axes.invert_yaxis()
    axes.set_xlabel(unit)
    return scale


def _scale_by_size(axes: Axes, sizes: Floats) -> None:
    """Make both axes logarithmic; sizes go by powers of two, as nccl-tests counts."""
    from matplotlib.ticker import LogLocator

    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    powers = np.arange(np.ceil(np.log2(sizes.min())), np.floor(np.log2(sizes.max())) + 1)
    ticks = 2.0 ** powers[:: max(1, len(powers) // 8)]
    axes.set_xticks(ticks, [show_size(tick) for tick in ticks])
    axes.minorticks_off()
    low, high = axes.get_ylim()
    if high < low * FEW_DECADES:
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    axes.grid(color="#dddddd", lw=0.6)
    axes.set_xlabel("size")


def _canvas(width: float, height: float, heights: tuple[float, ...] = (1.0,)) -> tuple[Figure, Any]:
    """An empty figure (inches) with axes below each other, drawn without a display."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(len(heights), height_ratios=heights)
    for one in np.ravel(axes):
        one.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _sign(figure: Figure, text: str) -> None:
    """Say below the figure what it shows, and that nobody measured it."""
    note = f"{text}; predicted by commsim {__version__}, not measured"
    figure.supxlabel(note, fontsize=7, color=PALE, x=0.01, ha="left")
