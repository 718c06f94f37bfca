"""In what do two jobs differ, and what is each of them called?"""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import networkx as nx

from commsim.libraries.own import own
from commsim.training.axes import Context, Pipeline
from commsim.training.estimate import Estimate
from commsim.units import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from commsim.hardware.system import System
    from commsim.libraries.library import Library
    from commsim.training.plan import Plan

_BUILT = ("name", "nodes", "gpus_per_node", "accelerator", "scale_up", "scale_out", "fabric", "links")
"""Fields of a system, beside its cell, that make another machine of it."""


class Differing(NamedTuple):
    """One thing in which two jobs differ: what it is in each; `changed` makes the first with that of the second.

    `changed` raises InputError where it cannot be changed alone.
    """

    what: str
    first: str
    second: str
    changed: Callable[[], Estimate]


def differing(first: Estimate, second: Estimate) -> Iterator[Differing]:
    """Yield what differs: the system, the library, the plan, each option of the recipe.

    A library that is its machine's own comes with the machine.
    """
    ours, theirs = first.setting, second.setting
    follows = all(one.library == own(one.setting.system) for one in (first, second))
    if not _alike(ours.system, theirs.system):
        words = _of_both(ours.system, theirs.system)
        library = None if follows else first.library
        yield Differing("system", *words, partial(_changed, first, library, system=theirs.system))
    if first.library != second.library and not follows:
        words = _apart(_of_library(first.library, second.library), _of_library(second.library, first.library))
        yield Differing("library", *words, partial(_changed, first, second.library))
    if ours.plan != theirs.plan:
        words = _apart(_of_plan(ours.plan), _of_plan(theirs.plan))
        yield Differing("plan", *words, partial(_changed, first, first.library, plan=theirs.plan))
    yield from _options(first, second)


def _options(first: Estimate, second: Estimate) -> Iterator[Differing]:
    recipe = first.setting.recipe
    for field in dataclasses.fields(recipe):
        before, after = getattr(recipe, field.name), getattr(second.setting.recipe, field.name)
        if before != after:
            other = dataclasses.replace(recipe, **{field.name: after})
            changed = partial(_changed, first, first.library, recipe=other)
            yield Differing(field.name.replace("_", "-"), str(before), str(after), changed)


def _changed(of: Estimate, library: Library | None, **fields: object) -> Estimate:
    """A job with other fields of its setting, and a library, or the machine's own; InputError where they do not fit."""
    setting = dataclasses.replace(of.setting, **fields)  # type: ignore[arg-type] # fields by their names
    return Estimate(setting, own(setting.system, library))


def _alike(first: System, second: System) -> bool:
    """Whether they are the same machine, whatever is told of it."""
    fields = all(getattr(first, name) == getattr(second, name) for name in _BUILT)
    return fields and nx.utils.graphs_equal(first.cell, second.cell)


def _apart(first: Sequence[str], second: Sequence[str]) -> tuple[str, str]:
    """What each of two things is called: by the first of its words, and by those that are others in the other."""
    kept = [both for place, both in enumerate(zip(first, second)) if not place or both[0] != both[1]]
    return ", ".join(ours for ours, _ in kept), ", ".join(theirs for _, theirs in kept)


def _of_both(first: System, second: System) -> tuple[str, str]:
    """What two machines are called: of two with one name, also by what was changed in them."""
    words = _of_system(first), _of_system(second)
    return _apart(*words) if first.name == second.name else (words[0][0], words[1][0])


def _of_system(system: System) -> list[str]:
    out, topology = system.scale_out, system.topology
    return [
        f"{counted(system.gpus, 'GPU')} of {system.name}",
        counted(system.nodes, "node"),
        system.accelerator.name,
        f"{counted(topology.domain_size, 'GPU')} a domain",
        f"{counted(system.nics_per_node, 'NIC')} a node",
        f"NICs of {float(out.nic) * 8 / 1e9:g} Gb/s" if out else "no network",
        f"{out.fabric}{f' as {out.wiring}' if out.wiring else ''}" if out else "",
        f"oversubscribed {out.oversubscription:g}:1" if out else "",
    ]


def _of_plan(plan: Plan) -> list[str]:
    layers = "-".join(map(str, plan.axis(Pipeline).layers))
    return [
        ", ".join(f"{axis.name} {axis.size}" for axis in plan.axes),
        "sequence parallel" if plan.sequence else "not sequence parallel",
        f"context by {plan.axis(Context).by}",
        f"{counted(plan.expert_tensor, 'GPU')} an expert",
        f"{counted(plan.virtual, 'chunk')} a stage",
        f"layers {layers}" if layers else "layers spread evenly",
        f"ZeRO {plan.zero}",
        f"{plan.shard or 'all'} data ranks a shard",
    ]


def _of_library(library: Library, other: Library) -> list[str]:
    """The name, and of libraries of one kind their figures and settings."""
    if type(library) is not type(other) or not dataclasses.is_dataclass(library):
        return [library.name]
    values = [(field.name, getattr(library, field.name)) for field in dataclasses.fields(library)]
    return [library.name, *(f"{name} {_value(value)}" for name, value in values if name != "name")]


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(getattr(value, "name", value) or "as usual")
