"""Who waits for whom, in one job?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from commsim.stragglers.drawing import Drawing
from commsim.stragglers.laws.law import Floats
from commsim.training.pipeline.explain import critical_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commsim.stragglers.cast import Ints
    from commsim.stragglers.kinds import Straggler
    from commsim.stragglers.parts import Ends
    from commsim.stragglers.simulate import Stage, Work

STEPS = 100
"""Steps of the job that are looked at, at most."""
_PATHS = 10
"""Of these, steps whose critical path is followed."""


@dataclass(frozen=True)
class Late:
    """A group: the ranks of one stage of one replica. Its own work over what it should be, and the share of steps.

    slower: its operations, on average, over the ideal ones. last: the share of steps in which the others wait for its
    replica. holds_up: how long the others then wait, s on average.
    """

    stage: int
    replica: int
    ranks: tuple[int, ...]
    slower: float
    last: float
    holds_up: float


@dataclass(frozen=True, eq=False)
class Waits:
    """Who is slow and who waits in the first job of a run, on average over its steps.

    slower: [stage, replica], a group's own operations over the ideal ones. idle: [stage, replica] in s, how long it
    waits once its work is done. last: [replica], the share of steps in which all others wait for it. path: [stage], the
    share of the last replica's critical path that lies on a stage; the rest are messages.
    """

    slower: Floats
    idle: Floats
    last: Floats
    path: Floats
    groups: tuple[Late, ...]


def waits(stage: Stage, causes: Sequence[Straggler], seed: int) -> Waits:
    """Return who waits for whom; the groups are sorted, those whose replica is last most often first."""
    slower, idle, last, paths = [], [], [], list[Floats]()
    drawing = Drawing(STEPS, 1, seed).fewer(stage)
    for work in drawing.work(stage, causes):
        ends = stage.ends(work)
        slower.append(_own(stage, work))
        idle.append(ends.last.max(axis=2, keepdims=True) - ends.last)
        last.append(last_of(stage, ends))
        wanted = last[-1][: max(0, _PATHS - len(paths))]
        paths += [_path(stage, work, trial, int(replica)) for trial, replica in enumerate(wanted)]
    found = np.concatenate(slower, axis=1).mean(axis=1), np.concatenate(idle, axis=1).mean(axis=1)
    which = np.bincount(np.concatenate(last), minlength=stage.cast.replicas) / drawing.number
    return Waits(*found, which, np.mean(paths, axis=0), _groups(stage, *found, which))


def _own(stage: Stage, work: Work) -> Floats:
    """What each group's operations take over the ideal ones, [stage, trial, replica]."""
    parts, (trials, replicas) = stage.parts, (work.slower.shape[1], stage.cast.replicas)
    mean = work.durations.mean(axis=3).sum(axis=(0, 1))
    ideal = (parts.compute + parts.said).sum(axis=(0, 1))[:, None, None]
    return np.broadcast_to(mean / ideal, (stage.cast.stages, trials, replicas))


def last_of(stage: Stage, ends: Ends) -> Ints:
    """Return the replica for which the others wait, [trial]: the last on the stage that is done last."""
    late = ends.last + (stage.parts.data + stage.parts.rest)[:, None, None]
    found: Ints = late.max(axis=0).argmax(axis=1)
    return found


def alone(stage: Stage, work: Work, trial: int, replica: int) -> tuple[Floats, Floats]:
    """Return the operations and messages of one replica in one step, [kind, chunk, micro-batch or 1] in s each."""
    kinds, chunks, _ = stage.parts.program.dims
    ours = [part[..., trial % part.shape[4], replica % part.shape[5]][..., None, None] for part in work[:2]]
    durations, delays = (stage.parts.chunked(part, kinds, chunks)[..., 0, 0] for part in ours)
    return durations, delays


def _path(stage: Stage, work: Work, trial: int, replica: int) -> Floats:
    """The share of the critical path of a replica's step that lies on each stage, [stage]."""
    found = np.zeros(stage.cast.stages)
    path = critical_path(stage.parts.program, *alone(stage, work, trial, replica))
    for one in path:
        found[one.stage] += (one.finish - one.start) * (one.kind != "message")
    return found / path[-1].finish


def _groups(stage: Stage, slower: Floats, idle: Floats, last: Floats) -> tuple[Late, ...]:
    """Every group, those of the replica that is last most often first, and of these the slowest."""
    cast, held = stage.cast, idle.sum(axis=1) / max(1, stage.cast.replicas - 1)
    order = np.lexsort((-slower.ravel(), -np.broadcast_to(last, slower.shape).ravel()))
    places = zip(*np.unravel_index(order[:_MOST], slower.shape))
    return tuple(
        Late(
            stage=int(at),
            replica=int(replica),
            ranks=tuple(cast.ranks_of(int(at), int(replica)).tolist()),
            slower=float(slower[at, replica]),
            last=float(last[replica]),
            holds_up=float(held[at]),
        )
        for at, replica in places
    )


_MOST = 64
"""Groups listed at most."""
