"""What is a cause of a slow collective, and how well does it explain a curve?"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from commsim.libraries.calibration import Case

if TYPE_CHECKING:
    from collections.abc import Callable

    from commsim.libraries.library import Floats, Library
    from commsim.measurement.check.expected import Expected
    from commsim.units import Share

Left = tuple[float, float]
"""The least and the most of something that is left."""
NAMES = {"* nic": "NICs", "nvlink*": "NVLinks", "pcie*": "PCIe links"}
"""Kinds of link that a cause slows, for people."""
MOVING = 2.0**20
"""Bytes from which on a transfer tells of links; smaller ones tell of latency."""
STEPS = 24
"""Shares that are tried between the least and the most."""


@dataclass(frozen=True)
class Cause:
    """A way in which machines are slower than they should be: which links, how much of them is left, what to try.

    `left` is the share of the bandwidth of the links of those kinds that is left, between a least and a most; a cause
    that leaves open less explains more. `without` changes the library instead. `settings` are patterns of settings
    (`NAME=value`) that bring it about, `refuted` one of settings in which it is not so; `applies` says for whom it is a
    cause at all.
    """

    name: str
    title: str
    advice: str
    applies: Callable[[Expected], bool]
    kinds: tuple[str, ...] = ()
    left: Callable[[Expected], Left] = lambda _: (1.0, 1.0)
    without: Callable[[Library], Library] | None = None
    settings: tuple[str, ...] = ()
    refuted: str = ""

    def said(self, settings: str) -> str:
        """Return the setting that brings it about, as the run states it; "" when none does."""
        found = (re.search(pattern, settings, re.IGNORECASE) for pattern in self.settings)
        return next((one[0] for one in found if one), "")

    def ruled_out(self, settings: str) -> bool:
        """Return whether the run says that it is not so."""
        return bool(self.refuted and re.search(self.refuted, settings) and not self.said(settings))


@dataclass(frozen=True)
class Suspect:
    """A cause, held against a curve: the share of the shortfall that it explains, and what it then implies.

    `implied` is the share of the links' bandwidth that is left, `freedom` the most over the least that it may be,
    `evidence` a setting of the run that brings it about.
    """

    cause: Cause
    explained: Share
    implied: Share
    freedom: float = 1.0
    evidence: str = ""

    @property
    def finding(self) -> str:
        """What the curve says if this is the cause, in words."""
        if not self.cause.kinds and not self.cause.without:
            return "what it costs is not known"
        if not self.cause.kinds:
            return f"explains {self.explained:.0%} of what is missing"
        links = " and ".join(NAMES[kind] for kind in self.cause.kinds)
        return f"{links} at {self.implied:.2g} of their bandwidth explain {self.explained:.0%} of what is missing"


def suspect(cause: Cause, of: Expected, settings: str) -> Suspect:
    """Return a cause with the share left that fits a curve best."""
    rows = of.sizes >= min(MOVING, float(of.sizes.max()))
    missing = distance(of.measured[rows], of.seconds[rows])
    low, high = cause.left(of)
    tried = np.geomspace(low, high, STEPS if high > low * (1 + 1e-9) else 1)
    library = cause.without(of.library) if cause.without else None
    others = [of.at(_slowed(cause, share), library) for share in tried.tolist()]
    errors = [distance(of.measured[rows], one[rows]) for one in others]
    best = int(np.argmin(errors))
    explained = max(0.0, 1 - errors[best] / missing) if missing else 0.0
    return Suspect(cause, explained, float(tried[best]), high / low, cause.said(settings))


def _slowed(cause: Cause, share: float) -> Case:
    return Case(faster=tuple((kind, share) for kind in cause.kinds))


def distance(measured: Floats, other: Floats) -> float:
    """Return how many times too long or too short the other times are on average, as a logarithm."""
    return float(np.abs(np.log(measured / other)).mean())
