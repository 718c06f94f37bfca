"""What are the rows of comparisons: of two estimates, of an estimate and a measurement, of figures of the machine?"""

from __future__ import annotations

from commsim.tables.records import Record, records
from commsim.training.comparing.difference import Change, Difference
from commsim.training.comparing.gap import Explained, Gap
from commsim.training.comparing.sensitivity import Sensitivity


@records.register
def _difference(found: Difference) -> list[Record]:
    parts = [{"part": name, "a_s": ours, "b_s": theirs} for name, (ours, theirs) in found.parts.items()]
    both = {"a": records(found.first)[0], "b": records(found.second)[0]}
    return [{**both, "time_per_token_ratio": found.ratio, "parts": parts, "changes": records(found.changes)}]


@records.register
def _change(one: Change) -> list[Record]:
    return [{"what": one.what, "a": one.first, "b": one.second, "step_time_s": one.seconds}]


@records.register
def _gap(found: Gap) -> list[Record]:
    times = {"measured_s": found.measured, "estimated_s": found.estimated, "ratio": found.ratio}
    return [times | {"agrees": found.quiet, "reasons": records(found.reasons)}]


@records.register
def _explained(one: Explained) -> list[Record]:
    said = {"reason": one.reason.name, "title": one.reason.title, "explained": one.share, "step_time_s": one.seconds}
    return [said | {"left": one.left if one.left < 1 else None, "try": one.reason.advice}]


@records.register
def _sensitivity(one: Sensitivity) -> list[Record]:
    return [{"figure": one.figure, "elasticity": one.elasticity, "step_time_doubled_s": one.doubled}]
