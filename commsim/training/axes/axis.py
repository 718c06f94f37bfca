"""What is an axis of parallelism, and what is the traffic that it causes?"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, ClassVar, Literal

from commsim.errors import InputError

if TYPE_CHECKING:
    from commsim.collectives.kinds import Collective
    from commsim.training.operations import Array
    from commsim.training.pieces import Piece
    from commsim.training.setting import Setting

When = Literal["forward", "backward", "first forward", "last backward", "message", "step"]
"""Once a piece and micro-batch, in the forward or the backward pass; once a piece and step, behind the first forward or
the last backward pass; once a micro-batch between two chunks; once a step, after everything."""
Behind = Literal["nothing", "columns", "matmul", "attention", "pass"]
"""What can hide it: nothing; of the same piece and pass the matmuls whose columns are split, all matmuls, or attention;
or all that the chunk computes in that pass."""


@dataclass(frozen=True)
class Traffic:
    """One collective that an axis needs: what, how large (as the collective counts it), how often, what can hide it.

    `group` names the layout of the plan that takes part, `count` is per piece. `repeated`: recomputation says it again.
    `held` is the memory that a rank keeps for it meanwhile, in sizes. `size` may be an array, one entry a plan.
    """

    axis: str
    group: str
    op: Collective
    size: Array
    when: When
    behind: Behind = "nothing"
    count: float = 1.0
    repeated: bool = False
    held: float = 0.0


@dataclass(frozen=True, repr=False)
class Axis(ABC):
    """A dimension of parallelism; `size` ranks share along it."""

    size: int
    name: ClassVar[str] = ""

    def __post_init__(self) -> None:
        """Refuse an axis without ranks; InputError."""
        need_whole(f"plan: {self.name}", self.size)

    def __repr__(self) -> str:
        """The axis as one would write it."""
        options = [(field.name, getattr(self, field.name), field.default) for field in fields(self)[1:]]
        said = [f"{name}={value!r}" for name, value, default in options if value != default]
        return f"{type(self).__name__}({', '.join([str(self.size), *said])})"

    @abstractmethod
    def traffic(self, setting: Setting, piece: Piece) -> tuple[Traffic, ...]:
        """Return what one piece of the model says along this axis, whether or not its groups have only one rank."""


def need_whole(where: str, given: object, least: int = 1) -> None:
    """Raise InputError unless it is a whole number of at least `least`."""
    if not isinstance(given, int) or isinstance(given, bool) or given < least:
        raise InputError(where, given, f"a whole number of at least {least} belongs here")
