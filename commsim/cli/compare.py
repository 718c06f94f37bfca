"""Why does one job take longer than another?"""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from typer.exceptions import TyperException

from commsim.cli.job import plan, recipe, settled
from commsim.cli.options import Json, library, machine, takes
from commsim.cli.output import display, document, number, table
from commsim.errors import InputError, reason
from commsim.hardware.system import System
from commsim.libraries.library import Library
from commsim.tables.records import records
from commsim.training.comparing.difference import Difference, difference
from commsim.training.configs.well_known import model as model_of
from commsim.training.estimate import Estimate
from commsim.training.estimate import estimate as estimated
from commsim.training.plan import Plan
from commsim.training.trainers.job import Job
from commsim.units import show

if TYPE_CHECKING:
    from rich.console import RenderableType

_WHAT = "what `commsim estimate` takes, in quotes, or a file that holds it"
_CHANGE = re.compile(r"([a-z][a-z_-]*)=(.+)", re.DOTALL)
LONGEST_FILE = 64_000
NOTHING = 1e-9
"""Seconds that sums in another order leave between two equal times, and no step has."""


def compare(
    a: Annotated[str, typer.Argument(metavar="A", help=f"A job: {_WHAT}.")],
    b: Annotated[str, typer.Argument(metavar="B", help='The other; or only what differs: "nodes=32 recompute=full".')],
    as_json: Json = False,
) -> None:
    """Explain the difference of two plans, recipes or systems: compare "MODEL SYSTEM --plan ..." "recompute=full"."""
    first = _arguments(a, "A")
    changes = _said(b)
    second = _changed(first, changes) if changes else _arguments(b, "B")
    found = difference(_estimated(first, "A"), _estimated(second, "B"))
    if as_json:
        return document(records(found)[0])
    return display(*_shown(found))


def _said(text: str) -> list[tuple[str, str]]:
    """The names and values of `recompute=full nic='400 Gb/s'`; none where it is a job, or a file of one. InputError."""
    if "=" not in text.split(" ", 1)[0] or os.path.exists(text):  # noqa: PTH110 - it answers for impossible names too
        return []
    found = [_CHANGE.fullmatch(word) for word in _words(text, "B")]
    pairs = [(one[1], one[2]) for one in found if one]
    if len(pairs) < len(found):
        raise InputError("compare: B", text, "NAME=VALUE of options belong here, as in nodes=32 recompute=full")
    return pairs


def _changed(first: list[str], changes: list[tuple[str, str]]) -> list[str]:
    """The words of A with `recompute=full cuda-graphs=true`, or `system=NAME`; of one given twice the last counts."""
    found = list(first)
    for name, value in changes:
        plain = name.replace("_", "-")
        if plain == "system":
            found[1:2] = [value]
        else:
            found += {"true": [f"--{plain}"], "false": [f"--no-{plain}"]}.get(value.lower(), [f"--{plain}", value])
    return found


def _arguments(text: str, which: str) -> list[str]:
    """The words of a job, also of a whole command line; a text of one word is the name of a file."""
    given = text
    try:
        if len(text.split()) == 1:
            with Path(text).open(encoding="utf-8") as file:
                text = file.read(LONGEST_FILE)
    except (OSError, ValueError) as error:
        raise InputError(f"compare: {which}", text, f"{reason(error)}; {_WHAT} belongs here") from None
    words = _words(text, which)
    for name in ("commsim", "estimate"):
        words = words[1:] if words[:1] == [name] else words
    if not words:
        raise InputError(f"compare: {which}", given or None, f"there is no job; {_WHAT} belongs here")
    return words


def _words(text: str, which: str) -> list[str]:
    try:
        return shlex.split(text.replace("\\\n", " "), comments=True)
    except ValueError as error:
        raise InputError(f"compare: {which}", text, f"{reason(error)}; {_WHAT} belongs here") from None


def _estimated(arguments: list[str], which: str) -> Estimate:
    """The estimate of a job, as the command `estimate` would make it."""
    found: list[Estimate] = []

    @takes(machine=machine, plan=plan, recipe=recipe, library=library)
    def job(
        model: Annotated[str, typer.Argument()],
        machine: System,
        plan: Plan | Job,
        recipe: dict[str, Any],
        library: Library | None,
    ) -> None:
        known = model_of(model)
        laid, options = settled(plan, recipe, machine, known)
        found.append(estimated(known, laid, machine, library=library, **options))

    app = typer.Typer(add_completion=False)
    app.command(add_help_option=False)(job)
    try:
        typer.main.get_command(app).main(arguments, f"compare: {which}", standalone_mode=False)
    except TyperException as error:
        raise InputError(f"compare: {which}", " ".join(arguments), error.format_message()) from None
    if not found:
        raise InputError(f"compare: {which}", " ".join(arguments), f"{_WHAT} belongs here")
    return found[0]


def _shown(found: Difference) -> list[RenderableType]:
    first, second = found.first, found.second
    listed = table("", ">A", ">B", ">B - A")
    for name, (ours, theirs) in found.parts.items():
        if ours or theirs:
            listed.add_row(f"  {name}", *(show(one, "s", 3) for one in (ours, theirs)), _signed(theirs - ours))
    steps = (first.step_time, second.step_time)
    listed.add_row("[bold]step[/]", *(show(one, "s", 4) for one in steps), _signed(steps[1] - steps[0]))
    rates = [number(one.tokens_per_second_per_gpu, 4) for one in (first, second)]
    listed.add_row("tokens/s/GPU", *rates, f"{1 / found.ratio - 1:+.1%}")
    listed.add_row("MFU", *(f"{one.mfu:.1%}" for one in (first, second)), "")
    return [listed, "", _changes(found)]


def _changes(found: Difference) -> RenderableType:
    """Each difference, changed alone in A."""
    if not found.changes:
        return "A and B are the same job"
    listed = table("changed alone in A", "A", "B", ">step", ">")
    for one in found.changes:
        words = (escape(one.first), escape(one.second))
        if one.seconds is None:
            listed.add_row(one.what, *words, "-", "cannot be alone")
        else:
            listed.add_row(
                one.what, *words, show(one.seconds, "s", 4), f"{one.seconds / found.first.step_time - 1:+.1%}"
            )
    return listed


def _signed(seconds: float) -> str:
    if abs(seconds) < NOTHING:
        return "0"
    return f"{'-' if seconds < 0 else '+'}{show(abs(seconds), 's', 3)}"
