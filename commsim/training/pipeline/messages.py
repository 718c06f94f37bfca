"""How do messages tie the stages of a pipeline together?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from commsim.training.pipeline.schedules import Integers

NOTHING = -1
"""Stands for the node that a node need not wait for. Look-up arrays carry it as an extra last entry."""

COMMUNICATION = ("asynchronous", "blocking", "rendezvous", "serialised")
"""How stages communicate.

asynchronous: a message occupies nobody; who needs it waits for it.
blocking: a message occupies the stage that sends it.
rendezvous: a message waits for both stages and occupies both, as point-to-point kernels on the compute stream do;
    what two neighbours exchange in both directions travels together (Megatron-LM without p2p overlap).
serialised: a rendezvous whose two directions travel one after the other.
"""


@dataclass(frozen=True)
class _Flow:
    """The operations of a schedule, who works on them in which order, and whose output each takes."""

    order: Integers
    source: Integers

    @cached_property
    def stage(self) -> Integers:
        """[operation]: the stage that runs it."""
        stage = np.empty(self.source.size, dtype=np.intp)
        stage[self.order] = np.arange(len(self.order))[:, None]
        return stage

    @cached_property
    def previous(self) -> Integers:
        """[operation]: what its stage does before."""
        return self._paired(self.order[:, 1:], self.order[:, :-1])

    @cached_property
    def following(self) -> Integers:
        """[operation]: what its stage does after."""
        return self._paired(self.order[:, :-1], self.order[:, 1:])

    @cached_property
    def takers(self) -> Integers:
        """The operations whose input comes from another stage."""
        return np.flatnonzero((self.source != NOTHING) & (self.stage[self.source] != self.stage))

    @cached_property
    def senders(self) -> Integers:
        """The operation that each of the `takers` takes its input from."""
        return self.source[self.takers]

    @cached_property
    def message(self) -> Integers:
        """[operation]: the node that ends when its output has arrived: its message, or itself where there is none."""
        return self._paired(self.senders, self.senders + self.source.size, otherwise=np.arange(self.source.size))

    @cached_property
    def taker(self) -> Integers:
        """[operation]: who takes its output on another stage."""
        return self._paired(self.senders, self.takers)

    def _paired(self, keys: Integers, values: Integers, otherwise: Integers | int = NOTHING) -> Integers:
        """A look-up array with its extra last entry."""
        found = np.full(self.source.size + 1, NOTHING, dtype=np.intp)
        found[:-1] = otherwise
        found[keys] = values
        return found


def linked(order: Integers, source: Integers, communication: str) -> tuple[Integers, Integers]:
    """Return the nodes `before` and `needs` [2 x operations] that every node follows, NOTHING where there is none.

    `order[stage, turn]` is the schedule, `source[operation]` the operation whose output an operation takes. A message
    that does not exist has no node before it.
    """
    flow = _Flow(order, source)
    none = np.full(source.size, NOTHING, dtype=np.intp)
    frees = np.append(np.arange(source.size), NOTHING) if communication == "asynchronous" else flow.message
    before = np.concatenate([frees[flow.previous[:-1]], none])
    needs = np.concatenate([source, none])
    messages = needs[flow.takers] = flow.message[flow.senders]
    before[messages] = needs[messages] = flow.senders
    if communication in {"rendezvous", "serialised"}:
        _wait_for_receivers(flow, needs)
    if communication == "serialised":
        _wait_for_other_direction(flow, before, needs)
    return before, needs


def _wait_for_receivers(flow: _Flow, needs: Integers) -> None:
    """Let each message wait until its receiver is there, too.

    A stage first sends what it has done, then receives what it will do; with the same neighbour it does both at once.
    """
    last = flow.previous[flow.takers]
    towards = flow.stage[flow.taker[last]]
    at_once = (flow.message[last] != last) & (towards == flow.stage[flow.senders])
    ready = np.where(at_once, last, flow.message[last])
    needs[flow.message[flow.senders]] = np.where(ready == NOTHING, flow.senders, ready)


def _wait_for_other_direction(flow: _Flow, before: Integers, needs: Integers) -> None:
    """Let the second of the two messages that neighbours exchange wait for the first."""
    last = flow.previous[flow.takers]
    next_source = np.append(flow.source, NOTHING)[flow.following[flow.senders]]
    second = (next_source == last) & (last != NOTHING) & (flow.senders > last)
    held, first = flow.message[flow.senders[second]], flow.message[last[second]]
    before[held] = needs[held] = first
