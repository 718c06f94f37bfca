"""Which plan is the best, and why not the others?"""

from __future__ import annotations

import functools
import inspect
import itertools
import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import track
from rich.table import Table

from commsim.cli.job import need_batch, recipe
from commsim.cli.options import Json, Plot, library, machine, option, takes
from commsim.cli.output import display, document, folded, table
from commsim.errors import InputError, PartialError
from commsim.hardware.catalogue import load
from commsim.libraries.library import Library
from commsim.tables.records import Record, records
from commsim.training.configs.well_known import model as model_of
from commsim.training.search.found import Found
from commsim.training.search.search import TOP, Search
from commsim.training.search.search import search as searched
from commsim.training.search.sweep import Case, Outcome, searches
from commsim.units import counted, show

_chosen = partial(option, "Choices")
_FIGURES = 20
"""Columns of the terminal that the time and the memory of a plan take."""
_SWEPT = ("model", "system", "nodes", "gpus")


def _described(**given: object) -> dict[str, Any]:
    """The machine as it was described: the name of the system, and what is changed."""
    return {name: value for name, value in given.items() if value is not None}


def _like(made: Callable[..., Any], signature: Callable[..., Any], *without: str) -> Callable[..., Any]:
    """A maker with the options of another one, but for some."""
    own = inspect.signature(signature, eval_str=True)

    @functools.wraps(made)
    def maker(**given: object) -> object:
        return made(**given)

    kept = [one for name, one in own.parameters.items() if name not in without]
    maker.__signature__ = own.replace(parameters=kept)  # type: ignore[attr-defined]
    return maker


def _choice(what: str) -> Any:  # noqa: ANN401 - typer says of its options that they are anything
    return _chosen(f"{what} (all that divide).", "N,..")


def choices(
    tensor: Annotated[str | None, _choice("Ranks that share each matrix")] = None,
    context: Annotated[str | None, _choice("Ranks that share each sequence")] = None,
    expert: Annotated[str | None, _choice("Ranks over which experts are dealt out")] = None,
    pipeline: Annotated[str | None, _choice("Stages")] = None,
    virtual_stages: Annotated[str | None, _choice("Chunks of layers on each stage")] = None,
    data: Annotated[str | None, _choice("Ranks with batches of their own")] = None,
    zero: Annotated[str | None, _chosen("What data ranks shard (0,1,2,3).", "N,..")] = None,
    micro_batch: Annotated[str | None, _choice("Sequences that a rank takes at once")] = None,
    recompute: Annotated[str | None, _chosen("What is computed again (none,selective,full).", "WAY,..")] = None,
) -> dict[str, Any]:
    """Return what each coordinate of a plan may be, where that is limited. InputError for what is no number."""
    sizes = dict(tensor=tensor, context=context, expert=expert, pipeline=pipeline, virtual=virtual_stages)  # noqa: C408
    sizes |= {"data": data, "zero": zero, "micro_batch": micro_batch}
    found: dict[str, Any] = {name: _numbers(name, given) for name, given in sizes.items() if given is not None}
    return found | ({"recompute": tuple(recompute.split(","))} if recompute is not None else {})


def _numbers(name: str, given: str) -> tuple[int, ...]:
    words = [word.strip() for word in given.split(",")]
    if not all(word.isascii() and word.isdecimal() for word in words):
        raise InputError(name.replace("_", "-"), given, "whole numbers belong here, as in 4,8")
    return tuple(map(int, words))


@takes(
    machine=_like(_described, machine),
    recipe=_like(recipe, recipe, "micro_batch", "recompute", "recompute_layers"),
    choices=choices,
    library=library,
)
def search(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A name such as llama3.1-70b, or a config.json.")],
    machine: dict[str, Any],
    recipe: dict[str, Any],
    choices: dict[str, Any],
    library: Library | None,
    top: Annotated[int, typer.Option(metavar="N", min=1, help="How many of the best.")] = TOP,
    every: Annotated[bool, typer.Option(help="Time all plans, also those that cannot be among the best.")] = False,
    pareto: Annotated[bool, typer.Option(help="Show those that no other beats in time and memory.")] = False,
    sweep: Annotated[
        list[str] | None,
        typer.Option(metavar="WHAT=A,B", help="Search for each: model, system, nodes or gpus; several make a grid."),
    ] = None,
    dask: Annotated[
        str | None, typer.Option(metavar="SCHEDULER", help="Sweep on the workers of this Dask scheduler.")
    ] = None,
    as_json: Json = False,
    plot: Plot = None,
) -> None:
    """Search the best plan of MODEL on SYSTEM, and say why the others lose to it."""
    need_batch(recipe)
    options = {**recipe, **choices, "top": top, "every": every}
    if sweep:
        if plot or pareto:
            raise InputError("sweep", sweep[0], "a figure or a front is of one search; leave --plot and --pareto out")
        return _swept(_grid(model, machine, sweep, options, library), dask, as_json=as_json)
    if dask:
        raise InputError("dask", dask, "there is nothing to share: --sweep WHAT=A,B belongs beside it")
    found = searched(model_of(model), _machine(**machine), library=library, **options)
    if plot:
        from commsim.plots.canvas import save
        from commsim.plots.search import front

        save(front(found), plot)
    shown = found.pareto if pareto else found.top(found.shown)
    if as_json:
        return document(records(shown))
    return display(*_told(found, shown, pareto=pareto))


