"""Which mitigations deal the work out anew?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from commsim.errors import InputError
from commsim.stragglers.kinds import ExpertImbalance, LastStage, SequenceImbalance
from commsim.stragglers.mitigations.mitigation import Case, Ended, Mitigation, changed

if TYPE_CHECKING:
    from commsim.stragglers.cast import Ints
    from commsim.stragglers.laws.law import Floats
    from commsim.stragglers.parts import Ends
    from commsim.stragglers.simulate import Stage, Work


@dataclass(frozen=True)
class UnevenLayers(Mitigation):
    """The last stage, which computes the loss besides, has `fewer` layers, and the others share them."""

    fewer: float = 1.0
    layers: int | None = None
    source: ClassVar[str] = "ByteDance, OSDI 2025, section 5: 9.9 % quicker"
    loses: ClassVar[str] = "memory of the other stages"

    def mended(self, case: Case) -> Case:
        """Return the case with layers moved; InputError when there is one stage, or fewer layers than that."""
        parts, stages = case.stage.parts, case.stage.cast.stages
        whole = self.layers
        if stages == 1 or whole is None or not 0 < self.fewer < whole:
            given = f"{self.fewer:g} of {whole} layers on {stages} stages"
            raise InputError("uneven-layers", given, "some, but not all, layers of the last of several stages")
        share = self.fewer / whole
        moved = np.full(stages, share / (stages - 1))
        moved[-1] = -share
        compute, said = (one + np.median(one, axis=2, keepdims=True) * moved for one in (parts.compute, parts.said))
        stage = replace(case.stage, parts=replace(parts, compute=np.maximum(compute, 0), said=np.maximum(said, 0)))
        causes = tuple(_lighter(one, share) if isinstance(one, LastStage) else one for one in case.causes)
        return Case(stage, causes)


def _lighter(cause: LastStage, share: float) -> LastStage:
    """The factors of a last stage whose loss is the same, over the layers that it still has."""
    forward, backward = ((factor - share) / (1 - share) for factor in (cause.forward, cause.backward))
    return LastStage(forward, backward)


@dataclass(frozen=True)
class MicroBatchRebalancing(Mitigation):
    """Slow replicas take fewer micro-batches of a step, quick ones more, by their speed over `over` steps."""

    over: int = 20
    source: ClassVar[str] = "Greyhound, ATC 2025, S2: 1.31 s to 0.83 s with one slow replica of four"
    loses: ClassVar[str] = "0.01 s on 64 replicas, 36 s on 512, to find the shares; gradients are weighted by them"

    @property
    def steps(self) -> int:
        """As many as the speed is taken from."""
        return self.over

    def ended(self, stage: Stage, ends: Ends) -> Ended:
        """Return the steps with each replica's time as long as its new share of the micro-batches."""
        each, waiting = stage.parts.program.dims[2], stage.cast.stages - 1
        seconds = ends.last.max(axis=0).mean(axis=0) / (each + waiting)
        share = (rebalanced(seconds, each, waiting) + waiting) / (each + waiting)
        return Ended(stage.parts.finished(ends._replace(last=ends.last * share)))


def rebalanced(seconds: Floats, each: int, waiting: int = 0) -> Ints:
    """Return how many micro-batches each replica takes, [replica], where one takes it so many s.

    As many in all as `each` for every replica; one after the other goes to whom has it done first (Graham 1969).
    A pipeline takes its time for `waiting` more.
    """
    found = np.zeros(seconds.size, dtype=np.int64)
    fluid = each * seconds.size / (1 / seconds).sum()
    found[:] = np.maximum(np.floor(fluid / seconds - waiting - 1), 0)
    for _ in range(each * seconds.size - int(found.sum())):
        found[np.argmin((found + 1 + waiting) * seconds)] += 1
    return found


@dataclass(frozen=True)
class Redistribution(Mitigation):
    """Micro-batches with long sequences are dealt out so that replicas have as much to do, long ones together."""

    source: ClassVar[str] = "ByteDance, OSDI 2025, section 5: 23.9 % quicker with sequences of 32K"
    loses: ClassVar[str] = "an exchange of sequences between replicas before each step"

    def mended(self, case: Case) -> Case:
        """Return the case, which has sequences that differ; InputError else."""
        return changed(case, SequenceImbalance, lambda one: one)

    def dealt(self, work: Work) -> Work:
        """Return the micro-batches of each step sorted, and dealt out forwards and backwards in turn."""
        durations = work.durations
        if durations.shape[3] == 1 or durations.shape[5] == 1:
            return work
        cost = np.moveaxis(durations.sum(axis=(0, 1, 2)), 1, 0)
        trials, microbatches, replicas = cost.shape
        order = np.argsort(-cost.reshape(trials, -1), axis=1).reshape(trials, microbatches, replicas)
        order[:, 1::2] = order[:, 1::2, ::-1]
        flat = np.moveaxis(durations, 4, 3).reshape(*durations.shape[:3], trials, -1)
        dealt = np.take_along_axis(flat, order.reshape(1, 1, 1, trials, -1), axis=4)
        shape = (*durations.shape[:3], trials, microbatches, replicas)
        return work._replace(durations=np.moveaxis(dealt.reshape(shape), 3, 4))


@dataclass(frozen=True)
class ExpertRebalancing(Mitigation):
    """Popular experts stand on several ranks, and all are placed by their load."""

    excess: float = 0.115
    source: ClassVar[str] = "TensorRT-LLM, ep_load_balancer: 0.115 above the mean with 288 slots for 256 experts"
    loses: ClassVar[str] = "memory: an eighth more expert weights with 288 slots for 256"

    def mended(self, case: Case) -> Case:
        """Return the case with as little imbalance as that."""
        return changed(case, ExpertImbalance, lambda one: replace(one, excess=min(one.excess, self.excess)))
