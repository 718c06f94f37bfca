"""Which rows do runs with stragglers have?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from commsim.stragglers.attribution import Amplified, Attributed
from commsim.stragglers.causes import kind_of, written
from commsim.stragglers.curve import Point
from commsim.stragglers.mitigations import MITIGATIONS, Outcome
from commsim.stragglers.presets import source_of
from commsim.stragglers.run import Run
from commsim.stragglers.waits import Late, Waits
from commsim.stragglers.whole import Whole
from commsim.tables.records import Record, records

if TYPE_CHECKING:
    from commsim.stragglers.mitigations import Mitigation

LEVELS = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
FEW = 5
"""Groups of ranks in a record."""


@records.register
def _run(run: Run) -> list[Record]:
    errors = {f"{name}_error_s": run.quantile_error(level) for name, level in LEVELS.items()}
    seconds = {name: run.quantile(level) for name, level in LEVELS.items()}
    error = run.error if run.seconds.size > 1 else None
    return [
        {
            "step_time_s": {"mean": run.mean, **seconds, "mean_error_s": error, **errors},
            "slowdown": {"mean": run.slowdown(), **{name: run.slowdown(level) for name, level in LEVELS.items()}},
            "ideal_s": run.ideal,
            "tokens_per_s": run.tokens_per_second,
            "tokens_per_s_per_gpu": run.tokens_per_second / run.estimate.setting.system.gpus,
            "lost_to_failures": run.lost,
            "by_cause": records(run.by_cause),
            "steps": int(run.seconds.size),
            "jobs": run.jobs,
            "seed": run.seed,
        }
    ]


@records.register
def _attributed(one: Attributed) -> list[Record]:
    formula = one.closed and {"slowdown": one.closed.slowdown, "how": one.closed.how, "exact": one.closed.exact}
    return [
        {
            "cause": written(one.cause),
            "kind": kind_of(one.cause),
            "slowdown_alone": one.alone,
            "slowdown_without": one.without,
            "slowdown_together": one.together,
            "saved": one.saved,
            "closed_form": formula,
            "source": source_of(one.cause) or None,
        }
    ]


@records.register
def _amplified(one: Amplified) -> list[Record]:
    return [{f"{name}_s": seconds for name, seconds in vars(one).items()}]


@records.register
def _waits(waits: Waits) -> list[Record]:
    return [
        {
            "groups": records(waits.groups[:FEW]),
            "last_share_by_replica": waits.last.tolist(),
            "path_share_by_stage": waits.path.tolist(),
            "slower": waits.slower.tolist(),
            "idle_s": waits.idle.tolist(),
        }
    ]


@records.register
def _late(late: Late) -> list[Record]:
    place: dict[str, Any] = {"stage": late.stage, "replica": late.replica, "ranks": list(late.ranks)}
    return [{**place, "slower": late.slower, "last_share": late.last, "others_wait_s": late.holds_up}]


@records.register
def _point(point: Point) -> list[Record]:
    named = dict(vars(point)) | {"lost": point.lost if math.isfinite(point.lost) else None}
    return [
        {"gpus": named.pop("gpus"), "slowdown": named.pop("slowdown"), "slowdown_error": named.pop("error"), **named}
    ]


@records.register
def _outcome(outcome: Outcome) -> list[Record]:
    mitigation = outcome.mitigation
    return [
        {
            "mitigation": name_of(mitigation),
            "step_time_before_s": float(outcome.before.mean()),
            "step_time_s": float(outcome.after.mean()),
            "speedup": outcome.speedup,
            "lost": outcome.lost,
            "gain": outcome.gain,
            "loses": mitigation.loses,
            "source": mitigation.source,
        }
    ]


def name_of(mitigation: Mitigation) -> str:
    """Return the name of a mitigation."""
    return next(name for name, kind in MITIGATIONS.items() if type(mitigation) is kind)


@records.register
def _whole(whole: Whole) -> list[Record]:
    drawn = {name: whole.quantile(level) for name, level in (("p5", 0.05), ("p50", 0.5), ("p95", 0.95))}
    finite = whole.failures > 0
    return [
        {
            "tokens": whole.tokens,
            "steps": whole.steps,
            "work_s": whole.work,
            "time_s": {"mean": whole.mean, **drawn},
            "failures": whole.failures,
            "mean_time_between_failures_s": whole.between if finite else None,
            "checkpoint_interval_s": whole.interval if finite else None,
            "useful_share": whole.useful,
        }
    ]
