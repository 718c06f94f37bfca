"""One lab at a time measures: two of them would share the processors."""

from __future__ import annotations

import fcntl
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def alone() -> Iterator[None]:
    """Hold every other test of this machine back that measures on a lab."""
    with Path(tempfile.gettempdir(), "commsim-tests-of-labs").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
