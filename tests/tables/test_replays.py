"""Do replays and fits become rows that JSON can hold?"""

from __future__ import annotations

import json

import numpy as np

from commsim.stragglers.replay.fitted import fitted
from commsim.stragglers.replay.goodness import fits
from commsim.stragglers.replay.steps import replay_steps
from commsim.tables.records import records, to_frame
from tests.stragglers.traced import even, trace


def test_a_replay_is_one_row() -> None:
    found = replay_steps(trace(even()))
    (row,) = records(found)
    assert json.loads(json.dumps(row, allow_nan=False)) == row
    assert row["slowdown"] == found.slowdown
    assert row["M_S"] is None  # nothing is lost, so nothing is won
    assert to_frame(found)["by_op.forward-compute"].tolist() == [1.0]


def test_workers_have_their_places() -> None:
    row = records(replay_steps(trace(even())).workers)[9]
    assert row == {"rank": 9, "stage": 1, "data_rank": 1, "slowdown": 1.0}


def test_a_tail_without_a_spread_has_none() -> None:
    samples = np.random.default_rng(0).pareto(1.5, 5000) + 1
    (row,) = records(next(one for one in fits(samples) if one.name == "pareto"))
    assert row["sd"] is None
    assert row["mean"] > 2


def test_fits_are_rows_by_what_they_are_of() -> None:
    seconds = {op: one * np.random.default_rng(1).lognormal(0, 0.1, one.shape) for op, one in even().items()}
    (row,) = records(fitted(trace(seconds)))
    assert [one["kind"] for one in row["causes"]][-1] == "jitter"
    assert set(row["laws"]) == {"workers", "operations"}
    json.dumps(row, allow_nan=False)
