"""How is an estimate shown to a person?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.markup import escape

from commsim.cli.output import bar, between, number, points, table, titled
from commsim.tables.estimates import memory_parts, time_parts
from commsim.tables.records import records
from commsim.training.estimate import WHAT_IFS
from commsim.units import counted, show, show_size

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from commsim.training.axes import Axis
    from commsim.training.estimate import Estimate
    from commsim.training.passes import Said

MORE = "more: --explain AXIS, --sources, --plot FILE, --json"
MOST_HELP = 3
"""So many what-ifs are shown, and only those that save a hundredth of the step."""


def summary(step: Estimate) -> list[RenderableType]:
    """Return the answer, where the time and the memory go, what would help, and what is taken for granted."""
    return [
        *_heading(step),
        "",
        _answer(step),
        "",
        _parts("where the time goes", time_parts(step.step), step.step_time, "s"),
        "",
        _parts("what the fullest GPU holds", memory_parts(step.memory), step.memory.capacity, "B"),
        "",
        _help(step),
        *points("taken for granted", step.assumptions),
    ]


def explained(step: Estimate, axis: str) -> list[RenderableType]:
    """Return each collective of an axis: its size, algorithm, time, and the link that limits it."""
    exposed = show(step.step.exposed.get(axis, 0.0), "s", 3)
    listed = table("collective", ">each", "behind")
    for one in step.explain(axis):
        listed.add_row(_sentence(one), show(float(one.timing.seconds[0]), "s", 3), one.traffic.behind)
    return ["", f"[bold]what the {axis} axis says for one micro-batch: {exposed} of it exposed in a step[/]", listed]


def sourced(step: Estimate) -> list[RenderableType]:
    """Return the figures behind the estimate, and the documents that they are from."""
    found = step.sources()
    figures = table("figure", ">value", "is", "says")
    for one in found:
        figures.add_row(*map(escape, (one.what, one.value, one.status, ", ".join(one.documents))))
    return ["", figures, *titled(found.documents)]


def _heading(step: Estimate) -> list[str]:
    setting, recipe = step.setting, step.setting.recipe
    system, batch = setting.system, f"{counted(recipe.global_batch, 'sequence')} of {recipe.sequence:,} tokens"
    recompute = "" if recipe.recompute == "none" else f", recompute {recipe.recompute}"
    title = escape(f"{setting.model.name} on {counted(system.gpus, 'GPU')} of {system.name}")
    return [
        f"[bold]{title}[/], {counted(system.nodes, 'node')}",
        " x ".join(_axis(axis, step) for axis in setting.plan.axes),
        f"{batch}, {recipe.micro_batch} at once, {recipe.precision}{recompute}",
    ]


def _axis(axis: Axis, step: Estimate) -> str:
    """An axis as a plan writes it, with the option that people look for."""
    plan = step.setting.plan
    more = {
        "pipeline": f" ({plan.virtual} chunks a stage)" if plan.virtual > 1 else "",
        "data": f" (ZeRO {plan.zero})" if plan.zero else "",
        "expert": f" (each on {plan.expert_tensor})" if plan.expert_tensor > 1 else "",
    }
    return f"{axis.name} {axis.size}{more.get(axis.name, '')}"


def _answer(step: Estimate) -> Table:
    """The numbers that people ask for first, each with what it has to be held against."""
    memory, ranges = step.memory, records(step)[0]["range"]
    peak, number_format = step.setting.system.accelerator.peak, step.setting.recipe.matmul_format
    seconds = f"{_ends(ranges['step_time_s'])}; " if ranges else ""
    mfu = f"{ranges['mfu'][0]:.1%}-{ranges['mfu'][1]:.1%}; " if ranges else ""
    fits = "fits in" if memory.fits else "[bold red]does not fit in[/]"
    listed = table("", "", "")
    listed.show_header = False
    rows = {
        "step time": (
            show(step.step_time, "s", 4),
            f"{seconds}{number(step.tokens_per_second_per_gpu, 4)} tokens/s/GPU",
        ),
        "MFU": (f"{step.mfu:.1%}", f"{mfu}of {show(peak[number_format], 'FLOP/s', 4)} dense {number_format}"),
        "memory": (show(memory.total, "B", 3), f"{fits} {show(memory.capacity, 'B', 3)}"),
    }
    for name, (value, beside) in rows.items():
        listed.add_row(name, f"[bold]{value}[/]", beside)
    return listed


def _ends(seconds: list[float]) -> str:
    return between(seconds[0], seconds[1], "s")


def _parts(title: str, parts: dict[str, float], whole: float, dimension: str) -> Table:
    listed = table(title, ">", ">", "")
    for name, value in parts.items():
        if value:
            listed.add_row(f"  {name}", show(value, dimension, 3), f"{value / whole:.1%}", bar(value / whole))
    return listed


def _help(step: Estimate) -> Table:
    best = sorted(step.what_if.items(), key=lambda item: -item[1])[:MOST_HELP]
    listed = table("what would help most", ">saves", ">")
    for name, saved in best:
        if saved > step.step_time / 100:
            listed.add_row(f"  {WHAT_IFS[name]}", show(saved, "s", 3), f"{saved / step.step_time:.1%}")
    return listed


def _sentence(one: Said) -> str:
    """When what is said, and by which algorithm, on two lines."""
    traffic, choice = one.traffic, one.timing.choice(0)
    what = f"{number(traffic.count)} x {traffic.op.name} of {show_size(float(traffic.size))}"
    how = f"{one.timing.ranks} ranks, {choice.algorithm} {choice.protocol}; {choice.limit(0)}"
    return f"{escape(f'{one.kind} {traffic.when}'.strip())}: {what}\n  [dim]{escape(how)}[/]"
