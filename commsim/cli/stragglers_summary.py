"""How is a run with stragglers shown to a person?"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from rich.markup import escape

from commsim.cli.output import number, table
from commsim.stragglers.causes import written
from commsim.stragglers.presets import source_of
from commsim.tables.stragglers import LEVELS, name_of
from commsim.units import counted, show

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import RenderableType
    from rich.table import Table

    from commsim.stragglers.attribution import Amplified
    from commsim.stragglers.curve import Point
    from commsim.stragglers.mitigations import Outcome
    from commsim.stragglers.run import Run
    from commsim.stragglers.waits import Waits
    from commsim.stragglers.whole import Whole

_GROUPS = {
    "slower": "slower on average",
    "tensor": "groups wait in each operation",
    "pipeline": "stages wait for each other",
    "data": "replicas wait for the last",
}
_ROUNDING = 1e-9
_DAY = 86_400.0


def summary(run: Run, groups: Amplified, late: Waits) -> list[RenderableType]:
    """Return the distribution, the causes, the groups that amplify, and who waits for whom."""
    setting = run.estimate.setting
    title = escape(f"{setting.model.name} on {counted(setting.system.gpus, 'GPU')} of {setting.system.name}")
    return [
        f"[bold]{title}[/], {counted(setting.system.nodes, 'node')}",
        " x ".join(f"{axis.name} {axis.size}" for axis in setting.plan.axes),
        f"{counted(run.seconds.size, 'step')} of {counted(run.jobs, 'job')}, seed {run.seed}",
        "",
        _distribution(run),
        "",
        _causes(run),
        "",
        _groups(run, groups),
        "",
        *_late(run, late),
    ]


def _distribution(run: Run) -> Table:
    listed = table("", ">step time", ">+-", ">slowdown")
    listed.add_row("nobody late", show(run.ideal, "s", 4), "", "1")
    error = show(run.error, "s", 2) if run.seconds.size > 1 else ""
    listed.add_row("[bold]mean[/]", f"[bold]{show(run.mean, 's', 4)}[/]", error, f"[bold]{run.slowdown():.4f}[/]")
    for name, level in LEVELS.items():
        error = show(run.quantile_error(level), "s", 2)
        listed.add_row(name, show(run.quantile(level), "s", 4), error, f"{run.slowdown(level):.4f}")
    rate = number(run.tokens_per_second / run.estimate.setting.system.gpus, 4)
    lost = f"failures lose {run.lost:.1%}" if run.lost else ""
    listed.add_row("tokens/s/GPU", rate, "", lost)
    return listed


def _causes(run: Run) -> Table:
    """What each cause does both ways, with the formula's answer where there is one."""
    listed = table("what each cause costs", ">alone", ">formula", ">fixing it saves")
    for one in sorted(run.by_cause, key=lambda one: -one.saved):
        formula = f"{'' if one.closed.exact else '~'}{one.closed.slowdown:.4f}" if one.closed else ""
        name = re.sub(r"\d+\.\d{5,}", lambda digits: f"{float(digits[0]):.4g}", written(one.cause))
        listed.add_row(f"  {escape(name)}", f"{one.alone:.4f}", formula, f"{one.saved:.2%}")
    return listed


def _groups(run: Run, groups: Amplified) -> Table:
    listed = table("where the time above the ideal is made", ">", ">of the step")
    for name, label in _GROUPS.items():
        share = getattr(groups, name) / run.mean
        share = share if abs(share) > _ROUNDING else 0.0
        listed.add_row(f"  {label}", show(share * run.mean, "s", 3), f"{share:.2%}")
    return listed


