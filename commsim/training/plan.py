"""How is a model laid out over ranks?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeVar

from commsim.collectives.layout import Dim, Layout
from commsim.errors import InputError
from commsim.training.axes import AXES, ORDER, Axis, Context, Data, Expert, Pipeline, Tensor

if TYPE_CHECKING:
    from collections.abc import Iterable

A = TypeVar("A", bound=Axis)


class Plan:
    """A choice of axes, the innermost first: their order is the placement.

    `Plan(Tensor(8), Context(2), Pipeline(8, virtual=8), Data(64))` puts the ranks of a tensor group next to each other.
    `Expert` stands anywhere: it folds the ranks of tensor, context and data of one pipeline stage anew. Plans are values:
    equal when their axes are.
    """

    __slots__ = ("_layouts", "axes")

    def __init__(self, *axes: Axis) -> None:
        """Take the axes; InputError for one given twice and for expert sizes that do not fold."""
        self.axes = axes
        self._layouts: dict[str, Layout] = {}
        names = [axis.name for axis in axes]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice:
            raise InputError("plan", twice, "each axis belongs in a plan once")
        folded = self.tensor * self.context * self.data
        if folded % (self.expert * self.expert_tensor):
            given = f"expert {self.expert} x expert-tensor {self.expert_tensor}"
            expected = f"their product must divide tensor x context x data = {folded}"
            raise InputError("plan: expert", given, expected)

    def __repr__(self) -> str:
        return f"Plan({', '.join(map(repr, self.axes))})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and self.axes == other.axes

    def __hash__(self) -> int:
        return hash(self.axes)

    def axis(self, kind: type[A]) -> A:
        """Return the axis of that class, of size 1 when the plan does not name it."""
        return next((axis for axis in self.axes if isinstance(axis, kind)), None) or kind(1)

    @property
    def tensor(self) -> int:
        """Ranks that share each matrix."""
        return self.axis(Tensor).size

    @property
    def sequence(self) -> bool:
        """Whether the tensor ranks also share the sequence between the matrices."""
        return self.axis(Tensor).sequence

    @property
    def context(self) -> int:
        """Ranks that share each sequence."""
        return self.axis(Context).size

    @property
    def expert(self) -> int:
        """Ranks over which the experts are dealt out."""
        return self.axis(Expert).size

    @property
    def expert_tensor(self) -> int:
        """Ranks that share each expert."""
        return self.axis(Expert).tensor

    @property
    def pipeline(self) -> int:
        """Stages of the pipeline."""
        return self.axis(Pipeline).size

    @property
    def virtual(self) -> int:
        """Chunks of layers on each stage."""
        return self.axis(Pipeline).virtual

    @property
    def data(self) -> int:
        """Ranks that each have batches of their own."""
        return self.axis(Data).size

    @property
    def zero(self) -> int:
        """What data ranks shard: 0 nothing, 1 optimizer, 2 gradients, 3 weights."""
        return self.axis(Data).zero

    @property
    def gpus(self) -> int:
        """Ranks in all."""
        return math.prod(axis.size for axis in self.axes if not isinstance(axis, Expert))

    def dims(self) -> dict[str, Dim]:
        """Return (extent, stride) of each axis but the expert one."""
        stride, found = 1, {}
        for axis in self.axes:
            if not isinstance(axis, Expert):
                found[axis.name] = (axis.size, stride)
                stride *= axis.size
        return found

    def axis_shard(self, group: str) -> int:
        """Return over how many ranks ZeRO shards what the ranks of `data` or `expert data` hold alike."""
        data = self.axis(Data)
        everyone = self.layout(group).size
        return everyone if data.shard is None else max(1, everyone * data.shard // data.size)

    def layout(self, group: str) -> Layout:
        """Return the ranks that act together: `tensor`, `context`, `pipeline`, `data` (all that hold the same weights,
        so context ranks as well), `expert`, `expert tensor` or `expert data`. Remembered.
        """
        if group not in self._layouts:
            self._layouts[group] = self._laid(group)
        return self._layouts[group]

    def _laid(self, group: str) -> Layout:
        dims = self.dims()
        if group.startswith("expert"):
            inside = [dim for name, dim in dims.items() if name != "pipeline"]
            parts = dict(zip(("expert tensor", "expert", "expert data"), _dealt(inside, self._folds()), strict=True))
            others = [dim for name, part in parts.items() if name != group for dim in part]
            return _layout(parts[group], [*others, dims.get("pipeline", (1, 1))])
        members = {"data": ("context", "data")}.get(group, (group,))
        mine = [dim for name, dim in dims.items() if name in members]
        return _layout(mine, [dim for name, dim in dims.items() if name not in members])

    def _folds(self) -> tuple[int, int, int]:
        folded = self.tensor * self.context * self.data
        return self.expert_tensor, self.expert, folded // (self.expert * self.expert_tensor)


def _layout(members: Iterable[Dim], copies: Iterable[Dim]) -> Layout:
    """The layout without dimensions of one rank, and with strides in order."""
    kept = tuple(dim for dim in members if dim[0] > 1) or ((1, 1),)
    return Layout(kept, tuple(sorted((dim for dim in copies if dim[0] > 1), key=lambda dim: dim[1])))


def _dealt(dims: Iterable[Dim], sizes: tuple[int, ...]) -> list[list[Dim]]:
    """Deal the ranks of `dims`, the innermost first, out to groups of these sizes; InputError when a size cuts a
    dimension unevenly.
    """
    left = [dim for dim in dims if dim[0] > 1]
    dealt: list[list[Dim]] = []
    for size in sizes:
        mine: list[Dim] = []
        while size > 1:
            extent, stride = left.pop(0)
            part = math.gcd(extent, size)
            if part == 1 or (part < size and part < extent):
                raise InputError("plan: expert", size, f"it cuts an axis of {extent} ranks unevenly")
            mine.append((part, stride))
            left[:0] = [(extent // part, stride * part)] if part < extent else []
            size //= part  # noqa: PLW2901 - what is still to be dealt to this group
        dealt.append(mine)
    return dealt


def parse_plan(text: str, *, virtual: int = 1, zero: int = 1, shard: int | None = None) -> Plan:
    """Return the plan of `tensor=8,context=2,expert=8,expert-tensor=1,pipeline=8,data=16`, in that order.

    The order of the words is the placement, the innermost first. InputError for unknown axes and what is no number.
    """
    sizes: dict[str, int] = {}
    for part in filter(None, text.replace(" ", "").split(",")):
        name, _, number = part.partition("=")
        if name not in (*AXES, "expert-tensor"):
            raise InputError("plan", name, "no such axis", among=(*AXES, "expert-tensor"))
        if not number.isdecimal() or not int(number) or name in sizes:
            raise InputError(f"plan: {name}", part, "each axis once, as name=number, such as tensor=8")
        sizes[name] = int(number)
    options = {
        "pipeline": lambda size: Pipeline(size, virtual),
        "data": lambda size: Data(size, zero, shard),
        "expert": lambda size: Expert(size, sizes.get("expert-tensor", 1)),
    }
    if "expert-tensor" in sizes and "expert" not in sizes:
        raise InputError("plan: expert-tensor", sizes["expert-tensor"], "it needs expert=N beside it")
    if virtual > 1 and "pipeline" not in sizes:
        raise InputError("virtual stages", virtual, "a plan with a pipeline belongs beside it")
    return Plan(*(options.get(name, AXES[name])(size) for name, size in sizes.items() if name in AXES))


def in_order(**sizes: int) -> tuple[str, ...]:
    """Return the names of the axes in Megatron's order, the innermost first, of those that are given."""
    return tuple(name for name in ORDER if name in sizes)
