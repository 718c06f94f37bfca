"""What do all tests share? Hypothesis profiles, and the folder of public measurements."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "ci",
    derandomize=True,  # the same examples everywhere: a red CI can be repeated
    deadline=None,  # a slow machine is no failure
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("thorough", deadline=None, max_examples=2_000, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

_GIVEN = os.environ.get("COMMSIM_DATA")


def pytest_configure() -> None:
    """Refuse a COMMSIM_DATA that names no folder: its tests would be skipped in silence."""
    if _GIVEN and not Path(_GIVEN).is_dir():
        raise pytest.UsageError(f"COMMSIM_DATA: {_GIVEN!r}; the folder of public measurements belongs here")


def pytest_report_header() -> str:
    """Say in the first lines whether the tests against public measurements run."""
    return f"public measurements: {_GIVEN or 'none (set COMMSIM_DATA to run the tests marked `data`)'}"


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs the public measurements when there are none."""
    if not _GIVEN and item.get_closest_marker("data"):
        pytest.skip("needs COMMSIM_DATA")


@pytest.fixture(scope="session")
def data() -> Path:
    """Return the folder of public measurements; the test that asks for it is marked `data`."""
    if not _GIVEN:
        pytest.fail("mark this test with pytest.mark.data: it needs COMMSIM_DATA")
    return Path(_GIVEN)
