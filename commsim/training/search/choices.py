"""From what may a search choose?"""

from __future__ import annotations

from dataclasses import dataclass, fields

from commsim.errors import InputError
from commsim.training.axes.axis import need_whole
from commsim.training.recipe import RECOMPUTE

Sizes = tuple[int, ...] | None


@dataclass(frozen=True)
class Choices:
    """What each coordinate of a plan may be; None stands for all that divides."""

    tensor: Sizes = None
    context: Sizes = None
    expert: Sizes = None
    pipeline: Sizes = None
    virtual: Sizes = None
    data: Sizes = None
    zero: tuple[int, ...] = (0, 1, 2, 3)
    micro_batch: Sizes = None
    recompute: tuple[str, ...] = tuple(RECOMPUTE)

    def __post_init__(self) -> None:
        """Refuse what is no choice; InputError."""
        for field in fields(self):
            given = getattr(self, field.name)
            if given is not None and (not isinstance(given, tuple) or not given):
                raise InputError(f"search: {field.name}", given, "one number or several belong here, such as (4, 8)")
            for one in given if given and field.name not in ("recompute", "zero") else ():
                need_whole(f"search: {field.name}", one)
        for one in self.zero:
            if isinstance(one, bool) or one not in range(4):
                raise InputError("search: zero", one, "of 0, 1, 2 and 3 some belong here")

    def of(self, name: str, divisors: list[int]) -> list[int]:
        """Return those of the divisors that may be chosen."""
        allowed = getattr(self, name)
        return [one for one in divisors if allowed is None or one in allowed]
