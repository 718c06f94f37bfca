"""How long do collectives take on this machine?"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console, RenderableType
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from commsim.cli.cases import cases
from commsim.cli.options import Json, takes
from commsim.cli.output import display, document, note, number, table
from commsim.measurement.launch.cases import CONDITIONS, Case
from commsim.measurement.launch.crew import Crew, Order
from commsim.measurement.launch.kept import kept
from commsim.measurement.launch.memory import need_memory
from commsim.measurement.launch.nccl_tests import commands as nccl_tests_commands
from commsim.measurement.launch.nccl_tests import measure_with_nccl_tests
from commsim.measurement.launch.overlap import overlaps
from commsim.measurement.launch.watch import End, UnfinishedError, watch
from commsim.measurement.launch.whereabouts import Whereabouts
from commsim.measurement.read import measurements
from commsim.measurement.records import Measurement, Row
from commsim.tables.records import Record
from commsim.units import parse, show, show_size


@takes(wanted=cases)
def bench(
    wanted: list[Case],
    ranks: Annotated[int, typer.Option(metavar="N", help="Ranks, all on this machine.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="JSON lines; what it holds is not measured again.")],
    backend: Annotated[
        Literal["nccl", "gloo", "nccl-tests"], typer.Option(help="gloo on CPUs; nccl-tests: its own programs.")
    ] = "nccl",
    timeout: Annotated[str, typer.Option(metavar="TIME", help="How long ranks wait for each other.")] = "5 min",
    port: Annotated[int | None, typer.Option(metavar="N", help="At which ranks meet (a free one).")] = None,
    interface: Annotated[str | None, typer.Option(metavar="NAME", help="That gloo speaks over (loopback).")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would run.")] = False,
    as_json: Json = False,
) -> None:
    """Measure real collectives: torch.distributed on nccl or gloo, or nccl-tests."""
    order = Order(tuple(wanted), ranks, backend, out, parse(timeout, "s", "timeout", "60 s"), port, interface)
    if dry_run:
        return _dry(order, as_json=as_json)
    if backend == "nccl-tests":
        measure_with_nccl_tests(order)
        return _show(out, as_json=as_json)
    if backend == "gloo":
        need_memory(wanted, ranks)
    before = kept(wanted, out)
    if before:
        note(f"{before} of {len(wanted)} cases are in {out.name} already")
    try:
        with Crew(order) as crew, _progress(order) as seen:
            watch(crew, seen)
    except UnfinishedError as error:
        _say_where(error.ends, order)
        raise
    return _show(out, as_json=as_json)


def _dry(order: Order, *, as_json: bool) -> None:
    """What would run."""
    is_own = order.backend != "nccl-tests"
    commands = [order.command(Path("CASES.json"))] if is_own else nccl_tests_commands(order)
    environment = order.environment(0, order.port or 0) if is_own else {}
    if as_json:
        written = [case.document for case in order.cases]
        return document({"commands": commands, "environment": environment, "cases": written})
    listed = table("operation", ">size", "type", "conditions")
    for case in order.cases:
        told = ", ".join(f"{key} {value}" for key, value in case.conditions.items())
        listed.add_row(case.op, show_size(case.size), case.dtype, escape(told))
    left = len(order.cases) - kept(order.cases, order.out)
    heading = f"{order.ranks} ranks on {order.backend}, {left} of {len(order.cases)} cases left; what would run:"
    set_before = [f"{key}={shlex.quote(value)} \\" for key, value in environment.items()]
    display(listed, "", heading)
    sys.stdout.writelines(f"{line}\n" for line in (*set_before, *map(shlex.join, commands)))
    return None


@contextmanager
def _progress(order: Order) -> Iterator[Callable[[Whereabouts], None]]:
    """A bar on stderr while somebody watches it."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty(), transient=True) as shown:
        task = shown.add_task("starting", total=len(order.cases))

        def seen(now: Whereabouts) -> None:
            if now.case < 0:
                return
            case = order.cases[now.case]
            shown.update(task, completed=now.case, description=f"{case.op} {show_size(case.size)}: {now.state}")

        yield seen


def _say_where(ends: list[End], order: Order) -> None:
    """Who was where, on stderr, and what is kept."""
    listed = table(">rank", "case", ">iteration", "was", ">for", "ended")
    for end in ends:
        case = order.cases[end.where.case] if end.where.case >= 0 else None
        where = f"{end.where.case + 1}: {case.op} {show_size(case.size)}" if case else "-"
        turn = str(end.where.iteration + 1) if end.where.iteration >= 0 else "-"
        listed.add_row(str(end.rank), where, turn, end.where.state, show(end.since, "s", 2), end.how)
    Console(stderr=True, highlight=False).print(listed)
    there = kept(order.cases, order.out)
    note(f"{there} of {len(order.cases)} cases are kept in {order.out.name}; the same command goes on from there")


def _show(out: Path, *, as_json: bool) -> None:
    """What the file holds."""
    found = [(one, row) for one in measurements(out) for row in one.rows]
    if as_json:
        return document([_record(one, row) for one, row in found])
    return display(_listed(found), *_beside(out))


def _beside(out: Path) -> list[RenderableType]:
    """What products and collectives cost each other, where they ran side by side."""
    found = overlaps(out)
    listed = table("beside a matmul", ">size", ">alone", ">beside", ">slower", ">matmul", ">beside", ">slower")
    for one in found:
        took = [show(seconds, "s", 3) for seconds in (one.alone, one.beside, one.product_alone, one.product_beside)]
        own, other = (f"{number(times)}x" for times in (one.slowdown, one.product_slowdown))
        listed.add_row(f"{one.op} {one.dimension}", show_size(one.size), *took[:2], own, *took[2:], other)
    return ["", listed] if found else []


def _listed(found: list[tuple[Measurement, Row]]) -> Table:
    records = [_record(one, row) for one, row in found]
    told = ["conditions"] if any(record["conditions"] for record in records) else []
    listed = table("operation", ">size", ">time", ">algbw GB/s", ">busbw GB/s", ">last came", "right", *told)
    for record in records:
        rates = [record[key] for key in ("algbw_bytes_per_s", "busbw_bytes_per_s")]
        listed.add_row(
            record["op"],
            show_size(record["size_bytes"]),
            show(record["time_s"], "s", 3),
            *("-" if rate is None else number(rate / 1e9) for rate in rates),
            "-" if record["skew_s"] is None else show(record["skew_s"], "s", 2),
            "yes" if record["right"] else "no",
            *([escape(", ".join(f"{key} {value}" for key, value in record["conditions"].items()))] if told else []),
        )
    return listed


def _record(one: Measurement, row: Row) -> Record:
    """One row for programs; a barrier moves nothing, so it has no rate."""
    timing, kind = row.timing, one.op if one.candidates else None
    algbw = row.size / timing.seconds if kind else None
    arrivals = [max(turn) for turn in zip(*timing.arrivals)]
    return {
        "op": kind.name if kind else "barrier",
        "dtype": one.dtype,
        "ranks": one.ranks if kind else len(timing.samples),
        "size_bytes": row.size,
        "in_place": row.out_of_place is None,
        "time_s": timing.seconds,
        "algbw_bytes_per_s": algbw,
        "busbw_bytes_per_s": algbw * kind.factor(one.ranks) if kind and algbw is not None else None,
        "right": f"wrong results at {row.size} B" not in one.problems,
        "skew_s": sorted(arrivals)[len(arrivals) // 2] if arrivals else None,
        "conditions": {key: value for key, value in one.settings.items() if key in CONDITIONS},
    }
