"""How many constants stand behind the predicted times, and how many of them were fitted on measured ones?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import NamedTuple

from commsim.figures import Figure
from commsim.measurement.calibrate.constants import MADE

FITTED_ON = "NCCLTESTS"
"""The source that a figure cites when it was fitted on measured collectives."""
_REPEATED = "as "
"""How the note of a figure begins that is another one, too."""


class Constants(NamedTuple):
    """The figures of a calibration, and those among them that were fitted on measured collectives."""

    all: int
    fitted: int


def constants(calibration: object) -> Constants:
    """Return the number of figures in a calibration, each once: no defaults, and not what NCCL's authors chose."""
    found = [one for one in _figures(calibration) if not one.note.startswith(_REPEATED)]
    return Constants(len(found), sum(FITTED_ON in figure.source for figure in found))


def _figures(value: object) -> Iterator[Figure]:
    if isinstance(value, Figure):
        yield value
    below = value if isinstance(value, Mapping) else {}
    if is_dataclass(value):
        below = {item.name: getattr(value, item.name) for item in fields(value)}
    for name, one in below.items():
        yield from () if name in MADE else _figures(one)
