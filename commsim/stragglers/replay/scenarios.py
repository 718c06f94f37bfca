"""How long are the steps if only some of the operations are as slow as they were?"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from commsim.measurement.traces.steps import OPERATIONS
from commsim.stragglers.replay.graph import meetings
from commsim.stragglers.replay.ideal import parts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from commsim.measurement.traces.steps import Floats, StepTrace
    from commsim.stragglers.replay.graph import Meeting, Node
    from commsim.stragglers.replay.ideal import Parts

    Kept = NDArray[np.bool_]

_LARGEST = 2**22
"""Figures of one operation in all scenarios that are solved at once."""


@dataclass(frozen=True, eq=False)
class Scenarios:
    """A trace that can be replayed with any of its operations as they were, and the others as they would be ideally.

    A scenario is an array [operation, stage, replica] of what is kept as it was. `known` stands for the parts of the
    trace where something other than that is to be replayed.
    """

    trace: StepTrace
    known: Parts | None = None

    @cached_property
    def meetings(self) -> tuple[Meeting, ...]:
        """What happens in a step, in an order in which it can be solved."""
        return meetings(self.trace)

    @cached_property
    def parts(self) -> Parts:
        """What each operation takes without waiting."""
        return self.known or parts(self.trace, self.meetings)

    @property
    def everything(self) -> Kept:
        """All as it was."""
        return np.ones((len(OPERATIONS), self.trace.stages, self.trace.replicas), dtype=bool)

    def steps(self, kept: Sequence[Kept]) -> Floats:
        """Return how long each step is, [scenario, step] in s."""
        size = self.trace.shape[0] * self.trace.shape[1]
        block = max(1, _LARGEST // size)
        firsts = range(0, len(kept), block)
        return np.concatenate([self._solved(np.array(kept[first : first + block])) for first in firsts])

    def spans(self, kept: Sequence[Kept], step: int, replica: int) -> dict[Node, Floats]:
        """Return when each operation of one step of one replica begins and ends, [begin or end, scenario] in s."""
        return {
            node: np.stack([start[:, step, min(replica, start.shape[2] - 1)], end[:, step, replica]])
            for node, start, end in self._nodes(np.array(kept))
        }

    def _solved(self, kept: Kept) -> Floats:
        """The steps of some scenarios."""
        last = np.zeros((len(kept), self.trace.shape[0]))
        for _, _, end in self._nodes(kept):
            np.maximum(last, end.max(axis=2), out=last)
        return last

    def _nodes(self, kept: Kept) -> Iterator[tuple[Node, Floats, Floats]]:
        """Each operation, when it begins and when it ends; ends are forgotten once nobody waits for them any more."""
        ends: dict[Node, Floats] = {}
        uses = self._uses.copy()
        for one in self.meetings:
            start = self._start(one, ends, len(kept))
            for node, after in zip(one.members, one.after):
                end = start + self._seconds(node, kept)
                if node in self._uses:
                    ends[node] = end
                yield node, start, end
                for other in after:
                    uses[other] -= 1
                    if not uses[other]:
                        del ends[other]

    @cached_property
    def _uses(self) -> Counter[Node]:
        """How many nodes wait for each."""
        return Counter(other for one in self.meetings for after in one.after for other in after)

    def _start(self, one: Meeting, ends: dict[Node, Floats], scenarios: int) -> Floats:
        """When the last member is ready, [scenario, step, replica]."""
        start = np.zeros((scenarios, *self.trace.shape))
        for after in one.after:
            for other in after:
                np.maximum(start, ends[other], out=start)
        return start.max(axis=2, keepdims=True) if one.synced else start

    def _seconds(self, node: Node, kept: Kept) -> Floats:
        """What a node takes, [scenario, step, replica]; nothing where the trace does not have it."""
        op, stage, turn = node
        if op not in self.parts.seconds:
            return np.zeros((1, 1, self.trace.replicas))
        own = kept[:, OPERATIONS.index(op), stage]
        return np.where(own[:, None], self.parts.seconds[op][stage, turn], self.parts.ideal[op])
