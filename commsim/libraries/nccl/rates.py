"""What do a group's links and messages cost with a calibration?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from commsim.collectives.kinds import BROADCAST, REDUCE
from commsim.libraries.calibration import COPYING, Case, LinkUse, rates
from commsim.libraries.nccl.team import of_gpus

if TYPE_CHECKING:
    from commsim.collectives.kinds import Collective
    from commsim.collectives.price import Cost
    from commsim.libraries.calibration import Calibration, LinkWay, Protocol
    from commsim.libraries.library import Floats
    from commsim.libraries.nccl.team import Team

_ROOTED = (BROADCAST, REDUCE)


@dataclass(frozen=True, eq=False)
class Priced:
    """One way of an operation in a group: who takes part, its protocol by name, and its price."""

    op: Collective
    team: Team
    protocol: str
    cost: Cost
    meshed: bool = False


@dataclass(frozen=True, eq=False)
class Rates:
    """A price with a calibration, in a case of the machine."""

    of: Priced
    fitted: Calibration
    case: Case
    older: bool = False

    @cached_property
    def protocol(self) -> Protocol:
        """The protocol's own constants."""
        return self.fitted.protocols[self.of.protocol]

    @cached_property
    def inside(self) -> LinkUse:
        """The use of the links that join the GPUs of a node."""
        return self.fitted.use(self.of.team.inside)

    @cached_property
    def start(self) -> float:
        """What a call waits for, whatever it does, s."""
        return float(self.inside.start)

    @cached_property
    def _wires(self) -> tuple[Floats, Floats]:
        return rates(self.of.cost.kinds, self.case)

    @property
    def hastened(self) -> float:
        """By how much channels copy faster in this case than they do."""
        return self.case.factor(COPYING)

    def per_byte(self, way: LinkWay = "efficiency", *, sending: bool = False) -> Floats:
        """Return what a byte takes on the busiest link of each kind, stage by stage: s/B[stage, kind]."""
        shares = [self._share(link.kind, way, sending=sending) for link in self.of.cost.kinds]
        found: Floats = self.of.cost.load / (self._wires[0] * np.array(shares) * self.protocol.payload)
        return found

    def _share(self, kind: str, way: LinkWay, *, sending: bool) -> float:
        team, use, corner = self.of.team, self.fitted.use(kind), self.case.corner
        if of_gpus(kind):
            if way == "in_network":
                through = self.fitted.switching.through if team.nodes > 1 else 1.0
                return use.reducing(team.local, corner) * through
            meshed = self.fitted.meshed if self.of.meshed else 1.0
            return use.share("efficiency", corner) * meshed * (self.fitted.sending.inside if sending else 1.0)
        outside = self.fitted.sending.outside if sending and kind.endswith((" nic", " switch")) else 1.0
        if team.through_host or (team.staged and not kind.endswith(" nic")):
            return use.share("staged", corner) * outside
        return use.share("network" if team.nodes > 1 else "efficiency", corner) * outside

    @cached_property
    def wire(self) -> float:
        """The latency of the wire on the way of one byte, s; a rooted operation passes on while the next one starts."""
        whole = float((self.of.cost.hops @ self._wires[1]).sum())
        return whole / max(1, self.of.team.ranks - 1) if self.of.op in _ROOTED else whole

    @cached_property
    def _messages(self) -> tuple[float, float]:
        """How many messages wait for each other, inside nodes and between them."""
        near, far = (float(count) for count in self.of.cost.steps.sum(axis=0))
        return (min(near, 1.0), min(far, 1.0)) if self.of.op in _ROOTED else (near, far)

    def near(self, name: str) -> float:
        """Return what software adds to the messages inside nodes of NCCL's algorithm `name`, s.

        A ring between nodes cannot step faster than hosts send messages (NCCL 2.30, src/graph/tuning.cc: netOverhead).
        """
        posting = self.fitted.posting if name == "Ring" and self.of.team.nodes > 1 else 0.0
        return self._messages[0] * max(self.hop, float(posting))

    @cached_property
    def beyond(self) -> float:
        """What software adds to the messages between nodes, s."""
        return self._messages[1] * self.network

    @cached_property
    def hop(self) -> float:
        """What a message inside a node costs, s."""
        if self.older and self.of.protocol == "Simple" and of_gpus(self.of.team.inside) and self.fitted.older:
            return min(self.inside.message("Simple"), float(self.fitted.older.hop))
        staged = self.of.team.staged
        through_host = self.inside.message(self.of.protocol, staged=True) if staged else 0.0
        return staged * through_host + (1 - staged) * self.inside.message(self.of.protocol)

    @cached_property
    def network(self) -> float:
        """What a message through the network costs, s."""
        return self.nic * float(self.protocol.network)

    @cached_property
    def nic(self) -> float:
        """What a message through a NIC costs with LL, s."""
        return self.fitted.use(self.of.team.outside).message("LL") if self.of.team.outside else 0.0
