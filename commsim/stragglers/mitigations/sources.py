"""Which mitigations end a cause where it arises?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from commsim.stragglers.kinds import Collisions, Pause
from commsim.stragglers.mitigations.mitigation import Case, Mitigation, changed


@dataclass(frozen=True)
class PlannedGc(Mitigation):
    """All processes collect their garbage in the same step."""

    source: ClassVar[str] = "ByteDance, OSDI 2025, section 5: 12.6 % on 128 data ranks"
    loses: ClassVar[str] = "memory, which grows until the planned step"

    def mended(self, case: Case) -> Case:
        """Return the case with its pauses planned."""
        return changed(case, Pause, lambda pause: replace(pause, planned=True))


@dataclass(frozen=True)
class PacketSpraying(Mitigation):
    """Packets of a flow take all paths, or each flow is split over `flows` queue pairs, which are hashed one by one."""

    flows: int | None = None
    source: ClassVar[str] = "Gangidi et al., SIGCOMM 2024: up to 40 % by more queue pairs and enhanced ECMP"
    loses: ClassVar[str] = "order: the receiver puts packets together again"

    def mended(self, case: Case) -> Case:
        """Return the case without collisions, or with more and smaller flows."""
        if self.flows is None:
            return changed(case, Collisions, lambda _: None)
        times = self.flows
        return changed(case, Collisions, lambda one: replace(one, flows=one.flows * times))
