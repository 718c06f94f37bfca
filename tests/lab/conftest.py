"""A lab measures alone: whatever else runs on this machine meanwhile would share the processors with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.turns import Turns


@pytest.fixture
def alone(turns: Turns) -> Iterator[None]:
    """Hold every other test of this machine back until this one has measured."""
    with turns.alone():
        yield
