"""Which mitigations wait for fewer, or not as often?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from commsim.errors import InputError
from commsim.stragglers.mitigations.mitigation import Case, Ended, Mitigation

if TYPE_CHECKING:
    from commsim.stragglers.parts import Ends
    from commsim.stragglers.simulate import Stage


@dataclass(frozen=True)
class BackupWorkers(Mitigation):
    """So many replicas more are started, and the step does not wait for as many."""

    spare: int = 1
    source: ClassVar[str] = "Chen et al. 2016, arXiv 1604.00981: 4 of 100 workers"
    loses: ClassVar[str] = "the samples of those that are not waited for"

    def __post_init__(self) -> None:
        """Refuse what is no number of replicas; InputError."""
        if self.spare < 1:
            raise InputError("backup-workers: spare", self.spare, "1 or more belong here")

    def mended(self, case: Case) -> Case:
        """Return the case with the replicas that are started besides."""
        cast = case.stage.cast
        return case._replace(stage=replace(case.stage, cast=cast.of_replicas(cast.replicas + self.spare)))

    def ended(self, stage: Stage, ends: Ends) -> Ended:
        """Return the steps without waiting for the last replicas of each."""
        first = np.argsort(ends.last.max(axis=0), axis=1)[:, : -self.spare]
        slower = np.broadcast_to(ends.slower, ends.last.shape)
        kept = (np.take_along_axis(one, first[None], axis=2) for one in (ends.last, ends.over, slower))
        return Ended(stage.parts.finished(type(ends)(*kept)))

    def lost(self, case: Case) -> float:
        """Return the share of the replicas that are not waited for."""
        return self.spare / (case.stage.cast.replicas + self.spare)


@dataclass(frozen=True)
class DropCompute(Mitigation):
    """Whoever is not done after `limit` times the ideal work drops the micro-batches that are left."""

    limit: float = 1.1
    source: ClassVar[str] = "Giladi et al., NeurIPS 2023 (DropCompute)"
    loses: ClassVar[str] = "the samples that are dropped"

    def __post_init__(self) -> None:
        """Refuse a limit that is none; InputError."""
        if not 0 < self.limit < np.inf:
            raise InputError("drop-compute: limit", self.limit, "a number above 0 belongs here")

    def ended(self, stage: Stage, ends: Ends) -> Ended:
        """Return the steps cut off, and the share of micro-batches that fall away, whole ones."""
        microbatches = stage.parts.program.dims[2]
        limit = self.limit * stage.parts.ideal_ends[:, None, None]
        over = np.maximum(1 - limit / ends.last, 0.0).max(axis=0)
        dropped = np.ceil(over * microbatches - 1e-9) / microbatches
        return Ended(stage.parts.finished(ends._replace(last=np.minimum(ends.last, limit))), dropped.mean(axis=1))


@dataclass(frozen=True)
class LocalSgd(Mitigation):
    """Replicas go on by themselves and wait for each other once in `every` steps."""

    every: int = 16
    source: ClassVar[str] = "Stich 2019; DiLoCo, Douillard et al. 2023, arXiv 2311.08105: every 500 steps"
    loses: ClassVar[str] = "weights that are the same on all replicas in each step"

    def __post_init__(self) -> None:
        """Refuse what is no number of steps; InputError."""
        if self.every < 1:
            raise InputError("local-sgd: every", self.every, "1 step or more belong here")

    @property
    def steps(self) -> int:
        """The steps between two synchronisations."""
        return self.every

    def ended(self, stage: Stage, ends: Ends) -> Ended:
        """Return the mean step between two synchronisations, [one]."""
        many = ends.last.shape[1]
        whole = ends._replace(
            last=ends.last.sum(axis=1, keepdims=True), over=ends.over[:, -1:], slower=ends.slower[:, -1:]
        )
        updates = (many - 1) * float(stage.parts.rest.max())
        return Ended((stage.parts.finished(whole) + updates) / many)
