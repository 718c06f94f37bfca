"""Does what is to be measured fit into this machine's memory?"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from commsim.errors import LackError
from commsim.units import show, show_size

if TYPE_CHECKING:
    from collections.abc import Iterable

    from commsim.measurement.launch.cases import Case

_BUFFERS = 2
"""What a rank gives and what it takes."""
_INFO = Path("/proc/meminfo")


def need_memory(cases: Iterable[Case], ranks: int) -> None:
    """Refuse sizes whose buffers would not fit, before the system kills a rank; LackError.

    Asked of ranks in this machine's own memory, where the system says how much is free (Linux).
    """
    free = _free()
    largest = max((case.size for case in cases), default=0)
    needed = _BUFFERS * largest * ranks
    if free is not None and needed > free:
        why = f"{ranks} ranks with {show_size(largest)} need {show(needed, 'B', 3)} of memory"
        raise LackError(f"{why}; {show(free, 'B', 3)} are free: choose fewer or smaller")


def _free() -> int | None:
    """Bytes that programs could still take; None where the system does not say."""
    text = _INFO.read_text(encoding="utf-8") if _INFO.exists() else ""
    found = re.search(r"^MemAvailable:\s+(\d+) kB", text, flags=re.MULTILINE)
    return int(found[1]) * 1024 if found else None
