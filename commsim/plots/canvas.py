"""What do all figures share: the canvas, its colours, its signature, the file?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from commsim import __version__
from commsim.errors import InputError
from commsim.units import show_size

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from commsim.libraries.library import Floats

SUFFIXES = (".png", ".svg", ".pdf")
INK, PALE = "#222222", "#777777"
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
"""Okabe and Ito's: told apart by people of any colour vision."""
MARKERS = "o^sDv"
FEW_DECADES = 200.0
"""An axis that spans less has ticks at 1, 2 and 5 as well."""


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


def canvas(width: float, height: float, heights: tuple[float, ...] = (1.0,)) -> tuple[Figure, Any]:
    """Return an empty figure (inches) with axes below each other, drawn without a display."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(len(heights), height_ratios=heights)
    for one in np.ravel(axes):
        one.spines[["top", "right"]].set_visible(False)
    return figure, axes


def sign(figure: Figure, text: str) -> None:
    """Say below the figure what it shows, and that nobody measured it."""
    note = f"{text}; predicted by commsim {__version__}, not measured"
    figure.supxlabel(note, fontsize=7, color=PALE, x=0.01, ha="left")


def scale_by_size(axes: Axes, sizes: Floats) -> None:
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
