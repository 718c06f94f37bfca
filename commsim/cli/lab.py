"""What does a real network, laid out on this machine, deliver, beside what the model says?"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from commsim.cli.options import Calibrated, Json, Plot, machine, takes
from commsim.cli.output import display, document, points, table
from commsim.errors import InputError, PartialError
from commsim.hardware.system import System
from commsim.hardware.topology import Link, Topology
from commsim.lab.experiment import Compared, Experiment, experiment, run
from commsim.lab.faults import fault, written
from commsim.lab.isolation import need_lab
from commsim.measurement.launch.cases import Groups
from commsim.tables.records import records
from commsim.units import counted, parse_sizes, show, show_size


@takes(machine=machine)
def lab(
    machine: System,
    ops: Annotated[
        list[str], typer.Argument(metavar="OP...", help="all_reduce, all_gather, all_to_all, broadcast ...")
    ],
    sizes: Annotated[
        str, typer.Option(metavar="SIZES", help="1MiB,4MiB; or 1MiB..8MiB, each twice the last.")
    ] = "1MiB",
    iterations: Annotated[int, typer.Option(min=1, metavar="N", help="Of each operation, size and fault.")] = 7,
    faults: Annotated[
        list[str] | None,
        typer.Option("--fault", metavar="FAULT", help="'slow-link: link=gpu0,switch0 factor=2'; may be given again."),
    ] = None,
    groups: Annotated[
        str | None, typer.Option(metavar="GROUPS", help="That act at once: '0,2,4,6 1,3,5,7' (one of all ranks).")
    ] = None,
    slower: Annotated[float, typer.Option(min=1.0, metavar="X", help="Every link so many times slower.")] = 1.0,
    calibrated: Calibrated = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Every sample, as JSON lines.")] = None,
    as_json: Json = False,
    plot: Plot = None,
) -> None:
    """Lay a network out on this machine (Linux, root), run gloo in it, and compare."""
    wanted = experiment(
        _slower(machine.topology, slower),
        ops,
        parse_sizes(sizes),
        faults=tuple(map(fault, faults or ())),
        groups=_groups(groups),
        iterations=iterations,
        calibration=calibrated,
    )
    need_lab()
    done, early = _measured(wanted, out)
    if plot and done:
        from commsim.plots.canvas import save
        from commsim.plots.lab import beside

        save(beside(done, machine.name), plot)
    if as_json:
        document(records(done))
    elif done:
        _show(done, machine)
    if early:
        raise early


def _measured(wanted: Experiment, out: Path | None) -> tuple[list[Compared], PartialError | None]:
    """What was measured, and why it is not all of it."""
    done: list[Compared] = []
    with _progress(len(wanted.trials)) as shown:
        try:
            for one in run(wanted, out):
                done.append(one)
                shown.advance(shown.task_ids[0])
        except PartialError as error:
            return done, error
    return done, None


@contextmanager
def _progress(total: int) -> Iterator[Progress]:
    """A bar on stderr while somebody watches it."""
    columns = (TextColumn("measuring"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty(), transient=True) as shown:
        shown.add_task("measuring", total=total)
        yield shown


def _show(done: list[Compared], machine: System) -> None:
    ranks = counted(machine.topology.size, "rank")
    heading = f"[bold]{ranks} of {escape(machine.name)}[/], laid out on this machine; library gloo"
    wrong = [] if all(one.checked for one in done) else ["some results were wrong: see the records"]
    notes = ["latency is neither shaped nor claimed", *wrong]
    display(heading, "", _table(done), *points("notes", notes))


def _table(done: list[Compared]) -> Table:
    listed = table("\noperation", ">\nsize", ">measured\n", ">predicted\n", ">\noff", ">busbw\nMB/s", "\nfault")
    for one in done:
        asked = one.trial.asked
        busbw = asked.size / one.typical * asked.op.factor(asked.layout.size) / 1e6
        times = (show(one.typical, "s", 3), show(one.trial.prediction.typical, "s", 3), f"{one.error:+.1%}")
        listed.add_row(asked.op.name, show_size(asked.size), *times, f"{busbw:.3g}", escape(written(one.trial.fault)))
    return listed


def _slower(topology: Topology, factor: float) -> Topology:
    """The machine with every link so many times slower."""
    if factor == 1:
        return topology
    cell = topology.cell.copy()
    for _, _, data in cell.edges(data=True):
        link: Link = data["link"]
        data["link"] = Link(link.kind, link.bandwidth / factor, link.latency)
    return replace(topology, cell=cell)


def _groups(text: str | None) -> Groups:
    try:
        return tuple(tuple(int(rank) for rank in group.split(",")) for group in (text or "").split())
    except ValueError:
        raise InputError("groups", text, "ranks such as '0,2,4,6 1,3,5,7' belong here") from None
