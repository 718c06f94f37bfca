"""How is the agreement of predicted with measured collectives shown?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict

from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table

from commsim.cli.output import points, table
from commsim.libraries.calibration import calibration
from commsim.tables.records import Record
from commsim.units import counted
from commsim.validation.agreement import GroupAgreement
from commsim.validation.collectives import VIEWS, Case, Validation, agreement
from commsim.validation.constants import constants

_COLUMNS = (">clusters", ">rows", ">median |error|", ">75th", ">bias")


def document(found: Validation) -> Record:
    """Return what a program is told: every row, what was skipped with its reason, and how well they agree."""
    return {
        "cases": [_record(case) for case in found.cases],
        "skipped": [asdict(one) for one in found.skipped],
        "summary": {
            "all": asdict(agreement(found.cases)) if found.cases else None,
            "by": {view: _records(found.by(view)) for view in VIEWS},
            "apart": _records(found.apart_by_health()),
            "constants": constants(calibration("nccl"))._asdict(),
            "skipped": len(found.skipped),
        },
    }


def _record(case: Case) -> Record:
    return {
        "id": case.table.id,
        "op": case.table.measurement.op.name,
        "size_bytes": case.size,
        "measured_s": case.measured,
        "predicted_s": case.predicted,
    }


def _records(rows: Mapping[str, GroupAgreement]) -> Record:
    return {name: asdict(one) for name, one in rows.items()}


def _tables(cases: Iterable[Case]) -> int:
    return len({case.table.id for case in cases})


def shown(found: Validation) -> Iterator[RenderableType]:
    """Yield what a person is shown: agreement by band, operation and machine, what stands apart, what was skipped."""
    tables = counted(_tables(found.cases), "table")
    yield f"[bold]collectives, predicted against measured[/]: {counted(len(found.cases), 'row')} of {tables}"
    for view in VIEWS if found.cases else ():
        yield from ("", _view(f"by {view}", found.by(view)))
    if found.apart:
        yield from ("", _view("not counted: their publishers hold them for", found.apart_by_health()))
    yield from points("not compared", _reasons(found))
    yield from ("", _constants())


def _constants() -> str:
    every, fitted = constants(calibration("nccl"))
    return f"constants of the calibration: {every}, of which {fitted} are fitted on such rows"


def _view(title: str, rows: Mapping[str, GroupAgreement]) -> Table:
    listed = table(title, *_COLUMNS)
    for name, one in rows.items():
        errors = (f"{one.median_error:.1%}", f"{one.p75_error:.1%}", f"{one.bias:+.1%}")
        listed.add_row(escape(name), f"{one.groups:,}", f"{one.count:,}", *errors)
    return listed


def _reasons(found: Validation) -> list[str]:
    reasons = Counter(one.reason for one in found.skipped)
    return [f"{counted(count, 'table')}: {reason}" for reason, count in reasons.most_common()]
