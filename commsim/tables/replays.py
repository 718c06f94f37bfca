"""What are the rows of replays and of fitted laws?"""

from __future__ import annotations

import math
from dataclasses import asdict

import numpy as np

from commsim.stragglers.causes import table_of
from commsim.stragglers.replay.fitted import Fitted
from commsim.stragglers.replay.goodness import Fit
from commsim.stragglers.replay.result import Replay, Waiting, Worker
from commsim.tables.records import Record, records


@records.register
def _replay(replay: Replay) -> list[Record]:
    steps = replay.by_step
    return [
        {
            "source": replay.source,
            "actual_s": replay.actual,
            "ideal_s": replay.ideal,
            "slowdown": replay.slowdown,
            "measured_s": replay.measured,
            "by_stage": {str(key): one for key, one in replay.by_stage.items()},
            "by_rank": {str(key): one for key, one in replay.by_rank.items()},
            "by_op": dict(replay.by_op),
            "worst_workers": records(replay.worst),
            "cause": replay.finding.cause,
            "evidence": list(replay.finding.evidence),
            "M_W": replay.shares.get("M_W"),
            "M_S": replay.shares.get("M_S"),
            "mended": dict(replay.shares),
            "slowdown_of_steps": _quantiles(steps) if steps else None,
            "transfer_s": dict(replay.transfers),
            "waiting": records(replay.waiting),
            "workers": records(replay.workers),
            "repairs": list(replay.repairs),
        }
    ]


def _quantiles(steps: tuple[float, ...]) -> Record:
    return {name: float(np.quantile(steps, level)) for name, level in (("p50", 0.5), ("p90", 0.9), ("max", 1.0))}


@records.register
def _worker(worker: Worker) -> list[Record]:
    return [{"rank": worker.rank, "stage": worker.stage, "data_rank": worker.replica, "slowdown": worker.slowdown}]


@records.register
def _waiting(one: Waiting) -> list[Record]:
    return [{"rank": one.rank, "work_s": one.work, "wait_s": one.waits, "comes_last": one.last}]


@records.register
def _fitted(found: Fitted) -> list[Record]:
    laws = {name: records(fits) for name, fits in found.laws.items()}
    return [{"causes": [table_of(one) for one in found.causes], "laws": laws}]


@records.register
def _fit(fit: Fit) -> list[Record]:
    fields = {} if fit.name == "empirical" else asdict(fit.law)  # type: ignore[call-overload] # all are dataclasses
    goodness = {"aic": fit.aic, "ks_distance": fit.distance, "ks_chance": fit.chance, "describes": fit.describes}
    return [{"law": fit.name, "parameters": fields, **_moments(fit), **goodness}]


def _moments(fit: Fit) -> Record:
    """Mean and standard deviation; None where a tail is too long for one."""
    return {name: one if math.isfinite(one) else None for name, one in (("mean", fit.law.mean), ("sd", fit.law.sd))}
