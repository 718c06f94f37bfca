"""Which constants of a library do my own runs give?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer
from rich.markup import escape

from commsim.cli.options import Json, Network, Nic, NicsPerNode, library, takes
from commsim.cli.output import display, document, points, table
from commsim.collectives.layout import Layout
from commsim.errors import InputError
from commsim.libraries.library import Library
from commsim.libraries.own import own
from commsim.measurement.calibrate.fit import Fit, Fitted, Run, fit
from commsim.measurement.cluster import cluster, of_others
from commsim.measurement.joining import joined
from commsim.measurement.read import measurements
from commsim.tables.records import records
from commsim.units import counted
from commsim.writing import quantity, to_yaml

if TYPE_CHECKING:
    from rich.console import RenderableType


@takes(of=library)
def calibrate(
    system: Annotated[str, typer.Argument(metavar="SYSTEM", help="Where they ran: a name or a file.")],
    runs: Annotated[list[str], typer.Argument(metavar="RUN...", help="What benchmarks printed, as `check` reads it.")],
    of: Library | None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the calibration (YAML, for --calibration).")
    ] = None,
    nics_per_node: NicsPerNode = None,
    nic: Nic = None,
    fabric: Network = None,
    op: Annotated[
        str | None, typer.Option(metavar="OP", help="The operation, where the files do not say which.")
    ] = None,
    ranks: Annotated[int | None, typer.Option(metavar="N", help="Ranks, where the files do not say how many.")] = None,
    seed: Annotated[int, typer.Option(help="Of the bootstrap.")] = 0,
    as_json: Json = False,
) -> None:
    """Fit a library's constants to your own runs, and say what they do not tell."""
    if out is not None and out.suffix not in {".yaml", ".yml"}:
        raise InputError("out", str(out), "a file that ends in .yaml belongs here")
    given = {"nics_per_node": nics_per_node, "nic": nic, "fabric": fabric}
    changes = {key: value for key, value in given.items() if value is not None}
    tables = joined(one for run in runs for one in measurements(run, op=op, ranks=ranks))
    machines = [cluster(one, system, **changes) for one in tables]
    for one, each in zip(tables, machines):
        if other := of_others(one, each):
            raise InputError(one.source, other, "runs of SYSTEM belong here")
    ran = [Run(one, Layout.first(one.ranks), each.topology) for one, each in zip(tables, machines)]
    found = fit(own(machines[0], of), ran, seed=seed)
    if out is not None:
        _write(found, out)
    if as_json:
        return document(records(found)[0])
    return display(*_shown(found, out))


def _write(found: Fit, out: Path) -> None:
    try:
        out.write_text(to_yaml(found.calibration), encoding="utf-8")
    except OSError as error:
        raise InputError("out", str(out), f"it cannot be written: {error.strerror}") from None


def _shown(found: Fit, out: Path | None) -> list[RenderableType]:
    listed = table("constant", ">shipped", ">fitted", "95 % interval")
    for one in found.told:
        listed.add_row(escape(one.constant.name), _show(one, one.constant.value), _show(one, one.value), _interval(one))
    rows = counted(len(found.after), "row")
    before, after = (float(np.median(np.abs(np.expm1(each)))) for each in (found.before, found.after))
    untold = [one.constant.name for one in found.constants if not one.told]
    said = f"{rows}: median |error| {before:.1%} as shipped, {after:.1%} as fitted"
    told = (
        [listed] if listed.row_count else ["these runs determine no constant: measure more sizes, or more operations"]
    )
    return [*told, "", said, *points("not told by these runs, and left near what is shipped", untold), *_hint(out)]


def _hint(out: Path | None) -> list[RenderableType]:
    return ["", f"written to {escape(str(out))}; use it with --calibration {escape(str(out))}"] if out else []


def _interval(one: Fitted) -> str:
    return f"{_show(one, one.low)} to {_show(one, one.high)}"


def _show(one: Fitted, value: float) -> str:
    said = quantity(float(f"{value:.3g}"), one.constant.dimension)
    return f"{said:.3g}" if isinstance(said, float) else str(said)
