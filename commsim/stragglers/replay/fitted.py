"""Which causes would make steps like those of a trace, and by which laws? What `run` and `commsim stragglers` can draw.

The time of a pass is taken apart into factors: of its stage, of its worker (for the job), of the step (shared by all),
of its micro-batch where sequences differ, and the rest, of each operation. Worker and operation matter differently:
what is a worker's own never averages out.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import yaml

from commsim.errors import InputError
from commsim.measurement.traces.events import ALONE, EventTrace
from commsim.measurement.traces.steps import BACKWARD, FORWARD, PASSES, StepTrace
from commsim.stragglers.causes import table_of
from commsim.stragglers.effects import Effect, Target
from commsim.stragglers.kinds import (
    Effected,
    Jitter,
    LastStage,
    Pause,
    SequenceImbalance,
    SharedJitter,
    SlowRank,
    Straggler,
    Variation,
)
from commsim.stragglers.laws import Empirical
from commsim.stragglers.replay.causes import SPREAD, TOGETHER
from commsim.stragglers.replay.goodness import LEVELS, Fit, fits
from commsim.stragglers.replay.passes import MAD, alike, paused
from commsim.stragglers.replay.scenarios import Scenarios
from commsim.stragglers.replay.schedule import ordered
from commsim.stragglers.replay.work import work_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from commsim.measurement.traces.read import Trace
    from commsim.measurement.traces.steps import Floats, Ints

OUTLIER, FAR = 1.05, 4.0
"""A worker is slow by itself, not by variation, if it takes so many times as long as the median, and if it is so many
robust standard deviations away."""
LEAST = 1e-4
"""Smaller spreads are nothing, s/s."""
_SMALL = 0.01


@dataclass(frozen=True, eq=False)
class Fitted:
    """The causes of a trace, and the laws that its factors follow, by what they are factors of."""

    causes: tuple[Straggler, ...]
    laws: Mapping[str, tuple[Fit, ...]]


def fitted(trace: Trace, *, schedule: str = "1f1b", virtual: int = 1) -> Fitted:
    """Return the causes that a trace shows; InputError for one that does not say when each rank worked.

    `schedule` and `virtual` as in `replay`.
    """
    if isinstance(trace, StepTrace):
        return _of_steps(ordered(trace, schedule, virtual))
    if isinstance(trace, EventTrace) and np.any(trace.meeting != ALONE):
        return _of_events(trace)
    raise InputError(getattr(trace, "source", "trace"), "durations alone", "when each rank worked and met the others")


def write(causes: Iterable[Straggler], path: Path | str) -> None:
    """Write causes as YAML that `causes` and `commsim stragglers` read; InputError for a place that is none."""
    text = yaml.safe_dump({"causes": [table_of(one) for one in causes]}, sort_keys=False)
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError("out", str(path), f"it cannot be written: {error.strerror}") from None


@dataclass(frozen=True, eq=False)
class _Factors:
    """Passes over what is usual for their like, [pass], with the worker (a place in `ranks`) and the step of each."""

    ratio: Floats
    worker: Ints
    step: Ints
    ranks: tuple[int, ...]

    def fitted(self, first: Iterable[Straggler] = ()) -> Fitted:
        """What belongs to workers, to steps, and the rest."""
        workers = _mean(self.ratio, self.worker)
        steps = _mean(self.ratio / workers[self.worker], self.step)
        rest = self.ratio / (workers[self.worker] * steps[self.step])
        own = workers / np.median(workers)
        slow = np.flatnonzero(own > max(OUTLIER, np.exp(FAR * np.median(np.abs(np.log(own))) * MAD)))
        usual = np.log(np.delete(own, slow))
        noise = float(np.log(rest).std())
        causes = [*first, *(SlowRank(factor=_rounded(own[one]), ranks=(self.ranks[one],)) for one in slow)]
        for kind, spread, every in (
            (Variation, usual, self.ratio.size / workers.size),
            (SharedJitter, np.log(steps), self.ratio.size / steps.size),
        ):
            sigma = np.sqrt(max(float(spread.var()) - noise**2 / every, 0.0)) if spread.size > 1 else 0.0
            causes += [kind(_rounded(sigma))] if sigma > LEAST else []
        laws = {"workers": np.delete(own, slow), "steps": steps, "operations": rest}
        known = {name: fits(values) for name, values in laws.items() if values.size >= _FEWEST}
        return Fitted((*causes, *_jitter(known.get("operations", ()), noise)), known)


_FEWEST = 8


def _jitter(laws: tuple[Fit, ...], noise: float) -> list[Straggler]:
    """The rest as jitter where a lognormal law describes it, else as the law that does, its mean being 1."""
    if noise <= LEAST:
        return []
    best = next((one for one in laws if one.name == "lognormal" and one.describes), None)
    if best or not laws or laws[0].law.support[0] < 0:
        return [Jitter(_rounded(noise))]
    return [Effected((Effect("compute", "operation", laws[0].law, Target("group")),))]


def _mean(values: Floats, of: Ints) -> Floats:
    found: Floats = np.bincount(of, values) / np.bincount(of)
    return found


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def _of_steps(trace: StepTrace) -> Fitted:
    seconds = dict(Scenarios(trace).parts.seconds)
    own = {op: seconds[op] for op in PASSES if op in seconds}
    causes: list[Straggler] = [*_last_stage(own)]
    if BACKWARD in own:
        where, usual = paused(trace, own)
        causes += _pauses(where, own[FORWARD] - usual)
        own[FORWARD] = np.where(where, usual, own[FORWARD])
    ratio = {op: array / _usual(array) for op, array in own.items()}
    together = alike(trace, own)
    if together.correlation >= TOGETHER and together.spread >= SPREAD:
        causes.append(SequenceImbalance(_empirical(ratio[FORWARD].mean(axis=0))))
        ratio = {op: array / array.mean(axis=0, keepdims=True) for op, array in ratio.items() if trace.stages > 1}
    if not ratio:
        return Fitted(tuple(causes), {})
    stages, steps, replicas = trace.stages, len(trace.steps), trace.replicas
    worker = np.arange(stages * replicas).reshape(stages, 1, 1, replicas)
    step = np.arange(steps).reshape(1, 1, steps, 1)
    shapes = [array.shape for array in ratio.values()]
    factors = _Factors(
        ratio=np.concatenate([array.ravel() for array in ratio.values()]),
        worker=np.concatenate([np.broadcast_to(worker, shape).ravel() for shape in shapes]),
        step=np.concatenate([np.broadcast_to(step, shape).ravel() for shape in shapes]),
        ranks=tuple(trace.ranks.ravel().tolist()),
    )
    return factors.fitted(causes)


def _usual(seconds: Floats) -> Floats:
    """What a stage usually takes: the median over replicas of their means, [stage, 1, 1, 1]."""
    found: Floats = np.median(seconds.mean(axis=(1, 2), keepdims=True), axis=3, keepdims=True)
    return found


def _last_stage(own: Mapping[str, Floats]) -> list[Straggler]:
    """What the last stage takes more than the mean of the others, in both passes."""
    means = {op: _usual(seconds).ravel() for op, seconds in own.items()}
    more = {op: float(one[-1] / one[:-1].mean()) for op, one in means.items() if one.size > 1}
    if not any(one > OUTLIER for one in more.values()):
        return []
    return [LastStage(_rounded(more[FORWARD]), _rounded(more.get(BACKWARD, 1.0)))]


def _pauses(where: np.ndarray[tuple[int, ...], np.dtype[np.bool_]], excess: Floats) -> list[Straggler]:
    """Pauses as often as they were seen, each of their mean length."""
    count = int(np.count_nonzero(where))
    workers_steps = where.shape[0] * where.shape[2] * where.shape[3]
    if not count:
        return []
    return [Pause(every=max(1.0, _rounded(workers_steps / count)), seconds=_rounded(float(excess[where].mean())))]


def _empirical(samples: Floats) -> Empirical:
    values = np.quantile(samples / samples.mean(), LEVELS)
    return Empirical(tuple(map(_rounded, values.tolist())), tuple(LEVELS.tolist()))


def _of_events(trace: EventTrace) -> Fitted:
    """The work before each meeting over the median of its kind; what takes little beside the rest is left out."""
    work = work_of(trace)
    met = work.meeting < work.meetings
    seconds, kind = work.parts.sum(axis=1)[met], work.kind[work.meeting][met]
    usual = np.array([np.median(seconds[kind == one]) for one in range(kind.max() + 1)])[kind]
    counts = (usual > _SMALL * usual.max()) & (seconds > 0)
    if not counts.any():
        return Fitted((), {})
    step = np.unique(work.step[work.meeting][met][counts], return_inverse=True)[1]
    ranks, worker = np.unique(work.rank[met][counts], return_inverse=True)
    return _Factors(seconds[counts] / usual[counts], worker, step, tuple(trace.ranks[one] for one in ranks)).fitted()
