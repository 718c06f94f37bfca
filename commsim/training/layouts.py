"""Which ranks of a plan act together?"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

from commsim.collectives.layout import Dim, Layout
from commsim.errors import InputError

if TYPE_CHECKING:
    from commsim.training.plan import Plan

Dims = list[Dim]

GROUPS = {
    "tensor": "who share each matrix",
    "context": "who share each sequence",
    "pipeline": "one rank of each stage",
    "ends": "a rank of the first stage and its counterpart on the last",
    "data": "who hold the same weights, all but those of experts: context ranks as well",
    "data shard": "of these, who shard what they hold with ZeRO",
    "data replicas": "of these, who hold the same shard",
    "expert": "over whom the experts are dealt out",
    "expert tensor": "who share each expert",
    "expert data": "who hold the same experts",
    "expert data shard": "of these, who shard what they hold with ZeRO",
    "expert data replicas": "of these, who hold the same shard",
}
"""The groups of a plan, by name."""


@lru_cache(maxsize=16384)
def layout(plan: Plan, group: str) -> Layout:
    """Return the layout of a group of GROUPS; InputError when the experts, or a shard, cut an axis unevenly."""
    if group not in GROUPS:
        raise InputError("group", group, "no such group", among=GROUPS)
    parts = _partition(plan, group)
    others = [dim for name, dims in parts.items() if name != group for dim in dims]
    return Layout(_joined(parts[group]) or ((1, 1),), _joined(sorted(others, key=lambda dim: dim[1])))


def _partition(plan: Plan, group: str) -> dict[str, Dims]:
    """The ranks of the plan as parts, the group among them: each rank is one place in each part."""
    axes = {name: [dim] for name, dim in plan.dims().items()}
    stages = axes.pop("pipeline", [(1, 1)])
    parts = axes
    if group.startswith("expert"):
        parts = _experts(plan, [dim for dims in axes.values() for dim in dims])
    elif group.startswith("data"):
        same = [dim for name, dims in axes.items() if name != "tensor" for dim in dims]
        parts = {"tensor": axes.get("tensor", []), "data": same}
    if group.endswith((" shard", " replicas")):
        whole = group.rpartition(" ")[0]
        parts |= _shards(plan, whole, parts.pop(whole))
    extent, stride = stages[0]
    ends = {"ends": [(min(extent, 2), stride * max(extent - 1, 1))]}
    return {group: []} | parts | (ends if group == "ends" else {"pipeline": stages})


def _experts(plan: Plan, stage: Dims) -> dict[str, Dims]:
    """The ranks of a stage, folded anew: first who share an expert, then those over whom experts are dealt out."""
    folded = plan.tensor * plan.context * plan.data
    sizes = plan.expert_tensor, plan.expert, folded // (plan.expert * plan.expert_tensor)
    names = "expert tensor", "expert", "expert data"
    return dict(zip(names, _dealt(stage, sizes, "plan: expert"), strict=True))


def _shards(plan: Plan, whole: str, dims: Dims) -> dict[str, Dims]:
    """Who holds the same weights, as shards of neighbours and their replicas."""
    everyone = math.prod(extent for extent, _ in dims)
    replicas = math.gcd(everyone, plan.data // (plan.shard or plan.data))
    names = f"{whole} shard", f"{whole} replicas"
    return dict(zip(names, _dealt(dims, (everyone // replicas, replicas), "plan: shard"), strict=True))


def _joined(dims: Dims) -> tuple[Dim, ...]:
    """The dimensions without those of one rank, and two as one where the second goes on where the first ends."""
    joined: Dims = []
    for extent, stride in dims:
        if joined and joined[-1][0] * joined[-1][1] == stride:
            joined[-1] = (joined[-1][0] * extent, joined[-1][1])
        elif extent > 1:
            joined.append((extent, stride))
    return tuple(joined)


def _dealt(dims: Dims, sizes: tuple[int, ...], where: str) -> list[Dims]:
    """Deal ranks out to groups of these sizes, the innermost first; InputError when one cuts a dimension unevenly."""
    left = list(_joined(dims))
    dealt: list[Dims] = []
    for size in sizes:
        mine: Dims = []
        while size > 1:
            extent, stride = left.pop(0)
            part = math.gcd(extent, size)
            if part not in (extent, size):
                raise InputError(where, size, f"it cuts an axis of {extent} ranks unevenly")
            mine.append((part, stride))
            left[:0] = [(extent // part, stride * part)] if part < extent else []
            size //= part  # noqa: PLW2901 - what is still to be dealt to this group
        dealt.append(mine)
    return dealt
