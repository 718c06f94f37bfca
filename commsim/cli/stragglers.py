"""What do slow ranks, slow links and jitter cost, which of them, and what would help?"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from commsim.cli.job import plan, recipe, settled
from commsim.cli.options import Json, Plot, Sources, library, machine, option, takes
from commsim.cli.output import display, document
from commsim.cli.stragglers_summary import curves, mended, sourced, summary, training
from commsim.errors import InputError, PartialError
from commsim.hardware.catalogue import load
from commsim.hardware.system import System
from commsim.libraries.library import Library
from commsim.stragglers import causes as read
from commsim.stragglers.attribution import amplified
from commsim.stragglers.curve import MOST, Point, curve
from commsim.stragglers.kinds import KINDS, Failures, Straggler
from commsim.stragglers.kinds.failures import LLAMA_3
from commsim.stragglers.mitigations import MITIGATIONS, Outcome, mitigate
from commsim.stragglers.presets import preset as preset_of
from commsim.stragglers.run import Run, run
from commsim.stragglers.waits import waits
from commsim.stragglers.whole import Whole, whole
from commsim.tables.records import Record, records
from commsim.training.configs.well_known import model as model_of
from commsim.training.estimate import Estimate, estimate
from commsim.training.plan import Plan
from commsim.training.trainers.job import Job
from commsim.units import parse

_causes, _draws = partial(option, "Causes"), partial(option, "Draws")
_what, _whole = partial(option, "What else"), partial(option, "A whole training")
DISTRIBUTION = "distribution"
_EVERY = {"K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}


def wanted(
    cause: Annotated[
        list[str] | None, _causes("Such as 'slow-rank: factor=1.1 count=1'; may be repeated.", "CAUSE")
    ] = None,
    causes: Annotated[Path | None, _causes("A YAML list of causes.", "FILE")] = None,
    preset: Annotated[str | None, _causes("A cluster: dedicated or shared.", "NAME")] = None,
) -> tuple[Straggler, ...]:
    """Return the causes of all three. InputError when there is none."""
    found = [*(preset_of(preset).causes if preset else ()), *(read.causes(causes) if causes else ())]
    found += [read.cause(text) for text in cause or ()]
    if not found:
        kinds = ", ".join(KINDS)
        raise InputError("cause", None, f"--cause, --causes FILE or --preset dedicated belongs here; kinds: {kinds}")
    return tuple(found)


def failures(
    tokens: Annotated[str | None, _whole("Of the whole training: 15T, 15e12.", "N")] = None,
    mtbf: Annotated[str | None, _whole("Between failures of the job (Llama 3's, by GPU).", "TIME")] = None,
    restart: Annotated[str, _whole("Until it runs again (MegaScale).", "TIME")] = "10 min",
    checkpoint_every: Annotated[str | None, _whole("Of work (what costs least, by Daly).", "TIME")] = None,
    checkpoint_cost: Annotated[str | None, _whole("In which nobody works.", "TIME")] = None,
) -> tuple[float | None, Callable[[int], Failures] | None]:
    """Return the tokens, and the failures that the options describe for so many GPUs."""
    given = checkpoint_every is not None or checkpoint_cost is not None
    if not given and mtbf is not None:
        raise InputError("mtbf", mtbf, "--checkpoint-every or --checkpoint-cost belongs beside it")
    count = _tokens(tokens) if tokens is not None else None
    if not given:
        return count, None
    every = None if checkpoint_every is None else parse(checkpoint_every, "s", "checkpoint-every", "30 min")
    cost = parse(checkpoint_cost or "0 s", "s", "checkpoint-cost", "30 s")
    known = Failures(parse(restart, "s", "restart", "10 min"), every, writing=cost)
    between = None if mtbf is None else parse(mtbf, "s", "mtbf", "3 h")
    if between == 0:
        raise InputError("mtbf", mtbf, "a time above 0 belongs here")
    return count, lambda gpus: replace(known, per_gpu_hour=3600 / between / gpus if between else LLAMA_3)


def _tokens(text: str) -> float:
    match = re.fullmatch(r"\s*(\d+\.?\d*(?:e\d+)?)\s*([KMBT]?)\s*", text, re.IGNORECASE)
    if not match or not float(match[1]):
        raise InputError("tokens", text, "a number above 0, such as 15T or 15e12, belongs here")
    return float(match[1]) * _EVERY.get(match[2].upper(), 1.0)


@takes(machine=machine, plan=plan, recipe=recipe, library=library, wanted=wanted, failures=failures)
def stragglers(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A name such as llama3.1-70b, or a config.json.")],
    machine: System,
    plan: Plan | Job,
    recipe: dict[str, Any],
    library: Library | None,
    wanted: tuple[Straggler, ...],
    failures: tuple[float | None, Callable[[int], Failures] | None],
    steps: Annotated[int, _draws("Steps that are drawn.", "N")] = 10_000,
    jobs: Annotated[int | None, _draws("Of so many jobs (each step its own).", "N")] = None,
    seed: Annotated[int, _draws("Of the draws.", "N")] = 0,
    mitigation: Annotated[
        list[str] | None, _what(f"{', '.join(MITIGATIONS)}; may be repeated.", "NAME", name="--mitigate")
    ] = None,
    with_curve: Annotated[bool, _what("The slowdown on 8 to 100,000 GPUs.", name="--curve")] = False,
    also: Annotated[list[str] | None, _what("Its curve, too; may be repeated.", "SYSTEM")] = None,
    sources: Sources = False,
    as_json: Json = False,
    plot: Plot = None,
    figure: Annotated[
        str, typer.Option(metavar="NAME", help="What to draw: distribution, curve, heatmap, timeline, tornado.")
    ] = DISTRIBUTION,
) -> None:
    """Say what stragglers cost a training step of MODEL on SYSTEM: how much, which cause, who waits, what helps."""
    _known(figure, plot)
    known = model_of(model)
    (laid, options), (tokens, failing) = settled(plan, recipe, machine, known), failures
    listed = (*wanted, failing(laid.gpus)) if failing else wanted
    step = estimate(known, laid, machine, library=library, **options)
    with _progress("steps", steps) as done:
        found = run(step, listed, steps=steps, jobs=jobs, seed=seed, done=done)
    outcomes = [mitigate(found, read.described(MITIGATIONS, name, "mitigation")) for name in mitigation or ()]
    several = {machine.name: step} if with_curve or also or (plot and figure == "curve") else {}
    for name in also or ():
        several[name] = estimate(known, laid, load(name, gpus=laid.gpus), library=library, **options)
    ways = {name: _curve(one, listed, seed) for name, one in several.items()}
    if plot:
        _draw(plot, figure, found, ways)
    _answer(found, outcomes, ways, whole(found, tokens) if tokens else None, as_json=as_json)
    if sources and not as_json:
        display(*sourced(found))
    if found.interrupted:
        raise PartialError(
            f"stragglers: interrupted after {found.seconds.size} of {steps} steps; they are in the answer"
        )


def _curve(step: Estimate, causes: tuple[Straggler, ...], seed: int) -> tuple[Point, ...]:
    with _progress(f"curve of {step.setting.system.name}", MOST) as done:
        return curve(step, causes, seed=seed, done=done)


def _answer(
    found: Run, outcomes: list[Outcome], ways: dict[str, tuple[Point, ...]], of: Whole | None, *, as_json: bool
) -> None:
    """Print the run and what was asked for beside it."""
    few = found.drawing.fewer(found.stage)
    groups, late = amplified(found.stage, found.causes, few), waits(found.stage, found.causes, found.seed)
    if not as_json:
        parts = [*summary(found, groups, late), *mended(outcomes), *curves(ways), *training(of)]
        return display(*parts)
    more: Record = {"amplified": records(groups)[0], "waits": records(late)[0]}
    more |= {"mitigations": records(outcomes)} if outcomes else {}
    rows = [{"system": name, **row} for name, points in ways.items() for row in records(points)]
    more |= ({"curve": rows} if rows else {}) | ({"training": records(of)[0]} if of else {})
    return document(records(found)[0] | more | {"assumptions": list(found.estimate.assumptions)})


def _known(figure: str, plot: Path | None) -> None:
    """Refuse a figure that is none, or has no file to go to; InputError."""
    if plot is None:
        if figure != DISTRIBUTION:
            raise InputError("figure", figure, "--plot FILE belongs beside it")
        return
    from commsim.plots.stragglers import FIGURES

    if figure not in FIGURES:
        raise InputError("figure", figure, "no such figure", among=FIGURES)


def _draw(file: Path, figure: str, found: Run, ways: dict[str, tuple[Point, ...]]) -> None:
    from commsim.plots.canvas import save
    from commsim.plots.stragglers import FIGURES
    from commsim.plots.stragglers_curve import slowdown_by_gpus

    save(slowdown_by_gpus(ways) if figure == "curve" else FIGURES[figure](found), file)


@contextmanager
def _progress(what: str, whole: int) -> Iterator[Callable[[int], object]]:
    """Show on a terminal how much is done; elsewhere nothing."""
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task(what, total=whole)
        yield lambda done: bar.update(task, completed=done)
