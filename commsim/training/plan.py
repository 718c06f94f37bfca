"""How is a model laid out over ranks?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Self, TypeVar

from commsim.errors import InputError
from commsim.training.axes import AXES, ORDER, Axis, Context, Data, Expert, Pipeline, Tensor
from commsim.training.layouts import layout

if TYPE_CHECKING:
    from commsim.collectives.layout import Dim, Layout

A = TypeVar("A", bound=Axis)


@dataclass(frozen=True, init=False, repr=False)
class Plan:
    """A choice of axes, the innermost first: their order is the placement.

    `Plan(Tensor(8), Context(2), Pipeline(8, virtual=8), Data(64))` puts the ranks of a tensor group next to each other.
    `Expert` stands anywhere: it folds the ranks of tensor, context and data of one pipeline stage anew. Plans are
    values: equal when their axes are.
    """

    axes: tuple[Axis, ...]

    def __init__(self, *axes: Axis) -> None:
        """Take the axes; InputError for what is none, for one given twice and for expert sizes that do not fold."""
        object.__setattr__(self, "axes", axes)
        for number, axis in enumerate(axes):
            if not isinstance(axis, Axis):
                raise InputError("plan", axis, "axes such as Tensor(8), Pipeline(4), Data(16) belong here")
            if axis.name in [other.name for other in axes[:number]]:
                raise InputError("plan", axis.name, "each axis belongs in a plan once")
        folded, sizes = self.tensor * self.context * self.data, self.expert * self.expert_tensor
        if folded % sizes:
            given = f"expert {self.expert} x expert-tensor {self.expert_tensor}"
            raise InputError("plan: expert", given, f"a divisor of tensor x context x data = {folded} belongs here")

    @classmethod
    def ordered(cls, *axes: Axis) -> Self:
        """Return the plan of these axes in Megatron's order: tensor, context, expert, data, pipeline."""
        return cls(*sorted(axes, key=lambda axis: ORDER.index(axis.name)))

    def changed(self, *axes: Axis) -> Plan:
        """Return this plan with the given axes in the places of those that they replace; others come last."""
        given = {axis.name: axis for axis in axes}
        kept = [given.pop(axis.name, axis) for axis in self.axes]
        return Plan(*kept, *given.values())

    @property
    def text(self) -> str:
        """The axes as `--plan` takes them."""
        return ",".join(f"{axis.name}={axis.size}" for axis in self.axes) or "data=1"

    def __repr__(self) -> str:
        return f"Plan({', '.join(map(repr, self.axes))})"

    def axis(self, kind: type[A]) -> A:
        """Return the axis of that class, of size 1 when the plan does not name it."""
        axis: A = self._axis_of.get(kind) or _absent(kind)
        return axis

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
    def shard(self) -> int | None:
        """Data ranks over which ZeRO shards; None for all."""
        return self.axis(Data).shard

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

    def layout(self, group: str) -> Layout:
        """Return the ranks that act together, of all groups of that name (see `layouts.GROUPS`); remembered."""
        if group not in self._layouts:
            self._layouts[group] = layout(self, group)
        return self._layouts[group]

    @cached_property
    def _axis_of(self) -> dict[type[Axis], Any]:
        """The axes by their class."""
        return {type(axis): axis for axis in self.axes}

    @cached_property
    def _layouts(self) -> dict[str, Layout]:
        """Those that were asked for: an estimate asks for few, many times."""
        return {}


@cache
def _absent(kind: type[A]) -> A:
    return kind(1)


SHORT = {"tp": "tensor", "cp": "context", "ep": "expert", "etp": "expert-tensor", "pp": "pipeline", "dp": "data"}
"""What trainers call the axes."""
_MOST_DIGITS = 9


def parse_plan(text: str, *, virtual: int = 1, zero: int = 1, shard: int | None = None) -> Plan:
    """Return the plan of `tensor=8,context=2,expert=8,expert-tensor=1,pipeline=8,data=16`, in that order.

    The order of the words is the placement, the innermost first. InputError for unknown axes and what is no number.
    """
    sizes: dict[str, int] = {}
    for part in text.split(","):
        name, size = _parsed(part)
        if name in sizes:
            raise InputError("plan", part.strip(), f"each axis belongs in a plan once, and {name} is there already")
        sizes[name] = size
    tensor = sizes.pop("expert-tensor", None)
    if tensor is not None and "expert" not in sizes:
        raise InputError("plan: expert-tensor", tensor, "expert=N belongs beside it")
    if virtual != 1 and "pipeline" not in sizes:
        raise InputError("virtual stages", virtual, "a plan with pipeline=N belongs beside it")
    options: dict[str, tuple[int | None, ...]] = {
        "pipeline": (virtual,),
        "data": (zero, shard),
        "expert": (tensor or 1,),
    }
    return Plan(*(AXES[name](size, *options.get(name, ())) for name, size in sizes.items()))


def _parsed(part: str) -> tuple[str, int]:
    """The axis and the size of one part of a plan's text."""
    given, _, number = (word.strip() for word in part.partition("="))
    name = SHORT.get(given.lower(), given.lower())
    known = (*AXES, "expert-tensor")
    if not given:
        raise InputError("plan", part, "an axis with its size, such as tensor=8, belongs between the commas")
    if name not in known:
        raise InputError("plan", given, "no such axis", among=known)
    if not (number.isascii() and number.isdecimal() and len(number) <= _MOST_DIGITS and int(number)):
        raise InputError(f"plan: {name}", part.strip(), f"a whole number of at least 1 belongs here, as in {name}=8")
    return name, int(number)
