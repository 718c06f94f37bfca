"""What are the rows of checks and calibrations: verdicts on measurements, screenings of pairs, fitted constants?"""

from __future__ import annotations

from dataclasses import asdict

import numpy as np

from commsim.measurement.calibrate.fit import Fit, Fitted
from commsim.measurement.check.causes import Suspect
from commsim.measurement.check.held import Judged
from commsim.measurement.check.judge import Check
from commsim.measurement.check.screening import Judgement, Screen
from commsim.tables.records import Record, records


@records.register
def _check(check: Check) -> list[Record]:
    return [
        {
            "op": check.table.op.name,
            "ranks": check.table.ranks,
            "system": check.system.name if check.system else None,
            "verdict": check.verdict,
            "reasons": list(check.reasons),
            "rows": records(check.rows),
            "causes": records(check.causes),
            "assumptions": list(check.assumed),
            "notes": list(check.table.notes),
            "problems": list(check.table.problems),
        }
    ]


@records.register
def _judged(row: Judged) -> list[Record]:
    return [
        {
            "size_bytes": int(row.size),
            "busbw_bytes_per_s": row.busbw,
            "expected_bytes_per_s": row.expected,
            "low_bytes_per_s": row.low,
            "high_bytes_per_s": row.high,
            "verdict": row.verdict,
        }
    ]


@records.register
def _suspect(suspect: Suspect) -> list[Record]:
    cause = suspect.cause
    links = {"links": list(cause.kinds), "bandwidth_left": suspect.implied} if cause.kinds else {}
    said = {"cause": cause.name, "title": cause.title, "explained": suspect.explained, **links}
    return [said | {"evidence": suspect.evidence or None, "try": cause.advice}]


@records.register
def _screen(found: Screen) -> list[Record]:
    judged = {name: records(getattr(found, name)) for name in ("bad_nodes", "bad_links", "unsteady")}
    return [{"typical_bytes_per_s": dict(found.typical), **judged, "leaves": [list(group) for group in found.leaves]}]


@records.register
def _judgement(one: Judgement) -> list[Record]:
    return [asdict(one) | {"nodes": list(one.nodes)}]


@records.register
def _fit(fit: Fit) -> list[Record]:
    return [
        {
            "constants": records(fit.constants),
            "rows": len(fit.after),
            "median_error_before": float(np.median(np.abs(np.expm1(fit.before)))),
            "median_error": float(np.median(np.abs(np.expm1(fit.after)))),
        }
    ]


@records.register
def _fitted(one: Fitted) -> list[Record]:
    said = {"constant": one.constant.name, "unit": one.constant.dimension, "shipped": one.constant.value}
    return [said | {"value": one.value, "low": one.low, "high": one.high, "told": one.told}]
