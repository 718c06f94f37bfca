"""Are the constants of a calibration found where they stand, and changed there alone?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.libraries.calibration import Calibration, LinkUse, Protocol, calibration
from commsim.measurement.calibrate.constants import changed, constants

SMALL = Calibration(
    "small", {"nvlink*": LinkUse(0.8, hop={"LL": 1e-6}, copy=1e10)}, {"LL": Protocol(5e-6, network=1.5, payload=0.5)}
)


def test_places() -> None:
    found = {one.name: one.value for one in constants(SMALL)}
    assert found == {
        "links.nvlink*.efficiency": 0.8,
        "links.nvlink*.hop.LL": 1e-6,
        "links.nvlink*.copy": 1e10,
        "protocols.LL.base": 5e-6,
        "protocols.LL.network": 1.5,
        "protocols.LL.copy": 1.0,
        "meshed": 1.0,
        "sending.inside": 1.0,
        "sending.outside": 1.0,
        "switching.through": 1.0,
    }


def test_dimensions() -> None:
    found = {one.place[-1]: (one.dimension, one.most) for one in constants(SMALL)}
    assert found["efficiency"] == ("1", 1.0)
    assert found["base"] == ("s", float("inf"))
    assert found["LL"] == ("s", float("inf"))
    assert found["network"] == ("1", float("inf")), "it is above 1 already"


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
