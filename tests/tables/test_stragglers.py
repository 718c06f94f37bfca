"""Are runs with stragglers rows?"""

from __future__ import annotations

import json

from commsim.stragglers.attribution import amplified
from commsim.stragglers.curve import curve
from commsim.stragglers.kinds import Failures, Jitter, SlowRank
from commsim.stragglers.mitigations import Spares, mitigate
from commsim.stragglers.run import run
from commsim.stragglers.waits import waits
from commsim.stragglers.whole import whole
from commsim.tables.records import records, to_frame
from tests.stragglers.stages import PIPED, step


def test_every_value_is_a_row_that_json_holds() -> None:
    known = run(step(PIPED), [SlowRank(factor=1.2), Jitter(), Failures(60.0, 600.0)], steps=50)
    values = [
        known,
        known.by_cause[0],
        amplified(known.stage, known.causes, known.drawing),
        waits(known.stage, known.causes, 0),
        mitigate(known, Spares()),
        curve(step(PIPED), known.causes, most=16)[0],
        whole(known, 1e9),
    ]
    rows = records(values)
    assert len(rows) == len(values)
    assert json.loads(json.dumps(rows, allow_nan=False)) == rows


def test_a_curve_is_a_frame() -> None:
    frame = to_frame(curve(step(PIPED), [Jitter()], most=64))
    assert list(frame.columns) == ["gpus", "slowdown", "slowdown_error", "p50", "p95", "p99", "lost"]
    assert frame["gpus"].tolist() == [8, 16, 32, 64]


def test_one_step_has_no_error() -> None:
    (row,) = records(run(step(PIPED), [], steps=1))
    assert row["step_time_s"]["mean_error_s"] is None
