"""What do all tests share? Hypothesis profiles, the folder of public measurements, and the machine."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Iterator

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
_TURNS = Turns(Path(tempfile.gettempdir()))


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


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[None]:
    """Run beside other tests, but never beside one that measures alone."""
    with _TURNS.shared():
        return (yield)


@pytest.fixture
def turns() -> Turns:
    """Return the turns of the tests of this machine."""
    return _TURNS


@pytest.fixture(scope="session")
def data() -> Path:
    """Return the folder of public measurements; the test that asks for it is marked `data`."""
    if not _GIVEN:
        pytest.fail("mark this test with pytest.mark.data: it needs COMMSIM_DATA")
    return Path(_GIVEN)
