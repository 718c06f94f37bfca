"""How near does what commsim predicts come to what others measured?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table

from commsim.cli import collective_agreement as collectives
from commsim.cli import memory_agreement as memory
from commsim.cli import moe_agreement as moe
from commsim.cli.options import Json, Plot
from commsim.cli.output import display, document, points, table
from commsim.errors import InputError
from commsim.shipped import folder
from commsim.tables.records import Record
from commsim.training.configs.rows import read_rows
from commsim.units import counted
from commsim.validation.agreement import Agreement
from commsim.validation.carried import carried
from commsim.validation.collectives import validate as validated_collectives
from commsim.validation.measured import read_measured
from commsim.validation.published import read_published
from commsim.validation.training import VIEWS, Case, Validation
from commsim.validation.training import validate as validated

MOST_LISTED = 12
"""Assumptions that people are shown: the most frequent; JSON has them all."""


def validate(
    what: Annotated[
        Literal["training", "memory", "collectives", "moe"],
        typer.Argument(
            metavar="WHAT", help="What is predicted: training, memory, collectives or moe (dispatch, combine)."
        ),
    ],
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILE",
            help="training, memory, moe: a CSV of published results (those that commsim ships); collectives: measured "
            "tables, or folders of them.",
        ),
    ] = None,
    models: Annotated[
        Path | None, typer.Option(metavar="FILE", help="training, memory: CSV of the models' architectures.")
    ] = None,
    fits: Annotated[
        Path | None, typer.Option(metavar="FILE", help="memory: CSV of published results, which fitted.")
    ] = None,
    as_json: Json = False,
    plot: Plot = None,
) -> None:
    """Hold predictions against what others published."""
    if what == "memory":
        return _validate_memory(files or [], models, fits, as_json=as_json, plot=plot)
    if fits:
        raise InputError(f"validate {what}: fits", str(fits), "only memory asks what fits: leave this out")
    if what == "collectives":
        return _validate_collectives(files or [], models, as_json=as_json, plot=plot)
    if what == "moe":
        return _validate_moe(files or [], models, as_json=as_json, plot=plot)
    return _validate_training(files or [], models, as_json=as_json, plot=plot)


def _validate_collectives(files: list[Path], models: Path | None, *, as_json: bool, plot: Path | None) -> None:
    if models:
        raise InputError("validate collectives: models", str(models), "collectives have no models: leave this out")
    found = validated_collectives(*read_measured(files)) if files else validated_collectives(carried())
    if plot:
        from commsim.plots.agreement import collective_agreement
        from commsim.plots.canvas import save

        save(collective_agreement(found), plot)
    if as_json:
        return document(collectives.document(found))
    return display(*collectives.shown(found))


def _validate_moe(files: list[Path], models: Path | None, *, as_json: bool, plot: Path | None) -> None:
    found = moe.validated(files, models)
    if plot:
        from commsim.plots.agreement import moe_agreement
        from commsim.plots.canvas import save

        save(moe_agreement(found), plot)
    return document(moe.document(found)) if as_json else display(*moe.shown(found))


def _validate_memory(
    files: list[Path], models: Path | None, fits: Path | None, *, as_json: bool, plot: Path | None
) -> None:
    found = memory.validated(files, models, fits)
    if plot:
        from commsim.plots.canvas import save
        from commsim.plots.memory import shares

        save(shares(found), plot)
    return document(memory.document(found)) if as_json else display(*memory.shown(found))


def _validate_training(files: list[Path], models: Path | None, *, as_json: bool, plot: Path | None) -> None:
    if len(files) > 1:
        raise InputError("validate training", str(files[1]), "one FILE belongs here")
    if (not files) != (models is None):
        raise InputError("validate", str(files[0] if files else models), "FILE and --models belong together")
    shipped = folder("bench") / "published"
    results = read_published(files[0] if files else shipped / "training.csv")
    found = validated(results, read_rows(models or shipped / "models.csv"))
    if plot:
        from commsim.plots.agreement import agreement
        from commsim.plots.canvas import save

        save(agreement(found), plot)
    if as_json:
        return document(_document(found))
    return display(*_heading(found), *_views(found), *_remarks(found))


def _document(found: Validation) -> Record:
    return {
        "cases": [_record(case) for case in found.cases],
        "skipped": [asdict(one) for one in found.skipped],
        "summary": {
            "headline": _summed(found.headline),
            "core": _summed(found.cases),
            "sweeps": {"count": len(found.sweeps), "median_rank_correlation": found.order},
            "by": {view: {name: asdict(one) for name, one in found.by(view).items()} for view in VIEWS},
            "skipped": len(found.skipped),
        },
    }


def _record(case: Case) -> Record:
    return {
        "row_id": case.result.row_id,
        "measured_s": case.measured,
        "predicted_s": case.predicted,
        "error": case.error,
        "assumptions": list(case.assumptions),
    }


def _summed(cases: tuple[Case, ...]) -> Record | None:
    return asdict(Agreement.of(case.error for case in cases)) if cases else None


def _heading(found: Validation) -> list[RenderableType]:
    """The figures that count, the headline first; where nothing else was compared, it alone."""
    listed = table("step times, estimated against published", ">results", ">median |error|", ">90th", ">bias")
    named = {"headline": found.headline, "all": found.cases}
    for name, cases in named.items():
        if cases and (name == "headline" or len(cases) > len(found.headline)):
            listed.add_row(f"[bold]{name}[/]", *_cells(Agreement.of(case.error for case in cases)))
    if found.order is None:
        return [listed]
    sweeps = f"order within {counted(len(found.sweeps), 'sweep')}: rank correlation {found.order:.3f} (median)"
    return [listed, "", sweeps]


def _views(found: Validation) -> Iterable[RenderableType]:
    """A table for each view, the most numerous first."""
    for view in VIEWS:
        yield ""
        yield _view(view, found.by(view))


def _view(view: str, rows: dict[str, Agreement]) -> Table:
    listed = table(f"by {view}", ">results", ">median", ">90th", ">bias")
    for name, one in sorted(rows.items(), key=lambda row: -row[1].count):
        listed.add_row(escape(name), *_cells(one))
    return listed


def _cells(one: Agreement) -> list[str]:
    return [f"{one.count:,}", f"{one.median_error:.1%}", f"{one.p90_error:.1%}", f"{one.bias:+.1%}"]


def _remarks(found: Validation) -> list[RenderableType]:
    """Why results were left out, and what was assumed where sources do not say."""
    reasons = Counter(one.reason for one in found.skipped)
    assumed = Counter(sentence for case in found.cases for sentence in case.assumptions)
    return [
        *points("not compared", _numbered(reasons)),
        *points("assumed where a source does not say (the most frequent)", _numbered(assumed)),
    ]


def _numbered(sentences: Counter[str]) -> list[str]:
    return [f"{count:,}: {sentence}" for sentence, count in sentences.most_common(MOST_LISTED)]
