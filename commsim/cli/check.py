"""Is a measured collective right for this machine, and if not, why?"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from commsim.cli.options import Json, Network, Nic, NicsPerNode, Oversubscription, option, takes
from commsim.cli.output import display, document, number, points, table
from commsim.cli.screen import screened
from commsim.errors import InputError, reason
from commsim.measurement.check.judge import Check, beside
from commsim.measurement.check.judge import check as judged
from commsim.measurement.cluster import cluster, library
from commsim.measurement.joining import joined
from commsim.measurement.read import measurements
from commsim.measurement.writers.nccl_tests import write_text
from commsim.tables.records import records
from commsim.units import counted, show_size

if TYPE_CHECKING:
    from rich.console import RenderableType

    from commsim.measurement.records import Measurement

_machine = partial(option, "Machine")
FAILED = 1
WORST = ("impossible", "low", "unknown", "good")
COLOURS = {"good": "green", "low": "yellow", "impossible": "red", "unknown": "blue"}
MOST_SUSPECTS = 4


def machine(
    system: Annotated[str | None, _machine("Where it ran (told by the names of GPUs).", "SYSTEM")] = None,
    nodes: Annotated[int | None, _machine("Hosts that ran it.", "N")] = None,
    nics_per_node: NicsPerNode = None,
    nic: Nic = None,
    fabric: Network = None,
    oversubscription: Oversubscription = None,
) -> dict[str, Any]:
    """Return what is said of the machine that ran a benchmark."""
    return {name: value for name, value in locals().items() if value is not None}


@takes(said=machine)
def check(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="What a benchmark printed (nccl-tests, OSU, PARAM, our JSON lines ...); - is stdin."
        ),
    ],
    said: dict[str, Any],
    op: Annotated[
        str | None, typer.Option(metavar="OP", help="The operation, where the file does not say which.")
    ] = None,
    ranks: Annotated[int | None, typer.Option(metavar="N", help="Ranks, where the file does not say how many.")] = None,
    as_configured: Annotated[
        bool, typer.Option("--as-configured", help="Expect no more than the run's settings allow.")
    ] = False,
    baseline: Annotated[
        str | None, typer.Option(metavar="FILE", help="Compare with this earlier run instead of a model.")
    ] = None,
    pairs: Annotated[
        bool,
        typer.Option(
            "--pairs",
            help="FILE is a CSV (node_a, node_b, busbw_gbs) of runs of one node or two each: find the bad ones.",
        ),
    ] = False,
    written: Annotated[
        Path | None, typer.Option("--write", metavar="FILE", help="Write the tables, too, as nccl-tests prints them.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Judge a benchmark: good, low (and why) or impossible. Exit code 1 unless all is good or unknown."""
    if pairs:
        beside_it = {"op": op, "ranks": ranks, "baseline": baseline, "as_configured": as_configured, "write": written}
        _refused("pairs", said | beside_it)
        return screened(file, as_json=as_json)
    tables = joined(measurements(file, op=op, ranks=ranks))
    if written is not None:
        _write(tables, written)
    if baseline is not None:
        _refused("baseline", {**said, "as_configured": as_configured})
        found = _beside(tables, joined(measurements(baseline, op=op, ranks=ranks)))
    else:
        found = [_judged(one, said, as_configured=as_configured) for one in tables]
    return _answer(found, as_json=as_json)


def _answer(found: list[Check], *, as_json: bool) -> None:
    """Print the checks, and end with exit code 1 unless all is good or unknown."""
    if as_json:
        document(_document(found))
    else:
        display(*(part for one in found for part in _shown(one)))
    if worst(found) in {"low", "impossible"}:
        raise typer.Exit(FAILED)


def worst(checks: list[Check]) -> str:
    """Return the worst verdict of several."""
    return min((one.verdict for one in checks), key=WORST.index)


def _write(tables: list[Measurement], file: Path) -> None:
    """Write the tables in the layout of nccl-tests; InputError for a table that it cannot hold, and for the file."""
    content = "".join(map(write_text, tables))
    try:
        file.write_text(content, encoding="utf-8")
    except OSError as error:
        raise InputError("write", str(file), f"it cannot be written: {reason(error)}") from None


def _refused(option: str, beside_it: dict[str, Any]) -> None:
    """InputError when options are given that change nothing beside another."""
    for name, value in beside_it.items():
        if value is not None and value is not False:
            raise InputError(
                option, f"--{name.replace('_', '-')}", f"it changes nothing beside --{option}: leave it out"
            )


def _judged(of: Measurement, changes: dict[str, Any], *, as_configured: bool) -> Check:
    if as_configured:
        return judged(of, cluster(of, **changes), library=library(of))
    return judged(of, **changes)


def _beside(tables: list[Measurement], baselines: list[Measurement]) -> list[Check]:
    """Each table beside the baseline of its operation and ranks; InputError when one has none."""
    known = {(one.op.name, one.ranks): one for one in baselines}
    for one in tables:
        if (one.op.name, one.ranks) not in known:
            said = f"{one.op.name} on {one.ranks} ranks"
            raise InputError("baseline", said, f"it has {', '.join(f'{op} on {n}' for op, n in known)}")
    return [beside(one, known[one.op.name, one.ranks]) for one in tables]


def _document(found: list[Check]) -> dict[str, Any]:
    """One table as it is; of several all of them, and the worst verdict."""
    if len(found) == 1:
        return records(found[0])[0]
    return {"verdict": worst(found), "tables": records(found)}


def _shown(one: Check) -> list[RenderableType]:
    where = f", {counted(one.system.nodes, 'node')} of {one.system.name}" if one.system else ""
    against = "expected" if one.system else "baseline"
    title = f"{one.table.op.name} on {counted(one.table.ranks, 'rank')}{where}"
    known = one.rows[0].expected is not None
    columns = (f">{against}", ">right from") if known else ()
    listed = table(">size", ">busbw GB/s", *columns, "verdict", title=escape(title))
    for row in one.rows:
        beside_it = [number(value / 1e9) for value in (row.expected, row.low) if value is not None]
        colour = COLOURS[row.verdict]
        said = f"[{colour}]{row.verdict}[/]"
        listed.add_row(show_size(row.size), number(row.busbw / 1e9), *beside_it, said)
    verdict = f"[bold {COLOURS[one.verdict]}]{one.verdict}[/]: {escape('; '.join(one.reasons))}"
    told = points("what the file says", [*one.table.notes, *one.table.problems])
    return [listed, "", verdict, *points("assumed, as is usual", one.assumed), *told, *_causes(one)]


def _causes(one: Check) -> list[RenderableType]:
    """The likely causes, the likeliest first, each with what to try."""
    suspects = one.causes[:MOST_SUSPECTS]
    if not suspects:
        return [""]
    listed = table("", "")
    listed.show_header = False
    for place, each in enumerate(suspects, 1):
        evidence = f"; the run says {each.evidence}" if each.evidence else ""
        listed.add_row(f"{place}.", f"[bold]{escape(each.cause.title)}[/]")
        listed.add_row("", escape(f"{each.finding}{evidence}"))
        listed.add_row("", f"[dim]try: {escape(each.cause.advice)}[/]")
    return ["", "[bold]likely causes[/]", listed, ""]
