"""Were buffers symmetric windows, as the run says, or did NCCL take its ordinary kernels?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from commsim.libraries.nccl import Nccl

if TYPE_CHECKING:
    from commsim.measurement.check.expected import Expected

APART, FEWEST = 1.1, 3
"""Times that differ by less do not tell the two apart, nor do fewer rows."""
NEARER = 0.5
"""How far the measured times are from ordinary ones at most, beside how far they are from those of windows (medians of
logarithms): a run that is merely slow lies between the two."""


def ordinary(expected: Expected) -> str:
    """Return in words that a run which says it used symmetric windows took the time of ordinary buffers; "" if not."""
    library = expected.library
    if not (isinstance(library, Nccl) and library.symmetric):
        return ""
    plain = expected.at(library=replace(library, symmetric=False))
    apart = np.maximum(plain / expected.seconds, expected.seconds / plain) > APART
    if apart.sum() < FEWEST:
        return ""
    off, beside = (
        float(np.median(np.abs(np.log(expected.measured[apart] / each[apart])))) for each in (expected.seconds, plain)
    )
    return _SAID if beside < NEARER * off else ""


_SAID = (
    "it says -R 2 (symmetric windows) and took the time of ordinary buffers: NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=TUNING "
    "must say [Symmetric]"
)