def _late(run: Run, late: Waits) -> list[RenderableType]:
    """The groups for which the others wait most often."""
    path = ", ".join(f"{share:.0%}" for share in late.path)
    said = f"in the first steps of one job; critical path by stage: {path}, messages {abs(1 - late.path.sum()):.0%}"
    if late.idle.max() < _ROUNDING * run.mean:
        return ["[bold]all replicas end together[/]", f"  [dim]{said}[/]"]
    listed = table("who is waited for", ">its own work", ">last in", ">others wait")
    for group in late.groups[:3]:
        place = f"stage {group.stage}, replica {group.replica}: {_ranks(group.ranks)}"
        waited = show(group.holds_up, "s", 3)
        listed.add_row(f"  {place}", f"{group.slower:.3f} x", f"{group.last:.0%} of steps", waited)
    return [listed, f"  [dim]{said}[/]"]


def _ranks(ranks: tuple[int, ...]) -> str:
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    return f"ranks {ranks[0]}-{ranks[-1]}" if _in_a_row(ranks) else f"ranks {','.join(map(str, ranks))}"


def _in_a_row(ranks: tuple[int, ...]) -> bool:
    return ranks[-1] - ranks[0] == len(ranks) - 1


def sourced(run: Run) -> list[RenderableType]:
    """Return who measured the causes, where a preset has them so; of others the parameters are the reader's own."""
    listed = table("cause", "measured by")
    for one in run.causes:
        listed.add_row(escape(written(one)), escape(source_of(one) or "as given"))
    return ["", listed]


def mended(outcomes: Sequence[Outcome]) -> list[RenderableType]:
    """Return what mitigations do, and what is lost for them."""
    if not outcomes:
        return []
    listed = table("what would help", ">step time", ">quicker", ">lost", ">in all")
    for one in outcomes:
        after, lost = show(float(one.after.mean()), "s", 4), f"{one.lost:.2%}" if one.lost else "-"
        listed.add_row(f"  {name_of(one.mitigation)}", after, f"{one.speedup - 1:.2%}", lost, f"{one.gain - 1:+.2%}")
    notes = (
        f"  [dim]{name_of(one.mitigation)} loses {one.mitigation.loses} ({one.mitigation.source})[/]"
        for one in outcomes
    )
    return ["", listed, *notes]


def curves(ways: Mapping[str, Sequence[Point]]) -> list[RenderableType]:
    """Return the slowdown on ever more GPUs, one table a system."""
    found: list[RenderableType] = []
    for name, points in ways.items():
        listed = table(f"slowdown on {escape(name)}: GPUs", ">mean", ">+-", ">p50", ">p95", ">p99", ">failures lose")
        for one in points:
            levels = (f"{level:.3f}" for level in (one.p50, one.p95, one.p99))
            lost = "all" if one.lost == math.inf else f"{one.lost:.1%}" if one.lost else "-"
            listed.add_row(f"  {one.gpus:,}", f"{one.slowdown:.4f}", f"{one.error:.1g}", *levels, lost)
        found += ["", listed]
    return found


def training(whole: Whole | None) -> list[RenderableType]:
    """Return how long the whole training takes."""
    if whole is None:
        return []
    days = [f"{seconds / _DAY:.1f}" for seconds in (whole.mean, whole.quantile(0.05), whole.quantile(0.95))]
    said = f"[bold]{days[0]} days[/] for {number(whole.tokens / 1e12, 4)} T tokens, {whole.steps:,} steps"
    if not whole.failures:
        return ["", f"{said}, without failures (--checkpoint-every or --checkpoint-cost counts them)"]
    more = (
        f"p5-p95 {days[1]}-{days[2]} days; {whole.failures:,.0f} failures, one in {_long(whole.between)}; "
        f"{whole.useful:.1%} of the time counts; a checkpoint after {_long(whole.interval)} of work"
    )
    return ["", said, more]


def _long(seconds: float) -> str:
    """A time in the unit in which people count so much of it."""
    units = {"days": _DAY, "h": 3600.0, "min": 60.0, "s": 1.0}
    name = next((name for name, unit in units.items() if seconds >= 2 * unit), "s")
    return f"{number(seconds / units[name])} {name}"
