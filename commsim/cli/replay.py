"""Why were the steps of a real job slow, and what if nobody had been late?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from commsim.cli.options import Json, Plot
from commsim.cli.output import bar, display, document, points, table
from commsim.measurement.traces.read import trace as read
from commsim.stragglers.causes import kind_of, written
from commsim.stragglers.replay.fitted import Fitted, fitted, write
from commsim.stragglers.replay.replay import replayed
from commsim.stragglers.replay.result import Replay
from commsim.tables.records import records
from commsim.units import show

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import RenderableType
    from rich.table import Table

_MOST = 8
"""So many rows of each table are shown; --json has all."""
_SPECIAL = "effects"
_FULL = 1.0


def replay(
    trace: Annotated[
        list[str],
        typer.Argument(
            metavar="TRACE",
            help="A file, one for each rank, a folder, or the beginning of their names: npz or table of operations, "
            "Kineto, flight recorder, NCCL Inspector, CSV of rank, step, op, start, duration.",
        ),
    ],
    schedule: Annotated[
        str, typer.Option(metavar="NAME", help="Of the pipeline, where the trace holds no order: 1f1b, gpipe ...")
    ] = "1f1b",
    virtual_stages: Annotated[
        int, typer.Option(metavar="N", help="Chunks of the model a stage, where the trace holds no order.")
    ] = 1,
    fit: Annotated[bool, typer.Option("--fit", help="Fit laws to workers, steps and operations, too.")] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the causes for `commsim stragglers`, in YAML.")
    ] = None,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Replay a trace: actual beside ideal, transfer apart from waiting, who is slow, and why."""
    given = read(trace)
    found = replayed(given, schedule=schedule, virtual=virtual_stages)
    causes = fitted(given, schedule=schedule, virtual=virtual_stages) if fit or out else None
    if causes and out:
        write(causes.causes, out)
    if plot:
        from commsim.plots.canvas import save
        from commsim.plots.replay import replayed as drawn

        save(drawn(found), plot)
    if as_json:
        more = {"fit": records(causes)[0]} if causes else {}
        return document(records(found)[0] | more)
    return display(*_summary(found), *(_fit(causes) if causes else []))


def _summary(found: Replay) -> list[RenderableType]:
    """The answer, why, and where it shows."""
    cause = f"[bold]cause: {escape(found.finding.cause)}[/]"
    parts: list[RenderableType] = [f"[bold]{escape(found.source)}[/]", *_times(found), "", cause]
    parts += [f"  {escape(said)}" for said in found.finding.evidence]
    for title, slowdowns in (("stage", found.by_stage), ("data rank" if found.by_stage else "rank", found.by_rank)):
        parts += _slowdowns(f"slow by {title} alone", {f"{title} {key}": one for key, one in slowdowns.items()})
    parts += _slowdowns("slow by operation alone", found.by_op)
    parts += [*_worst(found), *_waiting(found), *_transfers(found)]
    return [*parts, *points("repaired or taken for granted", found.repairs)]


def _times(found: Replay) -> list[str]:
    by_clock = "" if found.measured is None else f"{show(found.measured, 's', 4)} by the clock"
    if found.actual is None or found.ideal is None:
        return [f"a step takes {by_clock}"] if by_clock else []
    ideal = f"{show(found.ideal, 's', 4)} if nobody were late"
    said = f"a step takes {show(found.actual, 's', 4)}, {ideal}: slowdown {found.slowdown:.4f}"
    shares = [f"{name} {found.shares[name]:.4f}" for name in ("M_W", "M_S") if name in found.shares]
    return [said, "; ".join([*([by_clock] if by_clock else []), *shares])]


def _slowdowns(title: str, slowdowns: Mapping[str, float]) -> list[RenderableType]:
    if not slowdowns:
        return []
    most = max(max(slowdowns.values()) - _FULL, 1e-9)
    listed = table(title, ">slowdown", "")
    for name, one in list(slowdowns.items())[:_MOST]:
        listed.add_row(f"  {escape(name)}", f"{one:.4f}", bar((one - _FULL) / most))
    return ["", listed]


def _worst(found: Replay) -> list[RenderableType]:
    if not found.workers:
        return []
    listed = table("slowest workers", ">stage", ">data rank", ">slowdown")
    for one in found.workers[: max(len(found.worst), 3)]:
        slowdown = "" if one.slowdown is None else f"{one.slowdown:.4f}"
        listed.add_row(f"  rank {one.rank}", str(one.stage), str(one.replica), slowdown)
    return ["", listed] if found.by_stage else []


def _waiting(found: Replay) -> list[RenderableType]:
    if not found.waiting:
        return []
    listed = table("who waits in collectives", ">work before", ">waiting", ">comes last")
    for one in found.waiting[:_MOST]:
        work = "" if one.work is None else show(one.work, "s", 3)
        listed.add_row(f"  rank {one.rank}", work, show(one.waits, "s", 3), f"{one.last:.1%}")
    return ["", listed]


def _transfers(found: Replay) -> list[RenderableType]:
    if not found.transfers:
        return []
    listed = table("communication", ">once all are there")
    for name, seconds in list(found.transfers.items())[:_MOST]:
        listed.add_row(f"  {escape(name)}", show(seconds, "s", 4))
    return ["", listed]


def _fit(found: Fitted) -> list[RenderableType]:
    """The causes as one writes them, and the laws with their goodness."""
    named = [kind_of(one) if kind_of(one) == _SPECIAL else _short(written(one)) for one in found.causes]
    return [*points("causes that would make such steps", named), *(_laws(name, found) for name in found.laws)]


def _short(text: str, most: int = 100) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."


def _laws(name: str, found: Fitted) -> Table:
    listed = table(name, ">mean", ">sd", ">AIC", ">KS distance", ">by chance", title=" ")
    for one in found.laws[name]:
        aic = "" if one.aic is None else f"{one.aic:,.0f}"
        figures = (f"{one.law.mean:.4f}", f"{one.law.sd:.4f}", aic, f"{one.distance:.4f}", f"{one.chance:.1%}")
        listed.add_row(f"  {one.name}", *figures)
    return listed
