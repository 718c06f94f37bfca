"""How is it shown how often it is said rightly whether a run fits into memory?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from rich.console import RenderableType
from rich.markup import escape

from commsim.cli.output import points, table
from commsim.errors import InputError
from commsim.shipped import folder
from commsim.tables.records import Record
from commsim.training.configs.rows import read_rows
from commsim.units import counted
from commsim.validation.memory import VIEWS, Case, Told, Validation, validate
from commsim.validation.outcomes import read_outcomes
from commsim.validation.published import read_published


def validated(files: list[Path], models: Path | None, fits: Path | None) -> Validation:
    """Return the runs of one file, or the shipped ones, beside their estimates. InputError for files that lack others.

    `fits` are published results: those of the file's sources fitted.
    """
    if len(files) > 1:
        raise InputError("validate memory", str(files[1]), "one FILE belongs here, or none: the runs that are shipped")
    given = [str(one) for one in (*files, models, fits) if one is not None]
    if given and (not files or models is None or fits is None):
        raise InputError("validate memory", ", ".join(given), "FILE, --models and --fits belong together")
    shipped = folder("bench") / "published"
    results = read_published(fits or shipped / "training.csv")
    outcomes = read_outcomes(files[0] if files else shipped / "memory.csv", results)
    return validate(outcomes, read_rows(models or shipped / "models.csv"))


def document(found: Validation) -> Record:
    """Return what a program is told: every run, what was skipped with its reason, and how often it is right."""
    return {
        "cases": [_record(case) for case in found.cases],
        "skipped": [asdict(one) for one in found.skipped],
        "summary": {
            **_summed(found),
            "by": {view: {name: _summed(one) for name, one in found.by(view).items()} for view in VIEWS},
            "skipped": len(found.skipped),
        },
    }


def shown(found: Validation) -> Iterator[RenderableType]:
    """Yield what a person is shown: how often it is right, by view, and what was skipped."""
    yield from _table("does it fit?", {"all": found})
    for view in VIEWS:
        yield ""
        yield from _table(f"by {view}", found.by(view))
    reasons = Counter(one.reason for one in found.skipped)
    yield from points("not compared", (f"{counted(count, 'run')}: {reason}" for reason, count in reasons.most_common()))


def _table(title: str, rows: dict[str, Validation]) -> Iterator[RenderableType]:
    listed = table(title, ">right", ">of those that fitted", ">of those that ran out")
    for name, one in rows.items():
        listed.add_row(escape(name), *(_cell(one.told(fits=fits)) for fits in (None, True, False)))
    yield listed


def _cell(told: Told) -> str:
    return "-" if told.share is None else f"{told.share:.1%} of {told.count:,}"


def _summed(found: Validation) -> Record:
    named = {"all": None, "fitted": True, "ran_out": False}
    told = {name: found.told(fits=fits) for name, fits in named.items()}
    return {name: {**asdict(one), "share": one.share} for name, one in told.items()}


def _record(case: Case) -> Record:
    return {
        "row_id": case.result.row_id,
        "fitted": case.fits,
        "said_to_fit": case.memory.fits,
        "share_of_memory": case.share,
        "total_bytes": case.memory.total,
        "capacity_bytes": case.memory.capacity,
    }
