"""Do figures show what was computed, and say what they show?"""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest

import commsim as cs
from commsim.errors import InputError
from commsim.libraries.sweep import Sweep, sweep
from commsim.plots.canvas import SUFFIXES, save
from commsim.plots.collective import busbw
from commsim.plots.step import breakdown
from commsim.training.axes import Data, Tensor
from commsim.training.configs.well_known import model
from commsim.training.estimate import Estimate, estimate
from commsim.training.plan import Plan
from tests.house.source import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@pytest.fixture(scope="module")
def swept() -> Sweep:
    return sweep("all_reduce", cs.load("vr-nvl72"), "1K..1G")


def estimated(system: str) -> Estimate:
    return estimate(model("llama3.1-8b"), Plan(Tensor(8), Data(9)), cs.load(system), global_batch=9)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_files_by_their_suffix(swept: Sweep, tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"figure{suffix}"
    save(busbw(swept), file)
    begins = {".png": b"\x89PNG", ".pdf": b"%PDF", ".svg": b"<?xml"}
    assert file.read_bytes().startswith(begins[suffix])


def test_other_files_are_refused(swept: Sweep, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"\.png, \.svg, \.pdf"):
        save(busbw(swept), tmp_path / "figure.jpeg")


def test_places_that_cannot_be_written_are_refused(swept: Sweep, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written: No such file"):
        save(busbw(swept), tmp_path / "absent" / "figure.png")


def test_lines_are_the_sweep(swept: Sweep) -> None:
    (axes,) = busbw(swept).axes
    lines = {str(line.get_label()): np.asarray(line.get_ydata()) for line in axes.lines}
    names = {f"{one.algorithm} {one.protocol}" for one in swept.timing.candidates}
    assert set(lines) == names | {"chosen by nccl", "the wire allows"}
    assert lines["chosen by nccl"] == pytest.approx(swept.timing.busbw / 1e9)
    assert lines["the wire allows"] == pytest.approx(swept.limit.busbw / 1e9)


def test_candidates_are_drawn_when_asked_for(swept: Sweep) -> None:
    (axes,) = busbw(swept, every=False).axes
    assert {line.get_label() for line in axes.lines} == {"chosen by nccl", "the wire allows"}


def test_axes_are_logarithmic_and_say_their_units(swept: Sweep) -> None:
    (axes,) = busbw(swept).axes
    assert (axes.get_xscale(), axes.get_yscale(), axes.get_ylabel()) == ("log", "log", "bus bandwidth, GB/s")
    assert "64 KiB" in [label.get_text() for label in axes.get_xticklabels()]
    assert axes.get_title(loc="left") == "all_reduce of 72 GPUs of vr-nvl72"


def test_a_narrow_axis_has_ticks_enough_to_read() -> None:
    """From 18 to 428 GB/s only one power of ten lies between the ends."""
    (axes,) = busbw(sweep("send_recv", cs.load("hgx-h100"), "256K..1M")).axes
    low, high = axes.get_ylim()
    assert 10 < low < high < 1000
    assert [tick for tick in axes.get_yticks() if low <= tick <= high] == pytest.approx([20, 50, 100, 200])


def test_uncertain_figures_are_a_band(swept: Sweep) -> None:
    assert len(busbw(swept).axes[0].collections) == 1
    assert len(busbw(sweep("all_reduce", cs.load("hgx-h100"), "1K..1M")).axes[0].collections) == 0


def test_one_size_is_no_line() -> None:
    with pytest.raises(InputError, match="a line needs more"):
        busbw(sweep("all_reduce", cs.load("hgx-h100"), "1M"))


def test_one_rank_has_no_bus_bandwidth() -> None:
    with pytest.raises(InputError, match="a group of more"):
        busbw(sweep("all_reduce", cs.load("gb10"), "1K..1M"))


@pytest.mark.parametrize(
    ("system", "bars"), [("gb200-nvl72", ["step time"]), ("vr-nvl72", ["step time", "fast end", "slow end"])]
)
def test_bars_are_as_long_as_the_steps(system: str, bars: list[str]) -> None:
    step = estimated(system)
    upper, lower = breakdown(step).axes
    assert [label.get_text() for label in upper.get_yticklabels()] == bars
    shown = [step.step_time, *(step.range or ())]
    assert lengths(upper) == pytest.approx([seconds / unit(upper) for seconds in shown])
    assert lengths(lower) == pytest.approx([step.memory.total / unit(lower)])


def test_what_takes_no_time_is_not_named() -> None:
    step = cs.estimate(cs.model("llama3.1-8b"), cs.Plan(cs.Data(1)), cs.load("gb10"), global_batch=1)
    figure = breakdown(step)
    assert figure.axes[0].get_title(loc="left").startswith("llama3.1-8b on 1 GPU of gb10: ")
    _, named = figure.axes[0].get_legend_handles_labels()
    assert [label.partition("  ")[0] for label in named] == ["compute", "optimizer"]


def test_every_figure_says_that_it_is_a_prediction(swept: Sweep) -> None:
    assert [notes(figure) for figure in (busbw(swept), breakdown(estimated("gb200-nvl72")))] == [True, True]


def test_drawing_needs_no_display_and_no_pyplot() -> None:
    """Matplotlib's pyplot keeps every figure alive, and asks for a display."""
    code = "import sys, commsim.plots.canvas as p; p.canvas(1, 1); sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, cwd=ROOT).returncode == 0


def unit(axes: Axes) -> float:
    return {"s": 1.0, "ms": 1e-3, "GB": 1e9}[axes.get_xlabel()]


def lengths(axes: Axes) -> list[float]:
    rows: dict[int, float] = {}
    for bar in axes.patches:
        row = round(bar.get_y() + bar.get_height() / 2)  # type: ignore[attr-defined] # bars are rectangles
        rows[row] = rows.get(row, 0.0) + bar.get_width()  # type: ignore[attr-defined]
    return [rows[row] for row in sorted(rows)]


def notes(figure: Figure) -> bool:
    return any("predicted by commsim" in text.get_text() for text in figure.texts)
