"""Are the constants of a calibration found where they stand, and changed there alone?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.libraries.calibration import Calibration, LinkUse, Protocol, calibration
from commsim.measurement.calibrate.constants import changed, constants

SMALL = Calibration("small", {"nvlink*": LinkUse(0.8, ramp=1e5)}, {"LL": Protocol(5e-6, 1e-6, 3e-6, payload=0.5)})


def test_places() -> None:
    found = {one.name: one.value for one in constants(SMALL)}
    assert found == {
        "links.nvlink*.efficiency": 0.8,
        "links.nvlink*.ramp": 1e5,
        "protocols.LL.base": 5e-6,
        "protocols.LL.inside": 1e-6,
        "protocols.LL.network": 3e-6,
    }


def test_dimensions() -> None:
    found = {one.place[-1]: (one.dimension, one.most) for one in constants(SMALL)}
    assert found["efficiency"] == ("1", 1.0)
    assert found["base"] == ("s", float("inf"))
    assert found["ramp"] == ("B", float("inf"))


@given(st.sampled_from(constants(calibration("nccl"))), st.floats(0.1, 0.9))
def test_one_constant_is_changed_alone(one: object, factor: float) -> None:
    shipped = calibration("nccl")
    other = changed(shipped, {one.place: one.value * factor})  # type: ignore[attr-defined]
    differ = [new.place for new, old in zip(constants(other), constants(shipped)) if new.value != old.value]
    assert differ == [one.place]  # type: ignore[attr-defined]


def test_nothing_changed() -> None:
    assert constants(changed(SMALL, {})) == constants(SMALL)


def test_a_share_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="a share above 0 and up to 1"):
        changed(SMALL, {("links", "nvlink*", "efficiency"): 1.2})
