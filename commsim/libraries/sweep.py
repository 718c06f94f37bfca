"""How long does a collective take over many sizes, and what would the wire alone allow?"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from commsim.collectives.kinds import Collective, collective
from commsim.collectives.layout import Layout
from commsim.errors import InputError
from commsim.figures import is_range
from commsim.libraries.calibration import NOMINAL, Case
from commsim.libraries.ideal import Ideal
from commsim.libraries.nccl import Nccl
from commsim.libraries.own import own
from commsim.units import parse_sizes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from commsim.hardware.system import System
    from commsim.libraries.library import Floats, Library, Timing

LARGEST = 2**60
"""Bytes of the largest message that is timed: 1 EiB is beyond any machine, more is a slip of the pen."""


@dataclass(frozen=True, eq=False)
class Sweep:
    """One collective of all GPUs of a machine over sizes[size] (bytes as `op.size` counts them), done by a library."""

    op: Collective
    sizes: Floats
    system: System
    library: Library = field(default_factory=Nccl)

    def at(self, case: Case) -> Timing:
        """Return the timing in another case: at the end of the machine's ranges, or with something made faster."""
        return self._timed(self.library, case)

    @cached_property
    def timing(self) -> Timing:
        """The timing at the nominal figures of the machine."""
        return self.at(NOMINAL)

    @cached_property
    def ends(self) -> tuple[Timing, Timing] | None:
        """The timings at the fast and the slow end of the machine's figures; None when they are all certain."""
        links = self.system.topology.kinds
        if not any(is_range(value) for link in links for value in (link.bandwidth, link.latency)):
            return None
        return self.at(Case("high")), self.at(Case("low"))

    @cached_property
    def limit(self) -> Timing:
        """What the wire alone would allow: the cheapest schedule at full bandwidth (library `ideal`)."""
        return self._timed(Ideal(), NOMINAL)

    def _timed(self, library: Library, case: Case) -> Timing:
        topology = self.system.topology
        return library.time(self.op, self.sizes, Layout.first(topology.size), topology, case=case)


def sweep(op: str, system: System, sizes: str | Iterable[float], *, library: Library | None = None) -> Sweep:
    """Return the collective `op` of all GPUs of a machine, for sizes such as `8..8GiB`, `1K,1M` or numbers of bytes.

    Without a `library` it is that of the GPUs' vendor. InputError for an unknown operation, for sizes that are none and
    for a library that does not run there.
    """
    listed = parse_sizes(sizes) if isinstance(sizes, str) else list(sizes)
    if not listed:
        raise InputError("sizes", listed, "at least one size belongs here")
    for size in listed:
        if not 1 <= size <= LARGEST:
            raise InputError("size", size, "1 B to 1 EiB belong here")
    return Sweep(collective(op), np.array(listed, dtype=np.float64), system, own(system, library))
