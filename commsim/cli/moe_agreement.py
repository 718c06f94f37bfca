"""How is the agreement of predicted with measured dispatches and combines shown?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table

from commsim.cli.output import points, table
from commsim.errors import InputError
from commsim.libraries.moe.kernels import kernels
from commsim.shipped import folder
from commsim.tables.records import Record
from commsim.units import counted
from commsim.validation.agreement import Agreement
from commsim.validation.constants import constants
from commsim.validation.moe import VIEWS, Case, Validation, validate
from commsim.validation.moe_rows import read_moe


def validated(files: list[Path], models: Path | None) -> Validation:
    """Return the rows of one file, or the shipped ones, beside their predictions. InputError for more than that."""
    if len(files) > 1:
        raise InputError(
            "validate moe", str(files[1]), "one FILE belongs here, or none: the figures that commsim ships"
        )
    if models:
        raise InputError("validate moe: models", str(models), "each row says its own experts: leave this out")
    return validate(read_moe(files[0] if files else folder("bench") / "published" / "moe.csv"))


def document(found: Validation) -> Record:
    """Return what a program is told: every row, what was skipped with its reason, and how well they agree."""
    return {
        "cases": [_record(case) for case in found.cases],
        "skipped": [asdict(one) for one in found.skipped],
        "summary": {
            "counted": _summed(found.counted),
            "all": _summed(found.cases),
            "by": {view: {name: asdict(one) for name, one in found.by(view).items()} for view in VIEWS},
            "constants": _constants(),
            "skipped": len(found.skipped),
        },
    }


def shown(found: Validation) -> Iterator[RenderableType]:
    """Yield what a person is shown: agreement of the rows that say what they count, by view, and what was skipped."""
    listed = table("dispatch and combine", ">rows", ">median |error|", ">90th", ">bias")
    for name, cases in (("healthy, bytes counted", found.counted), ("all", found.cases)):
        if cases:
            listed.add_row(name, *_cells(Agreement.of(case.error for case in cases)))
    yield listed
    for view in [name for name in VIEWS if name != "health"] if found.counted else ():
        yield from ("", _view(f"by {view}, of those counted", found.by(view, found.counted)))
    reasons = Counter(one.reason for one in found.skipped)
    assumed = Counter(sentence for case in found.cases for sentence in case.assumed)
    yield from points("not compared", (f"{counted(count, 'row')}: {reason}" for reason, count in reasons.most_common()))
    yield from points("assumed", (f"{counted(count, 'row')}: {sentence}" for sentence, count in assumed.most_common()))
    yield from ("", f"constants of the kernels: {_constants()}, all fitted on such rows or taken from them")


def _constants() -> int:
    """How many figures stand behind the predictions, beside those of the machines."""
    return constants(kernels()).all


def _record(case: Case) -> Record:
    return {
        "row_id": case.row.row_id,
        "measured_s": case.measured,
        "predicted_s": case.predicted,
        "error": case.error,
        "assumptions": list(case.assumed),
    }


def _summed(cases: Iterable[Case]) -> Record | None:
    errors = [case.error for case in cases]
    return asdict(Agreement.of(errors)) if errors else None


def _view(title: str, rows: Mapping[str, Agreement]) -> Table:
    listed = table(title, ">rows", ">median", ">90th", ">bias")
    for name, one in rows.items():
        listed.add_row(escape(name), *_cells(one))
    return listed


def _cells(one: Agreement) -> list[str]:
    return [f"{one.count:,}", f"{one.median_error:.1%}", f"{one.p90_error:.1%}", f"{one.bias:+.1%}"]
