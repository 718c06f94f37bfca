"""Where do the time of a step and the memory of a GPU go?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commsim.libraries.calibration import Case
from commsim.plots.canvas import INK, PALE, PALETTE, canvas, sign
from commsim.tables.estimates import memory_parts, time_parts
from commsim.units import UNITS, counted, show

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from commsim.training.estimate import Estimate

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


def breakdown(estimate: Estimate) -> Figure:
    """Return where the time of a step and the memory of its fullest GPU go, a bar each.

    Where figures are uncertain, the fast and the slow end stand below the nominal step.
    """
    setting, memory, steps = estimate.setting, estimate.memory, {"step time": estimate.step}
    if estimate.range:
        steps |= {"fast end": estimate.at(Case("high")), "slow end": estimate.at(Case("low"))}
    figure, (upper, lower) = canvas(8.0, 3.0 + 0.5 * len(steps), heights=(len(steps) + 0.4, 1.2))
    _stack(upper, {name: time_parts(step) for name, step in steps.items()}, "s")
    scale = _stack(lower, {"memory": memory_parts(memory)}, "B")
    lower.axvline(memory.capacity / scale, color=INK, lw=2, label=f"of  {show(memory.capacity, 'B', 3)}")
    for axes in (upper, lower):
        axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    title = f"{setting.model.name} on {counted(setting.system.gpus, 'GPU')} of {setting.system.name}"
    upper.set_title(f"{title}: {show(estimate.step_time, 's', 3)}, MFU {estimate.mfu:.1%}", loc="left", weight="bold")
    sign(figure, setting.plan.text)
    return figure


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