_machine = machine


def _told(found: Search, shown: tuple[Found, ...], *, pareto: bool) -> list[Any]:
    """What was searched, a table of plans, and how to go on."""
    job, fit = found.job, len(found.ranking.space)
    title = escape(f"{job.model.name} on {counted(job.system.gpus, 'GPU')} of {job.system.name}")
    listed = table("plan, and why it is not the first", ">step", ">memory")
    for one in shown:
        reasons = _folded(r"(?<=[,:]) ", one.why_not_first, "  ")
        why = f"\n[dim]{escape(reasons)}[/]" if reasons else ""
        listed.add_row(f"{_written(one)}{why}", *_figures(one))
    what = "none is both quicker and smaller than these" if pareto else "the quickest"
    return [
        f"[bold]{title}[/]: {found.divide:,} plans divide, {fit:,} fit, {len(found.columns['tensor']):,} timed",
        f"\n[bold]{what}[/]",
        listed,
        "",
        "[dim]more: --pareto, --plot FILE, --json; `commsim estimate --plan PLAN` explains one[/]",
    ]


def _written(one: Found, indent: str = "") -> str:
    """A plan as options of the command line, none of them broken in two."""
    return escape(_folded(r" (?=--)", str(one), indent))


def _folded(between: str, text: str, indent: str) -> str:
    return folded(re.split(between, text), max(_FIGURES, Console().width - _FIGURES - len(indent)), indent)


def _figures(one: Found) -> tuple[str, str]:
    return show(one.step_time, "s", 4), show(one.memory, "B", 3)


def _grid(
    model: str, machine: dict[str, Any], swept: list[str], options: dict[str, Any], library: Library | None
) -> list[Case]:
    """Every combination of what is swept."""
    axes = dict(_axis(one) for one in swept)
    cases = []
    for values in itertools.product(*axes.values()):
        asked = {"model": model, **machine} | dict(zip(axes, values))
        if "nodes" in axes or "gpus" in axes:
            asked = {name: value for name, value in asked.items() if name in axes or name not in ("nodes", "gpus")}
        cases.append(Case(asked.pop("model"), asked.pop("system"), asked, options, library))
    return cases


def _axis(text: str) -> tuple[str, tuple[Any, ...]]:
    name, _, values = (part.strip() for part in text.partition("="))
    if name not in _SWEPT or not values:
        raise InputError(
            "sweep", text, "WHAT=A,B belongs here, such as nodes=16,32", among=() if name in _SWEPT else _SWEPT
        )
    return name, _numbers(name, values) if name in ("nodes", "gpus") else tuple(values.split(","))


def _swept(cases: list[Case], scheduler: str | None, *, as_json: bool) -> None:
    """Search each case, and show the best of all that were done, also when somebody interrupts.

    InputError for a name that nobody knows, before the first search, and after the last when no search found a plan.
    """
    for name in {case.model: None for case in cases}:
        model_of(name)
    for name in {case.system: None for case in cases}:
        load(name)
    done: list[Outcome] = []
    try:
        every = searches(cases, scheduler=scheduler)
        for one in _watched(every, len(cases)):
            done.append(one)  # noqa: PERF402 - what is done stays when somebody interrupts
    except KeyboardInterrupt:
        pass
    if as_json:
        document([row for one in done for row in _rows(one)])
    else:
        display(_compared(done))
    if len(done) < len(cases):
        raise PartialError(f"search: interrupted after {len(done)} of {len(cases)} searches; they are in the answer")
    if all(one.error for one in done):
        raise InputError("sweep", f"{len(done)} searches", "at least one that a plan fits belongs among them")


def _watched(every: Iterable[Outcome], count: int) -> Iterable[Outcome]:
    """The outcomes as they come, with a bar on a terminal."""
    where = Console(stderr=True)
    return track(every, "searching", count, console=where, transient=True, disable=not where.is_terminal)


def _rows(one: Outcome) -> list[Record]:
    """The best plans of a case, or its error."""
    case = {"model": one.case.model, "system": one.case.system, "gpus": one.gpus or None}
    if one.error:
        return [{**case, "error": one.error}]
    return [{**case, **row} for row in records(one.best)]


def _compared(done: list[Outcome]) -> Table:
    """A table with the best plan of each case."""
    listed = table("job, and its best plan", ">step", ">memory")
    for one in done:
        title = f"[bold]{escape(str(one.case))}[/]"
        if one.error:
            listed.add_row(f"{title}\n{escape(_folded(' ', one.error, '  '))}", "", "")
            continue
        listed.add_row(f"{title}\n{_written(one.best[0], '  ')}", *_figures(one.best[0]))
    return listed
