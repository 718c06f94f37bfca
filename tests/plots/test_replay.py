"""Does the figure of a replay show what it should, for every kind of trace?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from matplotlib.patches import Rectangle

from commsim.measurement.traces.steps import BACKWARD, FORWARD
from commsim.plots.replay import replayed
from commsim.stragglers.replay.events import replay_events
from commsim.stragglers.replay.replay import replay
from commsim.stragglers.replay.steps import replay_steps
from tests.stragglers.test_replay_events import STEPS as EVENT_STEPS
from tests.stragglers.test_replay_events import even as even_work
from tests.stragglers.test_replay_events import events
from tests.stragglers.traced import REPLICAS, STAGES, even, trace

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure


def labels(figure: Figure) -> list[str]:
    return [axes.get_xlabel() for axes in figure.axes]


def test_steps() -> None:
    seconds = even()
    for op in (FORWARD, BACKWARD):
        seconds[op][1, :, :, 3] *= 1.5
    found = replay_steps(trace(seconds))
    timeline, heatmap, operations = replayed(found).axes
    assert timeline.get_title(loc="left") == f"made up: slowdown {found.slowdown:.3f}; one worker"
    assert [one.get_text() for one in timeline.get_yticklabels()] == [f"stage {stage}" for stage in range(STAGES)]
    shown = {(one.get_position(), one.get_text()) for one in heatmap.texts}
    slowdown = found.workers[0].slowdown
    assert ((3, 1), f"{slowdown:.3f}") in shown
    assert len(shown) == STAGES * REPLICAS
    bars = [bar.get_width() for bar in operations.patches if isinstance(bar, Rectangle)]
    assert bars == pytest.approx([one - 1 for one in found.by_op.values()])


def test_the_timeline_ends_with_the_step() -> None:
    found = replay_steps(trace(even()))
    bars = [bar for bar in replayed(found).axes[0].patches if isinstance(bar, Rectangle)]
    assert max(bar.get_x() + bar.get_width() for bar in bars) == pytest.approx(found.actual)


def test_many_replicas_have_colours_alone() -> None:
    seconds = {op: np.repeat(one, 4, axis=3) for op, one in even().items()}
    figure = replayed(replay_steps(trace(seconds)))
    assert len(figure.axes[1].texts) == 0
    assert "slowdown by this worker" in [axes.get_ylabel() for axes in figure.axes]


def test_events() -> None:
    work = even_work()
    work[:, 1, 2] += 0.5
    figure = replayed(replay_events(events(work, np.full((EVENT_STEPS, 2), 0.1))))
    meetings, _ = figure.axes
    assert meetings.get_yticklabels()[0].get_text() == "rank 2"
    assert len(labels(figure)) == 2


def test_what_nobody_can_tell_is_said(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("rank,op,duration\n0,backward,1.0\n1,backward,1.0\n2,backward,1.0\n")
    (axes,) = replayed(replay(tmp_path / "t.csv")).axes
    assert "wall time" in axes.texts[0].get_text()
