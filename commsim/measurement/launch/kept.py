"""How much of an order is in its file already?"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from commsim.measurement.launch.cases import Case


def kept(cases: Iterable[Case], out: Path) -> int:
    """Return how many of the cases the file holds; 0 where there is no such file, or one of another kind."""
    wanted = Counter(case.digest for case in cases)
    return (wanted & Counter(_digests(out))).total()


def _digests(out: Path) -> list[str]:
    if not out.is_file():
        return []
    found = []
    for line in out.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict) and record.get("record") == "op":
            found.append(str(record.get("case")))
    return found
