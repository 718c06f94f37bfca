"""How is a screening of pairwise runs shown?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer
from rich.markup import escape

from commsim.cli.output import display, document, points, table
from commsim.measurement.check.screening import Judgement, Screen, screen
from commsim.measurement.readers.trials import read
from commsim.tables.records import records
from commsim.units import counted, show

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import RenderableType

MOST_UNSTEADY = 5
"""Pairs that are low now and then that people are shown: the worst; JSON has them all."""


def screened(file: str, *, as_json: bool) -> None:
    """Read a CSV of pairwise runs and print who is bad; exit code 1 if anyone is."""
    found = screen(read(file))
    if as_json:
        document(records(found)[0])
    else:
        display(*_shown(found))
    if found.bad_nodes or found.bad_links:
        raise typer.Exit(1)


def _shown(found: Screen) -> list[RenderableType]:
    nodes = len({name for trial in found.trials for name in trial.nodes})
    failed = sum(trial.busbw is None for trial in found.trials)
    heading = f"{counted(len(found.trials), 'run')} of {counted(nodes, 'node')}, alone or in pairs, {failed} failed"
    typical = [f"{name or 'all'}: {show(rate, 'B/s', 3)} of bus bandwidth" for name, rate in found.typical.items()]
    leaves = [", ".join(group) for group in found.leaves]
    return [
        f"[bold]{escape(heading)}[/]",
        *points("typical", typical),
        *_listed("bad nodes, whoever their partner is", "node", found.bad_nodes),
        *_listed("bad links between good nodes", "nodes", found.bad_links),
        *_listed("pairs of good nodes that are low now and then", "nodes", found.unsteady[:MOST_UNSTEADY]),
        *points("under one leaf, by bandwidth", leaves),
        "" if found.bad_nodes or found.bad_links else "no node and no link stands out",
    ]


def _listed(title: str, who: str, judged: Iterable[Judgement]) -> list[RenderableType]:
    found = table(who, ">of typical", "in its worst test", ">low", ">failed", ">runs")
    for one in judged:
        share = f"{one.share:.0%}" if one.failed < one.runs else "-"
        counts = [str(count) for count in (one.low, one.failed, one.runs)]
        found.add_row(escape(" - ".join(one.nodes)), share, escape(one.test), *counts)
    return ["", f"[bold]{title}[/]", found] if found.row_count else []
