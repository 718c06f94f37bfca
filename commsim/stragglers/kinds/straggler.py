"""What is a cause of lateness, and what does its class check?"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from commsim.errors import InputError
from commsim.stragglers.effects import Effect, Place, Target, Unit
from commsim.stragglers.laws import Rare

if TYPE_CHECKING:
    from commsim.stragglers.laws import Law
    from commsim.training.estimate import Estimate

Effects = tuple[Effect, ...]


class Straggler(ABC):
    """A cause of lateness."""

    @property
    @abstractmethod
    def effects(self) -> Effects:
        """What it does to a step."""

    def on(self, estimate: Estimate) -> Straggler:  # noqa: ARG002 - most causes are the same whatever is trained
        """Return the cause as it is for the step of an estimate, from which it may take what nobody has said."""
        return self


@dataclass(frozen=True)
class Effected(Straggler):
    """A cause that is nothing but its effects: any law at any place, as from a measured run."""

    effects: Effects = ()


MOST = 1e9
"""The largest factor, number of seconds or number an hour of a cause: whoever writes more made a mistake."""


def positive(cause: Straggler, *names: str) -> None:
    """Refuse fields that are no numbers above 0, or too large; InputError."""
    for name in names:
        given = getattr(cause, name)
        if not isinstance(given, int | float) or not 0 < given <= MOST:
            raise InputError(_where(cause, name), given, f"a number above 0, {MOST:g} at most, belongs here")


def not_negative(cause: Straggler, *names: str) -> None:
    """Refuse fields that are no numbers from 0 on, or too large; InputError."""
    for name in names:
        given = getattr(cause, name)
        if not isinstance(given, int | float) or not 0 <= given <= MOST:
            raise InputError(_where(cause, name), given, f"a number from 0 to {MOST:g} belongs here")


def share(cause: Straggler, *names: str) -> None:
    """Refuse fields that are no numbers between 0 and 1; InputError."""
    for name in names:
        given = getattr(cause, name)
        if not isinstance(given, int | float) or not 0 <= given <= 1:
            raise InputError(_where(cause, name), given, "a number from 0 to 1 belongs here")


def one_way(cause: Straggler, *names: str) -> None:
    """Refuse more than one way to say who is hit: by chance, by count, or the last, by numbers; InputError."""
    numbers = getattr(cause, names[-1])
    if not isinstance(numbers, tuple) or not all(isinstance(one, int) for one in numbers):
        raise InputError(_where(cause, names[-1]), numbers, "a tuple of numbers, as in (3, 17), belongs here")
    given = [name for name in names if getattr(cause, name) is not None and getattr(cause, name) != ()]
    if getattr(cause, names[0]) is not None:
        share(cause, names[0])
    if len(given) > 1:
        raise InputError(_where(cause, given[-1]), getattr(cause, given[-1]), f"{given[0]} says already who is hit")


def some(place: Place, law: Law, chance: float | None, target: Target, unit: Unit = "factor") -> Effect:
    """Return the effect of a law for the job on those that are named or counted, on all by chance, else on one."""
    if chance is not None:
        return Effect(place, "job", Rare(chance, law, 1.0 if unit == "factor" else 0.0), target, unit)
    known = target.which or target.count
    return Effect(place, "job", law, target if known else Target(target.each, count=1), unit)


def _where(cause: Straggler, name: str) -> str:
    words = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in type(cause).__name__)
    return f"{words.strip()}: {name}"
