"""Does the figure of a lab show every iteration, their middle and the prediction, and do rows say the same?"""

from __future__ import annotations

import numpy as np
import pytest

from commsim.collectives.kinds import ALL_REDUCE
from commsim.lab.experiment import Compared, Trial, compared, middle
from commsim.lab.faults import HEALTHY, LateRank, StoppedRank
from commsim.lab.prediction import Asked, Prediction
from commsim.plots.lab import beside
from commsim.tables.records import records
from tests.lab.networks import star

ASKED = Asked(ALL_REDUCE, 2**20, star(100, 100))
PREDICTED = Prediction(np.array([0.11]))
DONE = [
    Compared(Trial(ASKED, HEALTHY, PREDICTED), np.array([0.1, 0.1, 0.1, 0.1, 0.5]), checked=True),
    Compared(Trial(ASKED, StoppedRank(1, 0.4), PREDICTED), np.array([0.1, 0.5, 0.1]), checked=True),
]


def test_the_middle_leaves_out_what_is_far_off() -> None:
    assert middle(np.array([9.0, 1.0, 2.0, 3.0, 0.0])) == 2.0
    assert DONE[0].typical == pytest.approx(0.1)
    assert DONE[0].error == pytest.approx(0.1)


def test_a_fault_that_hits_one_iteration_is_the_longest() -> None:
    assert DONE[1].typical == 0.5


def test_an_operation_is_timed_from_the_last_that_comes_unless_ranks_are_late_on_purpose() -> None:
    record = {"arrival_s": [[0.0], [0.2]], "samples_s": [[0.5], [0.3]], "checked": True}
    assert compared(Trial(ASKED, HEALTHY, PREDICTED), record).seconds == pytest.approx([0.3])
    assert compared(Trial(ASKED, LateRank(1, 0.2), PREDICTED), record).seconds == pytest.approx([0.5])


def test_figure() -> None:
    (axes,) = beside(DONE, "a switch").axes
    assert [one.get_text() for one in axes.get_yticklabels()] == [
        "all_reduce 1 MiB",
        "all_reduce 1 MiB\nstopped-rank: rank=1 lasting=0.4",
    ]
    drawn = [np.asarray(line.get_xdata()).tolist() for line in axes.get_lines()]
    assert DONE[0].seconds.tolist() in drawn
    assert [0.11] in drawn


def test_rows() -> None:
    row, other = records(DONE)
    assert (row["op"], row["ranks"], row["size_bytes"], row["fault"]) == ("all_reduce", 2, 2**20, "")
    assert (row["measured_s"], row["predicted_s"]) == (pytest.approx(0.1), 0.11)
    assert row["busbw_bytes_per_s"] == pytest.approx(2**20 / 0.1)
    assert other["fault"] == "stopped-rank: rank=1 lasting=0.4"
