"""How are figures that are ranges written in a row?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commsim.figures import at, is_range, origin

if TYPE_CHECKING:
    from collections.abc import Mapping

    from commsim.tables.records import Record


Pair = list[float]


def figures(figures: Mapping[str, float], main: str) -> Record:
    """Return figures as plain numbers, where each is from (`source`: the main one), and ranges of uncertain ones."""
    ranges = {key: [at(value, "low"), at(value, "high")] for key, value in figures.items() if is_range(value)}
    plain = {key: float(value) for key, value in figures.items()}
    sources = {key: origin(value) for key, value in figures.items()}
    return {**plain, "source": sources[main], "sources": sources, "range": ranges or None}


def between(*ends: Record) -> dict[str, Pair]:
    """Return the range of every number that differs between the ends: {key: [low, high]}."""
    timed = ("_s", "mfu", "per_gpu")
    return {
        key: sorted(float(end[key]) for end in ends)
        for key in (ends[0] if ends else ())
        if key.endswith(timed) and isinstance(ends[0][key], float)
    }
