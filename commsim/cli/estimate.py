"""How long is a training step, and why?"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from commsim.cli.job import plan, recipe, settled
from commsim.cli.options import Json, Plot, Sources, library, machine, takes
from commsim.cli.output import display, document
from commsim.cli.summary import MORE, explained, sourced, summary
from commsim.hardware.system import System
from commsim.libraries.library import Library
from commsim.tables.records import Record, records
from commsim.training.configs.well_known import model as model_of
from commsim.training.estimate import Estimate
from commsim.training.estimate import estimate as estimated
from commsim.training.plan import Plan
from commsim.training.trainers.job import Job


@takes(machine=machine, plan=plan, recipe=recipe, library=library)
def estimate(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A name such as llama3.1-70b, or a config.json.")],
    machine: System,
    plan: Plan | Job,
    recipe: dict[str, Any],
    library: Library,
    explain: Annotated[str | None, typer.Option(metavar="AXIS", help="Show each collective of an axis.")] = None,
    sources: Sources = False,
    as_json: Json = False,
    plot: Plot = None,
) -> None:
    """Estimate a training step of MODEL on SYSTEM: its time, and where the time goes."""
    laid, options = settled(plan, recipe, machine)
    step = estimated(model_of(model), laid, machine, library=library, **options)
    if plot:
        from commsim.plots.canvas import save
        from commsim.plots.step import breakdown

        save(breakdown(step), plot)
    if as_json:
        return document(_document(step, explain, sources=sources))
    more = [*(explained(step, explain) if explain else []), *(sourced(step) if sources else [])]
    return display(*summary(step), *(more or ["", f"[dim]{MORE}[/]"]))


def _document(step: Estimate, axis: str | None, *, sources: bool) -> Record:
    """The estimate as one record, with what was asked for beside it."""
    more: Record = {"explain": records(step.explain(axis))} if axis else {}
    if sources:
        found = step.sources()
        more |= {"sources": [dict(vars(one)) for one in found], "documents": found.documents}
    return records(step)[0] | more
