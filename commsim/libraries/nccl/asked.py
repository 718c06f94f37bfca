"""What was NCCL asked to do, by whom, and which ways has it?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from commsim.errors import InputError
from commsim.libraries.nccl.constants import ALGORITHMS as TUNED
from commsim.libraries.nccl.constants import OPS, PROTOCOLS, versions
from commsim.libraries.nccl.knobs import Knobs
from commsim.libraries.nccl.rates import Priced
from commsim.libraries.nccl.team import Team, team
from commsim.libraries.nccl.tuner import tune
from commsim.libraries.nccl.ways import ALGORITHMS, Way, ways

if TYPE_CHECKING:
    from collections.abc import Iterable

    from commsim.collectives.kinds import Collective
    from commsim.collectives.layout import Layout
    from commsim.hardware.topology import Topology
    from commsim.libraries.library import Floats, Ints
    from commsim.libraries.nccl.tuner import Table

_EFA, _HOPPER = "efa nic", 90
_ALIKE = {"CollNetChain/Simple": "CollNetDirect/Simple"}
"""Entries of the tuner that are no ways of their own here: a chain inside the node instead of a star."""


@dataclass(frozen=True)
class Settings:
    """How NCCL is configured: names as NCCL spells them; a version, or "" for the newest that allows them."""

    nvls: bool = True
    collnet: bool = False
    algorithm: str | None = None
    protocol: str | None = None
    version: str = ""

    @cached_property
    def checked(self) -> Settings:
        """The settings with names as NCCL writes them. InputError for names that it does not know."""
        algorithm = _known("algorithm", self.algorithm, ALGORITHMS)
        return Settings(self.nvls, self.collnet, algorithm, _known("protocol", self.protocol, PROTOCOLS), self.version)

    @property
    def knobs(self) -> Knobs:
        """The variables that say so."""
        algorithm = self.algorithm if self.algorithm in TUNED else ""
        return Knobs(
            algo=algorithm or "",
            proto=self.protocol or "",
            nvls_enable=2 if self.nvls else 0,
            collnet_enable=int(self.collnet),
        )

    def leave(self, way: Way) -> bool:
        """Tell whether they leave a way."""
        asked = self.algorithm in (None, way.name) and (self.collnet or not way.collnet)
        return asked and (self.nvls or not way.name.startswith("NVLS"))


class Named(NamedTuple):
    """A way with one of its protocols, and its price."""

    way: Way
    priced: Priced

    @property
    def name(self) -> str:
        """What NCCL's tuner calls it: Ring/LL."""
        return f"{self.way.name}/{self.priced.protocol}"


@dataclass(frozen=True, eq=False)
class Asked:
    """An operation of a group: its team, the ways that its settings leave, and NCCL's tuner where it can be asked.

    `entries`[row] numbers the tuner's entries that are ways here, `rows`[row] the ways that they are.
    """

    op: Collective
    team: Team
    ways: tuple[Named, ...]
    version: str
    table: Table | None = None

    @classmethod
    def of(cls, settings: Settings, op: Collective, layout: Layout, topology: Topology) -> Asked:
        """Return what is asked of NCCL. InputError for settings that no version allows."""
        settings = settings.checked
        found = ways(op, layout, topology, settings.leave)
        for version in [settings.version] if settings.version else reversed(versions()):
            asking = team(layout, topology, settings.knobs, version)
            table = tune(asking.comm) if asking.comm and op.name in OPS and not _tuned_by_plugin(asking) else None
            named = tuple(
                Named(way, Priced(op, asking, protocol, cost, topology.meshed))
                for way, cost in found.values()
                for protocol in way.protocols
                if settings.protocol in (None, protocol)
            )
            if table is None or table.entries[op.name] or not (settings.algorithm or settings.protocol):
                break
        return cls(op, asking, named, settings.version, table)

    def chosen(self, sizes: Floats, seconds: Floats) -> Ints:
        """Return the way[size] that NCCL takes: its tuner's pick, without one the quickest."""
        rows = self._rows
        if self.table is None or not len(rows):
            quickest: Ints = np.argmin(seconds, axis=0)
            return quickest
        believed = self.table.seconds(self.op.name, sizes)[[entry for entry, _ in rows]]
        # NCCL compares single-precision numbers, and takes the earlier of equals.
        ours = np.array([row for _, row in rows])
        found: Ints = ours[np.argmin(believed.astype(np.float32), axis=0)]
        return found

    @cached_property
    def _rows(self) -> list[tuple[int, int]]:
        """Which entry of the tuner is which of the ways."""
        names = [one.name for one in self.ways]
        entries = [_ALIKE.get(name, name) for name in self.table.entries[self.op.name]] if self.table else []
        return [(entry, names.index(name)) for entry, name in enumerate(entries) if name in names]


def _tuned_by_plugin(asking: Team) -> bool:
    """Whether a tuner of the network's own picks: AWS's plugin for EFA has one for machines from Hopper on."""
    return asking.outside == _EFA and asking.nodes > 1 and bool(asking.comm and asking.comm.capability >= _HOPPER)


def _known(what: str, given: str | None, names: Iterable[str]) -> str | None:
    """The name that was given, as NCCL writes it, whatever its case; InputError when there is none such."""
    if given is None:
        return None
    spelt = {name.lower(): name for name in names}
    if given.lower() not in spelt:
        raise InputError(what, given, "NCCL has no such", among=sorted(spelt.values()))
    return spelt[given.lower()]
