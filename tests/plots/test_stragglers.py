"""Do pictures of stragglers show what the values say?"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest

from commsim.errors import InputError
from commsim.plots.stragglers import FIGURES, distribution, heatmap, timeline_of, tornado
from commsim.plots.stragglers_curve import slowdown_by_gpus
from commsim.stragglers.curve import curve
from commsim.stragglers.kinds import Failures, Jitter, Pause, SlowRank
from commsim.stragglers.run import Run, run
from commsim.stragglers.timeline import timeline
from commsim.stragglers.waits import waits
from tests.stragglers.stages import KINDS_OF_STEP, PIPED, SPLIT, step

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@pytest.fixture(name="known", scope="module")
def _known() -> Run:
    return run(step(PIPED), [SlowRank(factor=1.4, ranks=(9,)), Jitter(0.02), Pause(every=5)], steps=300)


def lines(axes: Axes) -> list[float]:
    return [float(np.asarray(line.get_xdata())[0]) for line in axes.lines]


def test_a_distribution_with_its_quantiles(known: Run) -> None:
    (axes,) = distribution(known).axes
    expected = [1.0, known.slowdown(), *(known.slowdown(level) for level in (0.5, 0.95, 0.99))]
    assert lines(axes) == pytest.approx(expected)
    assert sum(patch.get_height() for patch in axes.patches) >= 0.99 * 300  # type: ignore[attr-defined] # bars


def test_a_tornado_of_causes(known: Run) -> None:
    (axes,) = tornado(known).axes
    widths = [patch.get_width() for patch in axes.patches]  # type: ignore[attr-defined] # bars
    saved = sorted(100 * one.saved for one in known.by_cause)
    assert widths[:3] == pytest.approx(saved)
    assert {label.get_text() for label in axes.get_yticklabels()[1:]} == {
        "pause: every=5",
        "slow-rank: factor=1.4 ranks=9",
    }


def test_a_heatmap_of_stages_and_replicas(known: Run) -> None:
    upper, lower, *_ = heatmap(known).axes
    late = waits(known.stage, known.causes, known.seed)
    assert np.asarray(upper.images[0].get_array()) == pytest.approx(late.slower)
    assert np.asarray(lower.images[0].get_array()).shape == late.idle.shape
    assert int(late.slower.argmax()) == 4  # stage 1, replica 0


def test_a_timeline_actual_over_ideal(known: Run) -> None:
    upper, lower = timeline_of(known).axes
    operations = 2 * 4 * known.stage.parts.program.dims[2]
    assert [len(axes.patches) for axes in (upper, lower)] == [operations] * 2
    assert lines(upper)[0] > lines(lower)[0] == pytest.approx(known.ideal)


@pytest.mark.parametrize("kind", KINDS_OF_STEP)
def test_operations_of_a_stage_never_overlap(kind: str) -> None:
    stage = run(step(kind), [], steps=1).stage
    shown = timeline(stage, [Jitter(0.1)], 0)
    for operations in (shown.actual, shown.ideal):
        for number in range(stage.cast.stages):
            ours = sorted((one.start, one.finish) for one in operations if one.stage == number)
            assert all(first[1] <= second[0] + 1e-9 for first, second in pairwise(ours))
    assert max(one.finish for one in shown.ideal) <= shown.ends[1] + 1e-9
    assert {one.kind for one in shown.actual} == {"forward", "backward"} | ({"weight"} if kind == SPLIT else set())


def test_curves_of_systems() -> None:
    points = curve(step(PIPED), [Jitter(0.05), Failures(600.0, 1800.0)], most=128)
    (axes,) = slowdown_by_gpus({"here": points, "there": points}).axes
    drawn = [np.asarray(line.get_ydata()) for line in axes.lines if len(np.asarray(line.get_ydata())) == len(points)]
    assert drawn[0] == pytest.approx([point.slowdown for point in points])
    assert drawn[1][-1] > drawn[0][-1]
    with pytest.raises(InputError, match="plot"):
        slowdown_by_gpus({})


def test_every_figure_draws_a_run_without_causes() -> None:
    calm = run(step(PIPED), [Jitter(0.01)], steps=3)
    assert all(figure(calm).axes for figure in FIGURES.values())
