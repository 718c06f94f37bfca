"""Are gloo's constants found in runs of `commsim bench`, and what its authors chose left alone?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from commsim.collectives.kinds import ALL_GATHER, ALL_REDUCE, SEND_RECV
from commsim.collectives.layout import Layout
from commsim.libraries.gloo import Gloo, gloo_figures
from commsim.measurement.calibrate.fit import Fit, Run, fit
from commsim.measurement.records import Measurement, Row, Timing
from tests.machines import switch

TRUE = {"message": 120e-6, "copy": 0.6e-9, "call": 90e-6}
SIZES = np.logspace(4, 12, 9, base=4, dtype=np.float64)
MACHINE = switch(4)


@pytest.fixture(scope="module")
def found() -> Fit:
    by, group = (
        Gloo(figures=replace(gloo_figures(), message=TRUE["message"], copy=TRUE["copy"], call=TRUE["call"])),
        Layout.first(4),
    )
    runs = []
    for op in (ALL_REDUCE, ALL_GATHER, SEND_RECV):
        seconds = by.time(op, SIZES, group, MACHINE).seconds
        rows = tuple(Row(int(size), 0, Timing(float(one))) for size, one in zip(SIZES, seconds))
        runs.append(Run(Measurement(((op, 4),), rows, library="gloo"), group, MACHINE))
    return fit(Gloo(), runs)


def test_known_constants_come_back(found: Fit) -> None:
    values = {one.constant.name: one.value for one in found.constants}
    assert {name: values[name] for name in TRUE} == pytest.approx(TRUE, rel=0.1)
    assert np.abs(found.after).max() < 0.02 < np.abs(found.before).max()


def test_frames_are_not_the_machines(found: Fit) -> None:
    assert not {"mtu", "framing"} & {one.constant.name for one in found.constants}
