"""How long is a training step, and why?"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from commsim.cli.beside import beside
from commsim.cli.job import plan, recipe, settled
from commsim.cli.options import Json, Plot, Sources, library, machine, takes
from commsim.cli.output import display, document
from commsim.cli.summary import MORE, explained, sourced, summary
from commsim.hardware.system import System
from commsim.libraries.library import Library
from commsim.tables.records import Record, records
from commsim.training.comparing.gap import Gap, gap
from commsim.training.comparing.sensitivity import Sensitivity
from commsim.training.comparing.sensitivity import sensitivity as sensitivities
from commsim.training.configs.well_known import model as model_of
from commsim.training.estimate import Estimate
from commsim.training.estimate import estimate as estimated
from commsim.training.plan import Plan
from commsim.training.trainers.job import Job
from commsim.training.trainers.logs import measured_step


@takes(machine=machine, plan=plan, recipe=recipe, library=library)
def estimate(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A name such as llama3.1-70b, or a config.json.")],
    machine: System,
    plan: Plan | Job,
    recipe: dict[str, Any],
    library: Library | None,
    explain: Annotated[str | None, typer.Option(metavar="AXIS", help="Show each collective of an axis.")] = None,
    sources: Sources = False,
    measured: Annotated[
        str | None, typer.Option(metavar="TIME", help="What your step took: 12.3s, or a line of your trainer's log.")
    ] = None,
    sensitivity: Annotated[
        bool, typer.Option("--sensitivity", help="Show which figure of the machine matters most.")
    ] = False,
    as_json: Json = False,
    plot: Plot = None,
) -> None:
    """Estimate a training step of MODEL on SYSTEM: its time, and where the time goes."""
    known = model_of(model)
    laid, options = settled(plan, recipe, machine, known)
    step = estimated(known, laid, machine, library=library, **options)
    if plot:
        from commsim.plots.canvas import save
        from commsim.plots.step import breakdown

        save(breakdown(step), plot)
    compared = _compared(step, measured, sensitivity=sensitivity)
    if as_json:
        return document(_document(step, explain, sources=sources) | {key: _rows(one) for key, one in compared.items()})
    more = [*(explained(step, explain) if explain else []), *(sourced(step) if sources else [])]
    more += [part for one in compared.values() for part in beside(one)]
    return display(*summary(step), *(more or ["", f"[dim]{MORE}[/]"]))


def _compared(step: Estimate, measured: str | None, *, sensitivity: bool) -> dict[str, Gap | tuple[Sensitivity, ...]]:
    """What was asked for beside the estimate: why a run takes another time, what matters most."""
    found: dict[str, Gap | tuple[Sensitivity, ...]] = {}
    if measured is not None:
        tokens = step.setting.tokens_per_step / step.setting.system.gpus
        found["gap"] = gap(step, measured_step(measured, tokens))
    if sensitivity:
        found["sensitivity"] = sensitivities(step)
    return found


def _rows(one: Gap | tuple[Sensitivity, ...]) -> Record | list[Record]:
    return records(one)[0] if isinstance(one, Gap) else records(one)


def _document(step: Estimate, axis: str | None, *, sources: bool) -> Record:
    """The estimate as one record, with what was asked for beside it."""
    more: Record = {"explain": records(step.explain(axis))} if axis else {}
    if sources:
        found = step.sources()
        more |= {"sources": [dict(vars(one)) for one in found], "documents": found.documents}
    return records(step)[0] | more
